"""Pairs of words that exclude each other when said of the same thing, written by hand.

Kept to what answers to customers, patients and employees get wrong; a word with a harmless second meaning
stays out.
"""

from __future__ import annotations

from typing import Final

from guardrail.evidence.tokens import stem

_PAIRS: Final = """
accept/reject, accept/decline, accept/refuse, add/remove, add/subtract, admit/deny, advance/delay,
after/before, above/below, over/under, allow/forbid, allow/prohibit, allow/prevent, permit/forbid,
permit/prohibit, approve/reject, approve/disapprove, arrive/depart, ascend/descend, asleep/awake,
attack/defend, available/unavailable, begin/end, begin/finish, begin/stop, start/stop, start/end,
start/finish, benefit/harm, beneficial/harmful, best/worst, better/worse, big/small, large/small,
buy/sell, purchase/sell, cause/prevent, cheap/expensive, cheaper/costlier, close/open, cold/hot,
cold/warm, common/rare, connect/disconnect, continue/stop, create/destroy, day/night, daily/weekly,
daily/monthly, weekly/monthly, monthly/yearly, monthly/annual, daily/annual, dead/alive,
decrease/increase, decline/rise, decline/increase, decline/grow, fall/rise, drop/rise, deep/shallow,
deny/confirm, difficult/easy, hard/easy, directly/indirectly, dry/wet, early/late, earlier/later,
earliest/latest, east/west, eastern/western, empty/full, employee/employer, employee/contractor,
enable/disable, enabled/disabled, encourage/discourage, enter/exit, enter/leave, exclude/include,
expand/shrink, export/import, external/internal, fail/succeed, fail/pass, failure/success, false/true,
fast/slow, faster/slower, father/mother, female/male, few/many, fewer/more, first/last, float/sink,
former/latter, free/paid, friend/enemy, future/past, gain/lose, profit/loss, generous/stingy, give/take,
good/bad, guilty/innocent, happy/sad, harmful/harmless, healthy/sick, heavy/light, high/low,
higher/lower, highest/lowest, hire/fire, human/animal, husband/wife, inside/outside, inner/outer,
input/output, join/leave, junior/senior, king/queen, known/unknown, landlord/tenant, lessor/lessee,
legal/illegal, lawful/unlawful, left/right, less/more, lend/borrow, literal/figurative, long/short,
longer/shorter, love/hate, major/minor, majority/minority, man/woman, boy/girl, brother/sister,
mandatory/optional, mandatory/voluntary, required/optional, required/prohibited, married/single,
maximum/minimum, morning/evening, morning/afternoon, morning/night, evening/afternoon,
natural/artificial, near/far, new/old, newer/older, north/south, northern/southern, odd/even,
offline/online, often/rarely, always/never, often/seldom, all/none, everyone/nobody, old/young,
older/younger, on/off, opaque/transparent, oral/intravenous, oral/topical, orally/rectally,
parent/child, partial/full, partial/complete, partially/fully, patient/doctor, peace/war,
permanent/temporary, plus/minus, poor/rich, positive/negative, powerful/weak, strong/weak,
stronger/weaker, precede/follow, pregnant/nonpregnant, presence/absence, present/absent,
prevent/promote, private/public, produce/consume, professional/amateur, promote/demote,
provider/customer, pull/push, raise/lower, raise/reduce, improve/worsen, improve/impair, rapid/gradual,
rapidly/slowly, quickly/slowly, receive/send, recommended/discouraged, refund/charge,
refundable/nonrefundable, reversible/irreversible, rough/smooth, rural/urban, safe/dangerous,
safe/unsafe, safely/dangerously, same/different, similar/different, save/spend, save/delete,
seller/buyer, seller/purchaser, simple/complex, soft/hard, son/daughter, stable/unstable,
sufficient/insufficient, summer/winter, spring/autumn, support/oppose, supports/opposes,
supplier/customer, indicated/contraindicated, swallow/chew, swallow/dissolve,
tall/short, thick/thin, tight/loose, top/bottom,
toxic/nontoxic, upper/lower, up/down, upstairs/downstairs, upgrade/downgrade, useful/useless,
vertical/horizontal, victory/defeat, win/lose, winner/loser, visible/invisible, weekday/weekend,
wide/narrow, with/without, written/oral, written/verbal, yes/no, adult/child, adults/children,
aunt/uncle, prince/princess, actor/actress, domestic/international, national/international,
local/remote, inbound/outbound, economy/business, debit/credit, gross/net, wholesale/retail,
fixed/variable, hourly/daily, hourly/monthly, exempt/liable, exempt/subject, valid/invalid,
valid/expired, void/valid, active/inactive, encrypted/unencrypted, enforceable/unenforceable,
exclusive/nonexclusive, waive/charge, waive/enforce, terminate/renew, cancel/renew, expire/renew,
immediately/eventually, breakfast/dinner, sunrise/sunset, monday/tuesday, fasting/fed, hungry/sated,
acute/chronic, benign/malignant, vein/artery, hypertension/hypotension, overdose/underdose,
systolic/diastolic, constipation/diarrhea, constipation/diarrhoea, stimulate/inhibit, activate/inhibit,
activate/deactivate, agonist/antagonist, increase/reduce, increase/lower, grow/shrink,
outperform/underperform, exceed/miss, automatic/manual, automatically/manually, half/whole, half/full,
hot/cool, boil/freeze, melt/freeze, solid/liquid
"""

# Of each group only one can be true of a thing at a time.
_GROUPS: Final = """
red green blue yellow orange amber purple white black grey pink brown
spring summer autumn winter
north south east west
morning afternoon evening night
breakfast lunch dinner
hour day week month year
hourly daily weekly fortnightly monthly quarterly yearly
oral intravenous topical rectal nasal
bronze silver gold platinum
small medium large
liquid solid gas
tablet capsule syrup injection
phone email fax post
first second third fourth fifth last
customer supplier
in outside
within outside
"""

ANTONYMS: Final[dict[str, frozenset[str]]] = {}
"""Stem to the stems of its opposites."""


def _fill() -> None:
    both: dict[str, set[str]] = {}
    for pair in _PAIRS.replace("\n", " ").split(","):
        one, other = (stem(word) for word in pair.strip().split("/"))
        if one != other:
            both.setdefault(one, set()).add(other)
            both.setdefault(other, set()).add(one)
    for group in _GROUPS.strip().splitlines():
        stems = {stem(word) for word in group.split()}
        for word in stems:
            both.setdefault(word, set()).update(stems - {word})
    ANTONYMS.update((word, frozenset(others)) for word, others in both.items())


_fill()
