"""Words (and pairs of kana) that hold sentences together and say little about what they are about."""

from __future__ import annotations

from typing import Final

from guardrail.evidence.tokens import term_of

STOP_WORDS: Final = frozenset(
    """
    a about above after again all also although am an and another any are as at be because been before
    being below between both but by can could did do does doing during each either for from further had
    has have having he her here hers herself him himself his how however i if in into is it its itself
    just may me might more most much must my myself no nor not of off on once only or other our ours out over
    own per rather same shall she should since so some such than that the their theirs them themselves
    then there therefore these they this those through thus to too under until up upon us very was we
    were what when where whether which while who whom whose why will with within would you your yours
    yourself
    barely hardly none scarcely
    i'd i'll i'm i've he'd he'll it'd it'll she'd she'll that'll there'll they'd they'll they're they've
    we'd we'll we're we've who'd who'll who've you'd you'll you're you've
    です ます した して ある いる こと する ない った いま しま りま ので には とは では から まで など
    """.split()  # noqa: SIM905 (a list of words reads best as words)
)
STOP_TERMS: Final = frozenset(term_of(word) for word in STOP_WORDS)
