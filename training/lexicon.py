"""Word lists for made pairs, written by hand: opposites, comparisons, qualifiers, words that mean the same.

A word is listed only where almost every use of it in running prose has the meaning that the list is for;
words such as "left", "right", "light" or "present" are left out on purpose.
"""

from __future__ import annotations

from typing import Final


def _pairs(listed: str) -> dict[str, tuple[str, ...]]:
    """``a/b, c/d`` -> both directions."""
    found: dict[str, list[str]] = {}
    for pair in listed.replace("\n", " ").split(","):
        one, other = pair.strip().split("/")
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return {word: tuple(others) for word, others in found.items()}


def _verbs(listed: str) -> str:
    """``accept/reject`` -> all forms of regular verbs, as pairs."""
    pairs: list[str] = []
    for pair in listed.replace("\n", " ").split(","):
        one, other = (_forms(word) for word in pair.strip().split("/"))
        pairs.extend(f"{a}/{b}" for a, b in zip(one, other, strict=True))
    return ", ".join(pairs)


def _forms(verb: str) -> tuple[str, str, str, str]:
    """Base, third person, past, -ing of a regular verb."""
    if verb.endswith("e"):
        return verb, verb + "s", verb + "d", verb[:-1] + "ing"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb, verb[:-1] + "ies", verb[:-1] + "ied", verb + "ing"
    if verb.endswith(("s", "sh", "ch", "x")):
        return verb, verb + "es", verb + "ed", verb + "ing"
    return verb, verb + "s", verb + "ed", verb + "ing"


ANTONYMS: Final = _pairs(
    """accepted/rejected, accepts/rejects, wins/loses, winning/losing, success/failure,
    successful/unsuccessful, successfully/unsuccessfully, victory/defeat, strong/weak, strongly/weakly,
    strength/weakness, positive/negative, positively/negatively, legal/illegal, legally/illegally,
    public/private, publicly/privately, male/female, internal/external, internally/externally,
    domestic/foreign, rural/urban, ancient/modern, rich/poor, wealthy/poor, cheap/expensive, hot/cold,
    warm/cool, wet/dry, thick/thin, wide/narrow, deep/shallow, heavy/lightweight, safe/dangerous,
    safe/unsafe, healthy/unhealthy, married/divorced, alive/dead, guilty/innocent, temporary/permanent,
    temporarily/permanently, voluntary/compulsory, mandatory/optional, required/optional,
    possible/impossible, able/unable, active/inactive, effective/ineffective, common/rare, popular/obscure,
    famous/unknown, visible/invisible, complete/incomplete, formal/informal, formally/informally,
    official/unofficial, officially/unofficially, direct/indirect, directly/indirectly, regular/irregular,
    professional/amateur, major/minor, easy/difficult, easily/hardly, simple/complicated, quickly/slowly,
    rapid/slow, rapidly/slowly, early/late, old/new, young/old, tall/short, large/small, big/small,
    huge/tiny, long/short, high/low, full/empty, open/closed, opened/closed, opening/closing,
    entrance/exit, entered/exited, enter/leave, arrived/departed, arrive/depart, arrival/departure,
    joined/left, appointed/dismissed, hired/fired, promoted/demoted, promoted/relegated,
    elected/defeated, supported/opposed, supports/opposes, support/oppose, supporter/opponent,
    supporters/opponents, approved/rejected, approval/rejection, agreed/refused, agrees/refuses,
    allowed/forbidden, permitted/prohibited, encouraged/discouraged, encourages/discourages,
    included/excluded, includes/excludes, including/excluding, inclusion/exclusion,
    praised/criticized, praised/criticised, praise/criticism, loved/hated, loves/hates, friend/enemy,
    friends/enemies, ally/enemy, allies/enemies, friendly/hostile, attack/defence, attacked/defended,
    buyer/seller, bought/sold, buying/selling, buy/sell, purchased/sold, lent/borrowed, borrow/lend,
    imports/exports, imported/exported, import/export, employer/employee, teacher/student,
    teachers/students, parents/children, mother/father, son/daughter, sons/daughters, brother/sister,
    brothers/sisters, husband/wife, uncle/aunt, nephew/niece, king/queen, prince/princess, men/women,
    man/woman, boy/girl, boys/girls, actor/actress, born/died, birth/death, built/demolished,
    construction/demolition, constructed/demolished, created/destroyed, creation/destruction,
    appeared/disappeared, appears/disappears, appearance/disappearance, connected/disconnected,
    attached/detached, separate/joint, separately/jointly, united/divided, together/separately,
    alone/together, inside/outside, indoor/outdoor, indoors/outdoors, upstream/downstream, uphill/downhill,
    upstairs/downstairs, inner/outer, northern/southern, eastern/western, north/south, east/west,
    northeast/southwest, northwest/southeast, day/night, morning/evening, summer/winter, spring/autumn,
    profit/loss, profits/losses, profitable/unprofitable, income/expenditure, surplus/deficit,
    advantage/disadvantage, advantages/disadvantages, benefit/harm, beneficial/harmful, useful/useless,
    reliable/unreliable, stable/unstable, certain/uncertain, clear/unclear, known/unknown,
    similar/different, equal/unequal, identical/different, everywhere/nowhere,
    everyone/nobody, everything/nothing, begin/end, begins/ends, began/ended, beginning/end, start/finish,
    started/finished, starts/ends, former/current, previous/next, preceding/following,
    remained/ceased, survived/perished, remembered/forgot, discovered/overlooked, succeed/fail,
    succeeded/failed, improved/worsened, improvement/deterioration, expanded/shrank,
    raised/lowered, upper/lower, majority/minority, maximum/minimum, optimistic/pessimistic,
    liberal/conservative, democratic/authoritarian, civilian/military, natural/artificial, fresh/stale,
    raw/cooked, sweet/bitter, soft/hard, smooth/rough, sharp/blunt, clean/dirty, happy/unhappy,
    satisfied/dissatisfied, pleased/displeased, proud/ashamed, brave/cowardly, generous/stingy,
    honest/dishonest, loyal/disloyal, peaceful/violent, peace/war, win/lose, gain/lose,
    remain/leave, stayed/left, stay/leave, returned/departed, enabled/prevented, enables/prevents,
    enable/prevent, caused/prevented, causes/prevents, cause/prevent, added/removed, adding/removing,
    adds/removes, deployed/withdrawn, advanced/retreated, captured/released, arrested/released,
    convicted/acquitted, conviction/acquittal, confirmed/denied, confirms/denies, confirm/deny,
    admitted/denied, acknowledged/denied, proved/disproved, agreed/disagreed, agree/disagree,
    agreement/disagreement, trust/distrust, hope/despair, best/worst, good/bad"""
    + ", "
    + _verbs(
        "accept/refuse, enable/disable, extend/shorten, expand/reduce, accelerate/delay, strengthen/weaken,"
        "appear/vanish, confirm/deny, lengthen/shorten, tighten/loosen, create/destroy, activate/deactivate,"
        "install/remove, attach/remove, insert/remove, protect/endanger, recommend/discourage"
    )
)
ANTONYMS["won"] = ("lost",)  # not the other way: "lost" is many things
"""Opposites, as they stand in text (lower case)."""

COMPARISONS: Final = _pairs(
    """higher/lower, larger/smaller, bigger/smaller, greater/smaller, older/younger, longer/shorter,
    taller/shorter, faster/slower, better/worse, earlier/later, stronger/weaker, cheaper/dearer,
    wider/narrower, deeper/shallower, warmer/cooler, hotter/colder, richer/poorer,
    newer/older, easier/harder, closer/farther, highest/lowest, largest/smallest, biggest/smallest,
    oldest/youngest, oldest/newest, longest/shortest, tallest/shortest, fastest/slowest,
    earliest/latest, strongest/weakest, cheapest/dearest, heaviest/lightest, deepest/shallowest,
    hottest/coldest, richest/poorest, busiest/quietest, before/after, above/below, beneath/above, rose/fell,
    risen/fallen, rising/falling, grew/shrank, growing/shrinking, growth/decline, grown/shrunk,
    gains/losses, upward/downward, upwards/downwards, exceeded/missed, outnumbered/matched, doubled/halved,
    doubling/halving, tripled/halved, superior/inferior, senior/junior"""
    + ", "
    + _verbs("increase/decrease, increase/reduce, raise/lower, improve/worsen, lengthen/shorten")
)
"""Words that order two things, and the word for the other order."""

WEAKENED: Final[dict[str, str]] = {
    "often": "always", "usually": "always", "sometimes": "always", "generally": "always",
    "typically": "always", "frequently": "always", "occasionally": "always", "commonly": "always",
    "normally": "always", "rarely": "never", "seldom": "never", "mainly": "exclusively",
    "mostly": "exclusively", "primarily": "exclusively", "largely": "entirely", "partly": "entirely",
    "partially": "entirely", "predominantly": "exclusively", "chiefly": "exclusively",
}  # fmt: skip
"""An adverb that leaves room, and the one that leaves none."""

DOUBTS: Final = (
    "probably", "possibly", "perhaps", "reportedly", "allegedly", "apparently", "presumably", "supposedly",
    "seemingly", "purportedly", "potentially",
)  # fmt: skip
"""Adverbs without which a sentence says more."""

SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "began": ("started",), "begins": ("starts",), "commenced": ("began",), "purchased": ("bought",),
    "film": ("movie",), "films": ("movies",), "approximately": ("about", "around", "roughly"),
    "large": ("big",), "located": ("situated",), "assisted": ("helped",), "attempted": ("tried",),
    "numerous": ("many",), "concluded": ("ended",), "resided": ("lived",), "resides": ("lives",),
    "nearly": ("almost",), "almost": ("nearly",), "prior to": ("before",), "due to": ("because of",),
    "as well as": ("and also",), "in order to": ("to",), "a number of": ("several",),
    "the majority of": ("most of",), "took place": ("was held",), "consists of": ("is made up of",),
    "comprises": ("consists of",), "is located in": ("is in", "lies in"), "is situated in": ("lies in",),
    "physician": ("doctor",), "physicians": ("doctors",), "children": ("kids",), "automobile": ("car",),
    "automobiles": ("cars",), "vehicle was": ("vehicle had been",), "obtained": ("got",),
    "sufficient": ("enough",), "requires": ("needs",), "required": ("needed",), "demonstrated": ("showed",),
    "revealed": ("showed",), "subsequently": ("later", "afterwards"), "additionally": ("also",),
    "currently": ("at present", "now"), "presently": ("currently",), "formerly": ("previously",),
    "previously": ("earlier",), "primarily": ("mainly",), "mainly": ("mostly",), "mostly": ("mainly",),
    "usually": ("normally",), "frequently": ("often",), "often": ("frequently",), "entire": ("whole",),
    "whole": ("entire",), "initially": ("at first",), "constructed": ("built",), "established": ("set up",),
    "founded": ("established",), "created": ("produced",), "selected": ("chosen",), "enormous": ("huge",),
    "error": ("mistake",), "errors": ("mistakes",), "employed": ("used",), "utilized": ("used",),
    "utilised": ("used",), "stated": ("said",), "remarked": ("said",), "announced": ("made public",),
    "residents": ("inhabitants",), "inhabitants": ("residents",), "died": ("passed away",),
    "spouse": ("partner",), "murdered": ("killed",), "permitted": ("allowed",), "permits": ("allows",),
    "assists": ("helps",), "whilst": ("while",), "upon": ("on",), "amongst": ("among",),
    "is known as": ("is called",), "was known as": ("was called",), "also known as": ("also called",),
    "well known": ("famous",), "well-known": ("famous",), "renowned": ("famous",),
    "because": ("since",), "although": ("though",), "though": ("although",), "however": ("nevertheless",),
    "therefore": ("so",), "consequently": ("as a result",), "several": ("a number of",),
    "received": ("was given",), "was awarded": ("received",), "were awarded": ("received",),
    "defeated": ("beat",), "finished": ("completed",), "completed": ("finished",), "returned": ("went back",),
    "journey": ("trip",), "jail": ("prison",), "prison": ("jail",), "salary": ("pay",), "firm": ("company",),
    "aid": ("help",), "wealthy": ("rich",), "rapidly": ("quickly",), "swiftly": ("quickly",),
    "difficult": ("hard",), "important": ("significant",), "significant": ("important",),
    "primary": ("main",), "main": ("principal",), "principal": ("main",), "novel": ("book",),
    "served as": ("worked as", "acted as"), "collaborated": ("worked together",), "gained": ("obtained",),
    "is composed of": ("consists of",), "as of": ("as at",), "a variety of": ("various",),
    "various": ("different",), "appointed as": ("made",), "graduated from": ("got a degree from",),
    "was born in": ("came into the world in",), "moved to": ("relocated to",), "relocated to": ("moved to",),
    "situated": ("located",), "released": ("brought out",), "ill": ("sick",), "outcome": ("result",),
    "results": ("findings",), "study": ("piece of research",), "researchers": ("scientists",),
    "participants": ("people taking part",), "assistance": ("help",), "provides": ("offers",),
    "offers": ("provides",), "provided": ("supplied",), "allows": ("lets",), "discovered": ("found",),
    "happened": ("took place",), "occurred": ("took place",), "occurs": ("happens",), "nation": ("country",),
    "beverage": ("drink",), "beverages": ("drinks",), "infant": ("baby",), "infants": ("babies",),
    "instructor": ("teacher",), "attorney": ("lawyer",), "attorneys": ("lawyers",), "holiday": ("vacation",),
    "autumn": ("fall",), "aircraft": ("plane",), "in the course of": ("during",), "by means of": ("through",),
    "with regard to": ("about",), "at the time of": ("during",), "on a regular basis": ("regularly",),
}  # fmt: skip
"""Words and phrases that may be exchanged in almost any sentence (lower case)."""

_UNSAFE: Final = (
    "vehicle was", "was born in", "announced", "released", "results", "study", "participants", "novel",
    "allows", "appointed as", "autumn", "received", "discovered", "important", "significant", "because",
    "mainly", "provided", "created", "employed", "founded", "required", "aircraft", "main", "as well as",
    "as of", "as at", "returned", "aid", "however", "took place", "nation", "established", "murdered",
    "obtained", "selected", "primary", "though", "researchers", "upon", "previously", "firm", "upper",
    "additionally",
)  # fmt: skip
for _word in _UNSAFE:  # looked at in samples: the grammar or the meaning suffers too often
    SYNONYMS.pop(_word, None)
del _word

PAST_TO_BASE: Final[dict[str, str]] = dict(
    pair.split("/")
    for pair in [
        "won/win",
        "wrote/write",
        "became/become",
        "began/begin",
        "made/make",
        "took/take",
        "gave/give",
        "went/go",
        "came/come",
        "held/hold",
        "led/lead",
        "left/leave",
        "lost/lose",
        "met/meet",
        "paid/pay",
        "ran/run",
        "said/say",
        "sang/sing",
        "sold/sell",
        "sent/send",
        "spent/spend",
        "stood/stand",
        "taught/teach",
        "thought/think",
        "told/tell",
        "wore/wear",
        "built/build",
        "bought/buy",
        "brought/bring",
        "chose/choose",
        "drew/draw",
        "drove/drive",
        "fell/fall",
        "felt/feel",
        "fought/fight",
        "found/find",
        "flew/fly",
        "got/get",
        "grew/grow",
        "kept/keep",
        "knew/know",
        "rose/rise",
        "sat/sit",
        "saw/see",
        "shot/shoot",
        "spoke/speak",
        "swam/swim",
        "threw/throw",
        "won/win",
        "received/receive",
        "moved/move",
        "released/release",
        "published/publish",
        "directed/direct",
        "produced/produce",
        "starred/star",
        "appeared/appear",
        "worked/work",
        "lived/live",
        "studied/study",
        "graduated/graduate",
        "joined/join",
        "founded/found",
        "established/establish",
        "created/create",
        "designed/design",
        "recorded/record",
        "played/play",
        "served/serve",
        "married/marry",
        "died/die",
        "retired/retire",
        "returned/return",
        "opened/open",
        "closed/close",
        "announced/announce",
        "signed/sign",
        "agreed/agree",
        "refused/refuse",
        "accepted/accept",
        "rejected/reject",
        "attended/attend",
        "completed/complete",
        "developed/develop",
        "discovered/discover",
        "earned/earn",
        "finished/finish",
        "helped/help",
        "introduced/introduce",
        "invented/invent",
        "killed/kill",
        "launched/launch",
        "performed/perform",
        "purchased/purchase",
        "reached/reach",
        "represented/represent",
        "scored/score",
        "started/start",
        "supported/support",
        "visited/visit",
        "voted/vote",
        "acquired/acquire",
        "defeated/defeat",
        "replaced/replace",
        "succeeded/succeed",
        "reported/report",
        "included/include",
        "contained/contain",
        "featured/feature",
        "caused/cause",
        "remained/remain",
        "increased/increase",
        "decreased/decrease",
        "improved/improve",
        "changed/change",
        "continued/continue",
        "debuted/debut",
        "premiered/premiere",
        "composed/compose",
        "painted/paint",
    ]
)
"""Simple past -> base form, for "did not ..."."""

PARTICIPLE_TO_PAST: Final[dict[str, str]] = {
    "written": "wrote", "sung": "sang", "drawn": "drew", "chosen": "chose", "taken": "took", "given": "gave",
    "led": "led", "built": "built", "won": "won", "held": "held", "made": "made", "bought": "bought",
    "sold": "sold", "found": "found", "shot": "shot", "taught": "taught", "beaten": "beat",
    "directed": "directed", "produced": "produced", "founded": "founded", "designed": "designed",
    "published": "published", "recorded": "recorded", "composed": "composed", "created": "created",
    "developed": "developed", "established": "established", "discovered": "discovered",
    "invented": "invented", "painted": "painted", "edited": "edited", "owned": "owned",
    "acquired": "acquired", "purchased": "purchased", "defeated": "defeated", "appointed": "appointed",
    "introduced": "introduced", "launched": "launched", "organized": "organized", "organised": "organised",
    "performed": "performed", "replaced": "replaced", "succeeded": "succeeded", "awarded": "awarded",
    "described": "described", "proposed": "proposed", "commissioned": "commissioned", "killed": "killed",
    "hosted": "hosted", "sponsored": "sponsored", "supported": "supported", "nominated": "nominated",
    "managed": "managed", "controlled": "controlled", "signed": "signed", "adopted": "adopted",
    "conducted": "conducted", "funded": "funded", "illustrated": "illustrated", "coached": "coached",
    "voiced": "voiced", "played": "played", "portrayed": "portrayed", "released": "released",
    "captured": "captured", "constructed": "constructed", "praised": "praised", "criticized": "criticized",
}  # fmt: skip
"""Past participle -> simple past, for passive to active."""
