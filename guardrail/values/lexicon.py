"""Words that say what a number, a date or a capitalised word is: English, German, French, Spanish."""

from __future__ import annotations

from typing import Final

from guardrail.values.model import Bound


def words(text: str) -> frozenset[str]:
    """A set of words, written as a text."""
    return frozenset(text.split())


_MONTH_NAMES: Final = """
january jan jan. januar janvier enero | february feb feb. februar février febrero
march mar mar. märz mars marzo | april apr apr. avril abril | may mai mayo | june jun jun. juni juin junio
july jul jul. juli juillet julio | august aug aug. août agosto
september sep sept sep. sept. septembre septiembre | october oct oct. oktober octobre octubre
november nov nov. novembre noviembre | december dec dec. dezember décembre diciembre
"""
MONTHS: Final = {
    word: number
    for number, names in enumerate(_MONTH_NAMES.strip().replace("\n", "|").split("|"), start=1)
    for word in names.split()
}
#: Months that are also common words: dates only beside a day or a year, or after a preposition.
SHY_MONTHS: Final = words("""
    may march mar jan mars mai jun sep dec nov oct apr jul feb
""")
_WEEKDAY_NAMES: Final = """
monday mondays montag lundi lunes|tuesday tuesdays dienstag mardi martes
wednesday wednesdays mittwoch mercredi miércoles|thursday thursdays donnerstag jeudi jueves
friday fridays freitag vendredi viernes|saturday saturdays samstag samedi sábado
sunday sundays sonntag dimanche domingo
"""
WEEKDAYS: Final = {
    word: number
    for number, names in enumerate(_WEEKDAY_NAMES.strip().replace("\n", "|").split("|"))
    for word in names.split()
}
#: Offsets from UTC in minutes.
ZONES: Final = {
    "utc": 0, "gmt": 0, "z": 0, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360,
    "pst": -480, "pdt": -420,
    "bst": 60, "cet": 60, "cest": 120, "eet": 120, "eest": 180, "ist": 330, "jst": 540, "aest": 600,
    "aedt": 660,
}  # fmt: skip
#: Phrases before a number, by their last words. Longest match wins.
BOUNDS: Final[dict[str, Bound]] = {
    phrase: bound
    for bound, phrases in {
        Bound.ABOUT: """
            about | approximately | approx | around | roughly | nearly | almost | some | circa | ca
            | c | close to | estimated | an estimated | ~ | ≈ | etwa | rund | ungefähr | fast |
            knapp | environ | près de | presque | unos | unas | casi | aproximadamente | alrededor
            de | in about | on average
        """,
        Bound.OVER: """
            over | more than | above | greater than | exceeding | exceed | exceeds | beyond |
            upwards of | > | über | mehr als | plus de | más de
        """,
        Bound.AT_LEAST: """
            at least | no less than | not less than | no fewer than | minimum | minimum of | a
            minimum of | from at least | ≥ | >= | mindestens | au moins | al menos | por lo menos
        """,
        Bound.UNDER: """
            under | less than | fewer than | below | lower than | < | within less than | unter |
            weniger als | moins de | menos de
        """,
        Bound.AT_MOST: """
            up to | at most | no more than | not more than | maximum | maximum of | max | a maximum of |
            not exceed | not exceeding | not to exceed | ≤ | <= | as many as | as much as | bis zu |
            höchstens | maximal | au plus | au maximum | jusqu'à | hasta | como máximo
        """,
    }.items()
    for phrase in (" ".join(phrase.split()) for phrase in phrases.split("|"))
}
#: Words right after an amount.
TRAILING_BOUNDS: Final = {
    "or more": Bound.AT_LEAST,
    "and above": Bound.AT_LEAST,
    "or older": Bound.AT_LEAST,
    "and older": Bound.AT_LEAST,
    "or higher": Bound.AT_LEAST,
    "or less": Bound.AT_MOST,
    "or fewer": Bound.AT_MOST,
    "or under": Bound.AT_MOST,
    "or younger": Bound.AT_MOST,
    "or below": Bound.AT_MOST,
    "or lower": Bound.AT_MOST,
    "or so": Bound.ABOUT,
    "at most": Bound.AT_MOST,
    "at least": Bound.AT_LEAST,
}
PERCENT_WORDS: Final = frozenset({"percent", "%", "pct", "prozent", "％", "percents"})
#: "5 mg daily": the unit of the rate.
RATE_WORDS: Final = {
    "daily": "day", "hourly": "h", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year",
    "nightly": "day",
    "täglich": "day", "wöchentlich": "week", "monatlich": "month", "jährlich": "year",
}  # fmt: skip
#: Labels whose number is a name rather than a count.
LABELS: Final = words("""
    section chapter article clause paragraph page table figure step part volume appendix annex rule act no
    number nr room gate level phase type class grade form platform line bus route apartment unit suite
    version release item question stage tier artikel abschnitt kapitel seite chapitre página artículo §
""")
#: Words that follow a number without saying what it counts.
NO_NOUN: Final = words("""
    can could may might must shall should will would cannot do does did need needs take takes took get gets
    cost costs pay pays apply applies only also not free when while so because unless without within before
    after both all any some
    of and or the to in on at for by with from is are was were be been has have had that which who as than
    then if but not per a an each every more less until till between into over under about this these
    those it its he she they we you i und oder der die das von bis zu im et ou de le la les des du y o el
    los las en con
""")
#: Capitalised words that are no names: what sentences begin with, pronouns, discourse words.
NO_NAME: Final = words("""
    a an the this that these those it its he she they we you i his her their our your my me us him them
    who whom whose which what when where why how if while although though because since unless until after
    before as at by for from in into of off on onto over under with within without to toward towards upon
    about above across against along among around between during through throughout and or but nor so yet
    also however therefore thus hence moreover furthermore additionally meanwhile finally first second
    third firstly secondly next then there here now today yesterday tomorrow once some any all both each
    every either neither no not none many most much more few several other others another such same only
    even just still already yes ok okay please note overall according based given including despite
    instead rather similarly likewise consequently is are was were be been being am do does did has have
    had having can could may might must shall should will would let one two three four five six seven
    eight nine ten never always often sometimes usually generally typically take use see make get keep
    call visit click contact ask avoid check open press select go give start stop try apply patients
    people users customers students children women men adults studies research researchers scientists
    experts new section chapter article table figure step page part clause appendix example question
    answer source sources context document documents summary conclusion introduction warning important
    caution info information day week month year der die das ein eine und oder aber nicht ist sind wir sie
    es ich du er für mit von zu im am auf bei nach le la les un une des et ou mais il elle nous vous ils
    elles je tu ce cette dans pour avec sur par si el los las y pero no se en con por para como su sus
    esta este
""")
#: Lower-case words that may stand inside a name.
CONNECTORS: Final = words("""
    of the de la du des del van von der den di da dos y e & for and al bin ibn ap
""")
#: Left out of a name when it is compared.
TITLES: Final = words("""
    dr mr mrs ms miss prof professor sir dame lord lady president king queen st sen rep gov rev hon mx
    madam herr frau monsieur madame señor señora
""")
SUFFIXES: Final = words("""
    inc incorporated ltd limited llc llp gmbh corp corporation co company plc ag sa nv bv spa kg se jr sr
    phd md esq group
""")
#: Names that are the same though neither letters nor initials say so.
ALIASES: Final = {
    alias: group[0]
    for group in (
        ("united states", "us", "usa", "united states america", "america"),
        ("united kingdom", "uk", "great britain", "britain"),
        ("european union", "eu"),
        ("united nations", "un"),
        ("new york city", "nyc"),
    )
    for alias in group
}
