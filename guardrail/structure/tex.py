"""Formulas as readers see them: "$\\frac{3}{4} \\leq p$" as "3/4 ≤ p", and "10^{-3}" as "10⁻³"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from guardrail.shipped import shipped_text

_MAY_BE_TEX: Final = re.compile(r"[\\^$]")
_FORMULA: Final = re.compile(
    r"(?<![\\$\w])(?P<dollars>\${1,2})(?=[^\s$])(?P<within>(?:[^$\\\n]|\\.){1,400}+)(?<!\s)(?P<end>\${1,2})(?![\d$])"
    r"|\\\((?P<round>(?:[^\\\n]|\\[^()\n]){1,400}+)\\\)"
    r"|\\\[(?P<square>(?:[^\\]|\\[^\[\]]){1,800}+)\\\]"
)
_RELATES: Final = re.compile(r"[\\^_=<>≤≥]")
_ATOM: Final = re.compile(r"[-+−±]?\d+(?:[.,]\d+)?|[A-Za-z]")
_PROSE: Final = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{4}")  # outside of commands
_SAID: Final = re.compile(r"\\[A-Za-z]{4,12}\{[^{}]{0,200}\}")
_NESTED: Final = r"(?:[^{}\n]|\{[^{}\n]{0,60}\}){1,80}+"
_POWER: Final = r"[-+−]?\d{1,4}"


@cache
def _signs() -> dict[str, str]:
    return json.loads(shipped_text("guardrail.structure", "tex.json"))  # type: ignore[no-any-return]


@cache
def _marks() -> re.Pattern[str]:
    names = "|".join(_signs())
    return re.compile(
        rf"""
        \\[cdt]?frac(?:\{{(?P<over>{_NESTED})\}}\{{(?P<under>{_NESTED})\}}|\s?(?P<half>\d)\s?(?P<of>\d)(?!\d))
      | (?<=[\w)\]}}])(?<![A-Za-z]{{4}})\^(?:\{{(?P<braced>{_POWER})\}}|(?P<power>{_POWER})(?![\w{{]|[.,]\d))
      | \^\{{?\\(?P<degree>circ|prime)(?![A-Za-z])\}}?
      | \\sqrt\{{(?P<root>{_NESTED})\}}
      | \\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname)\{{(?P<words>[^{{}}\n]{{0,200}})\}}
      | \\(?P<sign>{names})(?![A-Za-z])
      | \\(?P<thin>[,;:!])(?!\*)
      | (?<=\d)(?P<comma>\{{,\}})(?=\d)
        """,
        re.VERBOSE,
    )


_FACTOR: Final = re.compile(r" [A-Za-z](?![A-Za-z])")
_BRACE: Final = re.compile(r"(?<!\\)[{}]")
_COMMAND: Final = re.compile(r"\\[A-Za-z]{1,20}(?P<takes>\s?[{\[])?")
_SINGLE: Final = re.compile(r"\s*(?:[-+−]?\d+(?:[.,]\d+)?|(?:[^\W\d_]|\\[A-Za-z]+)(?:_\w|_\{\w{1,8}\})?)\s*")
RAISED: Final = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")

Change = tuple[int, int, str]
"""Where something starts and ends, and what is shown instead."""


def formula_changes(text: str) -> list[Change]:
    """What is shown otherwise than written in the formulas of ``text``: ascending and apart. Linear."""
    if not _MAY_BE_TEX.search(text):
        return []
    found = list(_commands(text, 0, len(text)))
    for formula in _FORMULA.finditer(text) if "$" in text or "\\" in text else ():
        kind = formula.lastgroup
        kind = "within" if kind == "end" else kind or ""
        within = formula[kind]
        glued = text[formula.end() : formula.end() + 1].isalpha() and "\\" not in within
        if kind == "within" and (glued or _PROSE.search(_SAID.sub("", within)) or not _is_formula(within)):
            continue
        if kind != "within" and not _RELATES.search(within):
            continue
        start, end = formula.span(kind)
        found += ((formula.start(), start, ""), (end, formula.end(), ""))
        known = {at for at, _, _ in found}
        others = [mark for mark in _COMMAND.finditer(text, start, end) if mark.start() not in known]
        found += ((mark.start(), mark.start() + 1, "") for mark in others)
        if not any(mark["takes"] for mark in others):  # what "\\binom{5}{2}" makes of both is not known here
            found += ((*brace.span(), "") for brace in _BRACE.finditer(text, start, end))
    found.sort(key=lambda change: (change[0], -change[1]))
    apart: list[Change] = []
    for change in found:
        if not apart or change[0] >= apart[-1][1]:
            apart.append(change)
    return apart


def _is_formula(within: str) -> bool:
    """Whether what stands between dollars is a formula: "$x$", "$20$", "$p < 0.05$"."""
    return _RELATES.search(within) is not None or _ATOM.fullmatch(within) is not None


def _commands(text: str, at: int, stop: int) -> Iterator[Change]:
    for match in _marks().finditer(text, at, stop):
        start, end = match.span()
        mixed = " " if text[start - 1 : start].isdigit() else ""  # "2\\frac{1}{2}" is 2 1/2
        if match["over"] is not None:
            yield from _within(match, "over", start, match.start("over"), "/", mixed)
            yield from _within(match, "under", match.end("over") + 1, match.start("under"), "")
        elif match["half"] is not None:
            yield start, end, f"{mixed}{match['half']}/{match['of']}"
        elif match["root"] is not None:
            yield start, start + len("\\sqrt"), "√"
            yield from _within(match, "root", start + len("\\sqrt"), match.start("root"), "")
        elif match["words"] is not None:
            yield start, match.start("words"), ""
            yield match.end("words"), end, ""
        elif raised := match["braced"] or match["power"]:
            yield start, end, raised.translate(RAISED)
        elif match["degree"]:
            yield start, end, _signs()[match["degree"]]
        elif match["comma"]:
            yield start, end, ","
        elif match["sign"]:
            said = _signs()[match["sign"]]
            yield start, end + (said.isalpha() and _FACTOR.match(text, end) is not None), said
        else:
            yield start, end, " "


def _within(
    match: re.Match[str], group: str, start: int, begin: int, behind: str, before: str = ""
) -> Iterator[Change]:
    """What stands in braces, in brackets where it would fall apart without."""
    text, (first, last) = match.string, match.span(group)
    falls_apart = _SINGLE.fullmatch(text, first, last) is None
    yield start, begin, before + ("(" if falls_apart else "")
    yield from _commands(text, first, last)
    yield last, last + 1, (")" if falls_apart else "") + behind
