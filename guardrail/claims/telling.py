"""Whether a few words tell something that can be wrong, where only a name is expected.

The text of a link, what stands behind "Source:", what a sentence leads over to: "the annual report" is a
name; "adults may take 20 g" tells something. A verb tells, where something that could be its subject stands
before it; so does an amount, a permission and a denial.
"""

from __future__ import annotations

import re
from typing import Final

from guardrail.claims.phrases import pattern, words
from guardrail.claims.severity_lexicon import lexicon, words_of

_AMOUNT: Final = pattern("amount")
_FINITE: Final = pattern("finite")
_PERMISSIONS: Final = words("permissions") | lexicon().lists["modals"]
_DENIALS: Final = words("denials")
_INTERROGATIVES: Final = words("interrogatives")
_ADDRESS: Final = re.compile(r"[a-z]{2,6}://|www\.|[^\s@]{1,64}@")
_MONTH: Final = re.compile(r"\bmay(?= \d|\W*\Z)")
# "Fees and costs", "the terms of use": no subject, or none of its own.
_NOUN_BEFORE: Final = re.compile(r"(?:\A|\b(?:and|or|of|the|und|der|et|de|y|e)|[,&:–—-])\s*\Z")
_INVITES: Final = frozenset("call contact visit use".split())  # noqa: SIM905
_PARTICIPLE_OF: Final = re.compile(r" (?:to|by|from|in|on|at|for|the|a|an|all|every|no|its|their|\d)")
_REACH: Final = 12


def tells(text: str) -> bool:
    """Whether ``text``, a few words in lower case, tells more than a name. Linear in its length."""
    plain = text.strip()
    if not plain or _ADDRESS.match(plain):
        return False
    if _AMOUNT.search(plain):
        return True
    plain = _MONTH.sub(" ", plain)
    said = words_of(plain)
    if not said or said[0] in _INTERROGATIVES:
        return False
    return permits(plain) or any(_is_verb(plain, verb) for verb in _FINITE.finditer(plain))


def permits(plain: str) -> bool:
    """Whether something is permitted, denied or demanded in ``plain``, which is in lower case."""
    said = words_of(plain)
    return not _PERMISSIONS.isdisjoint(said) or not _DENIALS.isdisjoint(said)


def _is_verb(plain: str, found: re.Match[str]) -> bool:
    """Whether a word that may be a verb is one: a noun of the same letters has no subject before it."""
    if found[0] in _INVITES or _NOUN_BEFORE.search(plain, max(0, found.start() - _REACH), found.start()):
        return False
    return not found[0].endswith("ed") or _PARTICIPLE_OF.match(plain, found.end()) is not None
