"""Names by kind, and phrases that answers add without a source. Written by hand."""

from __future__ import annotations

from typing import Final

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
SMALL_NUMBERS: Final = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip


def _listed(names: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in names.replace("\n", " ").split(","))


GAZETTEER: Final[dict[str, tuple[str, ...]]] = {
    "country": _listed(
        """France, Germany, Italy, Spain, Portugal, Belgium, Austria, Switzerland, Poland, Hungary, Romania,
        Bulgaria, Greece, Turkey, Russia, Ukraine, Finland, Sweden, Norway, Denmark, Iceland, Ireland,
        England,
        Scotland, Wales, Canada, Mexico, Brazil, Argentina, Chile, Peru, Colombia, Venezuela, Cuba, Jamaica,
        Egypt, Morocco, Algeria, Tunisia, Nigeria, Ghana, Kenya, Ethiopia, Uganda, Tanzania, Zimbabwe,
        South Africa, Israel, Iran, Iraq, Syria, Jordan, Lebanon, Afghanistan, Pakistan, India, Bangladesh,
        Nepal, China, Japan, Vietnam, Thailand, Malaysia, Singapore, Indonesia, Australia, New Zealand,
        Croatia, Serbia, Slovenia, Estonia, Latvia, Lithuania, South Korea, North Korea, Cambodia, Laos"""
    ),
    "state": _listed(
        """Alabama, Alaska, Arizona, Arkansas, California, Colorado, Connecticut, Delaware, Florida, Hawaii,
        Idaho, Illinois, Indiana, Iowa, Kansas, Kentucky, Louisiana, Maine, Maryland, Massachusetts, Michigan,
        Minnesota, Mississippi, Missouri, Montana, Nebraska, Nevada, New Hampshire, New Jersey, New Mexico,
        North Carolina, North Dakota, Ohio, Oklahoma, Oregon, Pennsylvania, South Carolina, South Dakota,
        Tennessee, Texas, Utah, Vermont, Virginia, West Virginia, Wisconsin, Wyoming"""
    ),
    "city": _listed(
        """London, Paris, Berlin, Munich, Hamburg, Rome, Milan, Naples, Venice, Madrid, Barcelona, Lisbon,
        Vienna, Zurich, Geneva, Brussels, Amsterdam, Copenhagen, Stockholm, Oslo, Helsinki, Dublin, Edinburgh,
        Glasgow, Manchester, Liverpool, Birmingham, Bristol, Leeds, Moscow, Warsaw, Prague, Budapest, Athens,
        Istanbul, Cairo, Tokyo, Kyoto, Osaka, Beijing, Shanghai, Seoul, Mumbai, Sydney, Melbourne, Brisbane,
        Perth, Auckland, Toronto, Montreal, Vancouver, Ottawa, Chicago, Boston, Philadelphia, Detroit,
        Cleveland, Houston, Dallas, Atlanta, Miami, Seattle, Denver, Baltimore, Pittsburgh, Cincinnati,
        Minneapolis, St. Louis, New Orleans, San Francisco, Los Angeles, San Diego, Las Vegas, Phoenix,
        Nashville, Memphis, New York City"""
    ),
    "nationality": _listed(
        """American, British, English, Scottish, Welsh, Irish, French, German, Italian, Spanish, Portuguese,
        Dutch, Belgian, Swiss, Austrian, Polish, Hungarian, Romanian, Greek, Turkish, Russian, Ukrainian,
        Finnish, Swedish, Norwegian, Danish, Canadian, Mexican, Brazilian, Argentine, Chilean, Peruvian,
        Cuban, Egyptian, Moroccan, Nigerian, Kenyan, Ethiopian, Israeli, Iranian, Iraqi, Indian, Pakistani,
        Chinese, Japanese, Korean, Vietnamese, Thai, Australian, Indonesian"""
    ),
    "continent": ("Africa", "Asia", "Europe", "North America", "South America"),
    "month": MONTHS,
    "weekday": WEEKDAYS,
}

OVERLAPPING: Final = (
    {"British", "English", "Scottish", "Welsh"}, {"England", "Scotland", "Wales"}, {"Korean"},
    {"American"}, {"Dutch", "Belgian"}, {"North Korea", "South Korea"},
)  # fmt: skip
"""Names of which one may be true where the other is."""

FIRST_NAMES: Final = frozenset(
    """
    James John Robert Michael William David Richard Joseph Thomas Charles Christopher Daniel Matthew Anthony
    Mark Donald Steven Paul Andrew Joshua Kenneth Kevin Brian George Edward Ronald Timothy Jason Jeffrey Ryan
    Jacob Gary Nicholas Eric Jonathan Stephen Larry Justin Scott Brandon Benjamin Samuel Gregory Frank
    Alexander
    Raymond Patrick Jack Dennis Jerry Tyler Aaron Jose Henry Adam Douglas Nathan Peter Zachary Kyle Walter
    Harold Jeremy Ethan Carl Keith Roger Gerald Arthur Albert Fred Ernest Philip Louis Martin Simon Tim Tom
    Ben
    Sam Joe Jim Bob Bill Mike Steve Dave Dan Chris Alan Allen Bruce Ralph Roy Eugene Howard Hugh Ian Neil
    Oliver
    Oscar Victor Vincent Ray Lee Leo Max Nick Pete Rick Ron Ted Tony Will Alex Alfred Francis Frederick Harry
    Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen Nancy Lisa Margaret Betty Sandra
    Ashley Dorothy Kimberly Emily Donna Michelle Carol Amanda Melissa Deborah Stephanie Rebecca Laura Sharon
    Cynthia Kathleen Amy Angela Shirley Anna Ruth Brenda Pamela Nicole Katherine Virginia Catherine Christine
    Samantha Debra Janet Rachel Carolyn Emma Maria Heather Diane Julie Joyce Victoria Kelly Christina Joan
    Evelyn Lauren Judith Olivia Frances Martha Cheryl Megan Andrea Hannah Jacqueline Ann Jean Alice Kathryn
    Gloria Teresa Sara Janice Julia Grace Rose Helen Jane Kate Lucy Marie Charlotte Sophie Ellen Eleanor
    Claire
    """.split()  # noqa: SIM905
)

HEADS: Final = frozenset(
    """
    University College School Institute Academy Museum Hospital River Lake Mountain Mountains Island Islands
    County Province District Park Airport Station Bridge Street Avenue Church Cathedral Castle Palace Stadium
    Company Corporation Records Studios Pictures Press Times Award Awards Prize Cup League Championship
    Championships Festival Party Empire Army Navy Theatre Theater Bank Valley Bay Sea Ocean
    """.split()  # noqa: SIM905
)
"""Last words that tell what a name is of."""

ADDITIONS: Final = (
    ", making it the first of its kind in the country", ", which drew widespread praise from critics",
    ", according to a government report", ", despite strong opposition from local residents",
    " for the third year in a row", ", at a total cost of 2.4 million dollars",
    ", and the number has doubled since then", ", which experts regard as a turning point",
    " after a long legal dispute", ", largely because of financial difficulties",
    ", the highest figure on record", " with the support of the European Union",
    ", and similar plans exist in other cities", ", as a survey of 1,200 people confirmed",
    ", although the decision was later reversed", ", which caused considerable controversy",
    " in front of more than 20,000 spectators", ", and it has won several awards for this",
    ", mainly to reduce costs", ", following the advice of an independent committee",
    ", which is still the case today", " without any outside funding", ", to the surprise of many observers",
    " within less than two years", ", earning a national award in the process",
    ", as later studies have confirmed", ", which led to a sharp fall in prices",
    ", a record that still stands", ", even though critics had warned against it",
    " on the recommendation of a close friend", ", partly for health reasons",
    ", and plans for an extension were announced soon afterwards", ", the second such case that year",
    ", and about a third of them came from abroad", ", replacing an older version from the 1970s",
    " because of a shortage of skilled workers", " and donated the proceeds to charity",
    ", which made headlines around the world", ", two years later than planned",
    " at the request of the local authorities", ", and this is free of charge for children under six",
    ", but only after a long period of negotiation", " and was paid 50,000 dollars for it",
    ", with the exception of the winter months", ", which has remained unchanged ever since",
    ", thanks to a donation from an anonymous benefactor", ", as required by federal law",
    ", and no side effects have been reported", ", provided that the conditions are met in advance",
    ", which improves results by up to 30 percent", ", inspired by a trip to South America",
    " before moving permanently to Switzerland", ", one of the largest projects in the region",
    ", and it quickly became a bestseller", ", the only one to do so",
    ", but the cause was never established",
    " for life", " by courier", " free of charge", " every year", " at night", " by email", " with food",
    " by law", ", including during pregnancy", " for up to two weeks", " in most cases", " within 24 hours",
    " at no extra cost", " without a prescription", ", including on weekends", " in all member states",
    " twice a day", " for adults only", " on request", " in writing", " from home", " in advance",
    " before surgery", " with a full refund", ", even abroad", " for a small fee", " once a month",
    " by phone", " in cash", " permanently", " automatically", " anonymously", " in both countries",
    " since childhood", " together with his brother", " under a pseudonym", " by accident",
    " on a single day", " in front of witnesses", ", and in children", " for the whole family",
    " over several years", " as a volunteer", " for political reasons",
)  # fmt: skip
"""What an answer adds to a sentence that its source does not say."""

OPENINGS: Final = (
    "Despite heavy criticism, ", "After years of preparation, ", "According to official figures, ",
    "To everyone's surprise, ", "For financial reasons, ", "With the help of volunteers, ",
    "Shortly before the war, ", "On the advice of experts, ", "Following a public vote, ",
    "Because of bad weather, ", "As a result of new legislation, ", "Under pressure from investors, ",
)  # fmt: skip
