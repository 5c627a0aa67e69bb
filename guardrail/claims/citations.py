"""Citations: marks in the answer that name a context. They are not part of what the answer states.

A mark is found by its form, and then mapped to contexts; a mark that names none of the given contexts is
still a citation. Ambiguous forms are read with care: a number in round brackets is a value or an enumerator,
a superscript after a digit or a unit is a power, and code is code.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from guardrail.claims.detector import tells
from guardrail.claims.links import (
    ContextNames,
    Ids,
    KnownLinks,
    Link,
    find_addresses,
    find_targets,
    fold_name,
    joined,
    leads_away,
)
from guardrail.claims.phrases import one_of, pattern, words
from guardrail.events import Context, Span


@dataclass(frozen=True, slots=True)
class Citation:
    """A mark that names the source of a statement.

    ``span``: code points of the raw text, ``text`` the mark as written. Without the mark, the words around it
    still form the sentence: if a link's text belongs to the sentence, only "(target)" is the mark; of "the
    list in document 1", only the number is. A phrase that frames the sentence, "As stated in document 1,",
    belongs to its mark. ``context_ids``: those of the contexts that it names, in their order; empty if it
    names none of the given ones. ``tells``: readers would take it for a statement, because it stands where a
    value belongs ("within [30] days"), or says more than a name.
    """

    span: Span
    text: str
    context_ids: Ids
    tells: bool = False


_Found = tuple[int, int, Ids]
"""Start and end of a mark, and what it names."""

_SQUARE: Final = {"[": "]", "【": "】", "［": "］", "〔": "〕", "⟦": "⟧", "〖": "〗"}
_ROUND: Final = {"(": ")", "（": "）", "{": "}", "｛": "｝", "<": ">", "〈": "〉", "⟨": "⟩"}
_SUPERSCRIPTS: Final = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_MAX_CONTENT: Final = 600
_MAX_ITEMS: Final = 40
_MAX_FOOTNOTES: Final = 200


def _brackets(opening: str, closing: str) -> re.Pattern[str]:
    """A pair with at most one pair within, so that every character is looked at a bounded number of times."""
    plain = rf"[^{re.escape(opening)}{re.escape(closing)}\n]"
    inner = rf"{re.escape(opening)}{plain}{{0,{_MAX_CONTENT}}}+{re.escape(closing)}"
    return re.compile(
        rf"{re.escape(opening)}((?:{plain}{{1,{_MAX_CONTENT}}}+|{inner}){{1,40}}+){re.escape(closing)}"
    )


_PAIRS: Final = {a: _brackets(a, b) for a, b in (*_SQUARE.items(), *_ROUND.items())}
_STARTS: Final = re.compile(rf"[{re.escape(''.join(_PAIRS))}`{_SUPERSCRIPTS}\ue200]")
# What OpenAI's models write: "filecite", references and lines, with signs of their own around them.
_PRIVATE: Final = re.compile(r"\ue200([^\ue200\ue201\n]{1,200})\ue201")
# All that stands between them; whatever else does, a reader sees.
_OPENAI: Final = re.compile(
    r"(?:file_?cite|cite|navlist|url|turn\d{1,4}[a-z]{1,12}\d{1,4}|L\d{1,6}|[\ue202-\ue206\s,;\u2020-])+"
)
_TURN: Final = re.compile(r"turn\d{1,4}[a-z]{1,12}(\d{1,4})")
_TARGET: Final = re.compile(
    r"\([ ]{0,3}<?([^\s()<>]{1,1000}+(?:\([^\s()]{0,100}+\)[^\s()<>]{0,300}+)?)>?"
    r"(?:[ ]{1,3}\"[^\"\n]{0,200}\")?[ ]{0,3}\)"
)
_RUN_OF_TICKS: Final = re.compile("`+")
_SUPERSCRIPT: Final = re.compile(rf"[{_SUPERSCRIPTS}]{{1,3}}(?:[,˒⁻–-][{_SUPERSCRIPTS}]{{1,3}}){{0,20}}+")
_SUPERSCRIPT_DIGITS: Final = str.maketrans(_SUPERSCRIPTS + "˒⁻–", "0123456789,--")
_SUP_TAG: Final = re.compile(
    r"<sup>(?:<[^<>\n]{1,200}>){0,2}[\s\[(]{0,2}([\d,;\s–-]{1,40}?)[\s\])]{0,2}(?:</\w{1,6}>){0,2}</sup>",
    re.IGNORECASE,
)
_LINE_REST: Final = re.compile(r"[^\n]{0,1000}")
# Code goes on behind an index: "a[1].b", "a[1][2]", "a[1] = 2".
_CODE_BEHIND: Final = re.compile(r"\.\w|\w| ?=")

_MAY_LINK: Final = re.compile(r"\]\(|<[A-Za-z]|[./@][^\W_]")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_BRACKET_SIGNS: Final = "^[]【】［］〔〕⟦⟧〖〗()（） "
_NUMBER: Final = re.compile(r"\d{1,4}")
_RANGE: Final = re.compile(r"(\d{1,4})\s*[-–—]\s*(\d{1,4})")
_DAGGER: Final = re.compile(r"(\d{1,4})(?::(\d{1,4}))?(?:†(.*))?")
_TOKEN: Final = re.compile(r"([^\W\d_]{1,12})[-_:#.]?(\d{1,4})")
_FILE: Final = re.compile(
    r"[\w.-][\w .()-]{0,200}\.(?:pdf|docx?|odt|rtf|txt|md|html?|csv|xlsx?|pptx?|json|xml|ya?ml|epub)",
    re.IGNORECASE,
)
_FOOTNOTE: Final = re.compile(r"\^[^\s\[\]^]{1,60}")
# "50 mg", "2024", "$49": what is also a value needs square brackets, or a label, to be a name.
_VALUE: Final = re.compile(r"[^\w]*+\d[\d\s.,:;/%+×-]*+(?:[^\W\d_]{1,10}\W*+){0,2}")
_EDGES: Final = " \t.,;:\"'`*_“”‘’"
_SPLIT: Final = re.compile(rf"\s*[,;&|]\s*|\s+{one_of('joints')}\s+|(?<=[\])])\s*(?=\[)", re.IGNORECASE)
_LABELS: Final = words("labels")
_LABELLED: Final = re.compile(rf"{one_of('labels')}\b\.?(?:\s*(?:no\.|nr\.|№))?[\s_#-]*:?\s*", re.IGNORECASE)
_ANNOUNCED: Final = re.compile(rf"{one_of('announcements')}\s*:", re.IGNORECASE)
_ATTRIBUTED: Final = re.compile(rf"(?:{one_of('attributions')}\b\.?:?\s*){{1,2}}", re.IGNORECASE)
_LOCATOR: Final = re.compile(rf"{one_of('locators')}\.?\s*\d{{1,4}}(?:\s*[-–]\s*\d{{1,4}})?", re.IGNORECASE)

# A line, or the end of one, that only says where things come from: "**Sources:** [1], pricing.pdf".
_ANNOUNCEMENT: Final = re.compile(
    rf"(?:^[ \t]{{0,8}}|(?<=[.!?] ))([*_]{{0,3}}{one_of('announcements')}[ ]?:[*_]{{0,3}}[ \t]{{0,4}}"
    r"(\S[^\n]{0,400}))$",
    re.IGNORECASE | re.MULTILINE,
)
# What frames a sentence goes with the marks in it.
_BETWEEN: Final = re.compile(rf"[ ,&–-]{{0,3}}(?:{one_of('joints')}[ ])?", re.IGNORECASE)
_PHRASE: Final = (
    rf"{one_of('attributions')}[ ](?:the[ ])?(?:{one_of('labels')}\.?(?:[ ](?:no\.|nr\.|№))?[ #]{{1,2}})?\Z"
)
_LEADING_PHRASE: Final = re.compile(rf"(?:\A|[.!?:][ ]|\n)[ \t*_>#-]{{0,8}}({_PHRASE})", re.IGNORECASE)
_TRAILING_PHRASE: Final = re.compile(rf"([,;–—][ ]{_PHRASE})", re.IGNORECASE)
_COMMA: Final = re.compile(r"[ ]?[,:]")
_ENDS: Final = re.compile(r"[*_]{0,2}\s*(?:[.!?;)]|\Z)")
# In running text: "document 3", "documents 2 and 3", "source kb-2214", "according to pricing.pdf".
_RUNNING: Final = re.compile(
    rf"(?<![\w-])(?:(?P<label>{one_of('labels')})\.?:?(?:\s(?:no\.|nr\.|№))?|{one_of('attributions')})"
    r"[ \u00a0#]{1,3}(?=[\w\"'“‘«*_`])",
    re.IGNORECASE,
)
# Looking for a word in a table is much faster than for all of them at every character.
_WORD: Final = re.compile(r"[^\W_]+")
_FIRST_WORDS: Final = frozenset(
    part for word in words("labels") | words("attributions") for part in _WORD.findall(word)[:1]
)
_MAY_NAME: Final = re.compile(r"[\d_/-]|\.[\w./:@#-]")  # no number and no identifier is without
_RUNNING_NUMBER: Final = re.compile(r"(\d{1,3})(?![\w%]|[.,:/-]\d)")
_RUNNING_JOINT: Final = re.compile(rf"\s?[,&–-]\s?|\s{one_of('joints')}\s", re.IGNORECASE)
_PLURAL: Final = ("s", "en", "ti")
_RUNNING_NAME: Final = re.compile(r"[\"'“`]{0,2}(\w[\w./:@#-]{1,511}+)")
_SETS_OFF: Final = "\"'“”‘’«»*_`"
_SET_OFF: Final = re.compile(rf"[{re.escape(_SETS_OFF)}]{{0,4}}")
_PART_OF_TITLE: Final = re.compile(r"\w[\w.'’&/-]*+")
_MOST_WORDS: Final = 10
_IDENTIFIER: Final = re.compile(r"[^\W\d_][^\d._/-]*[\d._/-]|\d[^a-zA-Z]*[^\W\d_]")
_NUMBER_BEFORE: Final = re.compile(r"([^\d]{0,4}|\A)(\d[\d.,']*)\Z")
_IN_FORMULA: Final = re.compile(r"\s{0,2}[=×·*÷^/+⋅−<>≤≥≈]\s{0,2}\Z|\s{0,2}[=×·*÷^/+⋅−<>≤≥≈]")
_IN_MARKUP: Final = re.compile(r"\]\(\s{0,4}<?\Z|[=\"']\s{0,4}\Z")  # where an image, or an element, leads
_VERB: Final = re.compile(rf"\b{one_of('verbs_before')}\s+\Z", re.IGNORECASE)
_NO_VERB: Final = re.compile(rf"\b{one_of('to_after')}\s+to\s+\Z", re.IGNORECASE)
_REACH: Final = 60
_POWERED: Final = words("powered")
# Where a value belongs: behind the sign of a currency, or a word that limits it, and before its unit.
_AMOUNT: Final = pattern("amount")
_MARKUP: Final = " \t*_`"
_CURRENCY_BEFORE: Final = re.compile(r"[$€£¥₹]\Z")
_UNIT_BEHIND: Final = re.compile(r"[€£¥₹%°]")
_LIMIT_BEFORE: Final = pattern("limit_before_a_mark")
_COUNTED_BEFORE: Final = pattern("counted_before_a_mark")
_NOT_COUNTED: Final = re.compile(r"(?:users?|people|guests|units?|drops?|times|doses?)\b")
_LABEL_BEHIND: Final = re.compile(r"†([^\]】〗]{1,600})")
_FACTORS: Final = 3  # letters of a product
_LAST_LETTERS: Final = re.compile(r"[^\W\d_]{1,13}\Z")


class CitationReader:
    """Finds the citations in the texts of one response.

    ``contexts`` are the response's. Names are looked up as ``ContextNames`` says. A number is an id if such
    an id exists, else the position of a context, counted from 1. In "【4:1†pricing.pdf】" the name counts if
    a context has it; else the first number, as if it stood alone; else, if there is no fourth context, the
    second one, counted from 0, as OpenAI's assistants do. A mark that links to an address that no context has
    names nothing, whatever its text: "[1](https://elsewhere.example)". ``links`` says which addresses the
    contexts' texts contain; without it only sources and ids are known. The names of contexts are read when
    the first text that may contain a mark is.
    """

    __slots__ = ("_contexts", "_footnotes", "_known", "_links")

    def __init__(self, contexts: Sequence[Context], links: KnownLinks | None = None) -> None:
        # Their texts may be dropped before this is.
        self._contexts = tuple((context.id, context.source) for context in contexts)
        self._links = links
        self._known: ContextNames | None = None
        self._footnotes: dict[str, Ids] = {}

    def find(self, raw: str) -> tuple[Citation, ...]:
        """The citations in ``raw``, ascending and apart. Linear in its length; never raises.

        A footnote that an earlier text defined ("[^1]: Price list") names what that definition says.
        """
        found: list[_Found] = []
        code: list[_Found] = []
        for find in (self._announced, self._marked, self._addressed, self._running):
            more = [mark for mark in find(raw, code) if not _overlaps(mark, found)]
            if more:
                found += more
                found.sort()
        telling: set[Span] = set()
        if found:
            telling = {(start, end) for start, end, ids in found if self._tells(raw, start, end, ids)}
            found = _with_phrases(raw, self._as_linked(raw, found))
        return tuple(
            Citation((start, end), raw[start:end], ids, (start, end) in telling) for start, end, ids in found
        )

    @property
    def _names(self) -> ContextNames:
        if self._known is None:
            self._known = ContextNames(self._contexts)
        return self._known

    def _as_linked(self, raw: str, found: list[_Found]) -> list[_Found]:
        """The marks; one that links elsewhere names only the targets of its other links."""
        if not any(ids for _, _, ids in found) or not _MAY_LINK.search(raw):
            return found
        links = [list(find_addresses(raw[start:end])) for start, end, _ in found]
        for link in find_targets(raw):
            start, end = link.span
            around = raw[end - 1] == ">"  # "<a href=…>[1]</a>"
            at = max(0, bisect_left(found, (start,)) - 1)
            while at < len(found) and found[at][0] < end + around:
                if found[at][1] > start:
                    links[at].append(link)
                at += 1
        return [
            (start, end, self._led(ids, own) if ids and own else ids)
            for (start, end, ids), own in zip(found, links, strict=True)
        ]

    def _tells(self, raw: str, start: int, end: int, ids: Ids) -> bool:
        """Whether a mark stands where a value belongs, or its label says more than a name."""
        mark = raw[start:end]
        label = _LABEL_BEHIND.search(mark)
        if label and tells(fold_name(label[1])):
            return self._names.named(label[1].strip()) is None
        named = fold_name(mark.strip(_BRACKET_SIGNS))
        if not ids and tells(named.rpartition(".")[0] if _FILE.fullmatch(named) else named):
            return True
        return _stands_for_a_value(raw, start, end)

    def _led(self, ids: Ids, links: Sequence[Link]) -> Ids:
        if not any(self._is_foreign(link) for link in links):
            return ids
        led = {by for link in links for by in self._names.linked(link.target) or ()}
        return tuple(by for by in ids if by in led)

    def _is_foreign(self, link: Link) -> bool:
        if not leads_away(link.target) or self._names.linked(link.target) is not None:
            return False
        return self._links is None or self._links.any_foreign((link,))

    # ------------------------------------------------------------------------------------ where marks stand

    def _announced(self, raw: str, _: list[_Found]) -> Iterator[_Found]:
        if ":" in raw:
            for match in _ANNOUNCEMENT.finditer(raw):
                ids = self._listed(match[2].strip(_EDGES), "[", numbers=True)
                if ids is not None:
                    yield *match.span(1), ids

    def _marked(self, raw: str, code: list[_Found]) -> Iterator[_Found]:
        """Brackets, links, footnotes and superscripts. Adds to ``code`` the code between them."""
        ends = _ends_of_code(raw)
        start = _STARTS.search(raw)
        while start:
            at = start.start()
            char = raw[at]
            found: _Found | None = None
            if char == "`":
                after = ends.get(at, at + 1)  # of a run that was passed in part, nothing
                code.append((at, after, ()))
            elif char == "\ue200":
                found, after = self._private(raw, at)
            elif char in _SUPERSCRIPTS:
                found, after = self._superscript(raw, at)
            else:
                found, after = self._bracketed(raw, at, char)
            if found:
                yield found
            start = _STARTS.search(raw, after)

    def _private(self, raw: str, at: int) -> tuple[_Found | None, int]:
        """OpenAI's mark. The places of its references are counted from 0."""
        match = _PRIVATE.match(raw, at)
        if match is None or not _OPENAI.fullmatch(match[1]):
            return None, at + 1
        order = self._names.order
        places = [int(place) for place in _TURN.findall(match[1])]
        ids = joined(order[place : place + 1] for place in places)
        return (at, match.end(), ids), match.end()

    def _bracketed(self, raw: str, at: int, char: str) -> tuple[_Found | None, int]:
        """The mark that a bracket opens, if it is one, and where to look on."""
        if char == "<":
            tag = _SUP_TAG.match(raw, at)
            if tag:
                ids = self._read(tag[1], "[")
                ids = ids if self._cites(raw, at, tag.end(), ids) else None
                return (None if ids is None else (at, tag.end(), ids)), tag.end()
        pair = _PAIRS[char].match(raw, at)
        if pair is None:
            return None, at + 1
        if char == "[":
            target = _TARGET.match(raw, pair.end())
            if target:
                return self._link(raw, at, pair, target), target.end()
            if raw.startswith(":", pair.end()) and not raw[raw.rfind("\n", 0, at) + 1 : at].strip():
                found = self._definition(raw, at, pair)
                return found, found[1] if found else pair.end()
        index = char == "[" and at > 0 and (raw[at - 1].isalnum() or raw[at - 1] in "_)]")
        if index and pair[1].isdigit() and (int(pair[1]) == 0 or _CODE_BEHIND.match(raw, pair.end())):
            return None, pair.end()
        ids = self._read(pair[1], char)
        if ids is None:
            return None, at + 1
        caret = char in _SQUARE and at > 0 and raw[at - 1] == "^"
        return (at - caret, pair.end(), ids), pair.end()

    def _link(self, raw: str, at: int, text: re.Match[str], target: re.Match[str]) -> _Found | None:
        """A link whose text is a mark, or that leads to a context; images are not links."""
        if at > 0 and raw[at - 1] == "!":
            return None
        leads = self._names.linked(target[1])
        mark = self._read(text[1], "[")
        if mark is not None and (_is_mark(text[1]) or _stands_alone(raw, at, target.end())):
            return at, target.end(), leads or mark
        if leads is None:
            return None
        called = not tells(fold_name(text[1])) or self._names.named(text[1]) is not None
        alone = called and _stands_alone(raw, at, target.end())
        # "According to the [price list](prices.pdf), …": its name is not part of the sentence either.
        frames = (
            called
            and _COMMA.match(raw, target.end())
            and _LEADING_PHRASE.search(raw[max(0, at - _REACH) : at])
        )
        start = at if alone or frames else target.start()
        return start, target.end(), leads

    def _definition(self, raw: str, at: int, label: re.Match[str]) -> _Found | None:
        """ "[^1]: https://…": with the rest of the line where that only names a context."""
        mark = self._read(label[1], "[")
        rest = _LINE_REST.match(raw, label.end() + 1)
        end = rest.end() if rest else len(raw)
        said = raw[label.end() + 1 : end].strip()
        ids = self._listed(said.strip(_EDGES), "[", numbers=False) if said else None
        if ids:
            if len(self._footnotes) < _MAX_FOOTNOTES and _FOOTNOTE.fullmatch(label[1]):
                self._footnotes[label[1]] = ids
            return at, end, ids
        target = Link((0, 0), said.split(maxsplit=1)[0].strip("<>")) if said else None
        if mark and target and self._is_foreign(target):
            mark = ()
        return None if mark is None else (at, label.end() + 1, mark)

    def _superscript(self, raw: str, at: int) -> tuple[_Found | None, int]:
        match = _SUPERSCRIPT.match(raw, at)
        if match is None or raw[match.end() : match.end() + 1] in ("⁺", "⁻", "ⁿ"):
            return None, match.end() if match else at + 1
        said = match[0].translate(_SUPERSCRIPT_DIGITS)
        ids = self._read(said, "[")
        if said.isdigit() and len(said) > 1 and not ids:  # "¹²" behind one another
            each = [self._names.numbered(digit) for digit in said]
            ids = joined(each) if all(each) else ids
        cites = self._cites(raw, at, match.end(), ids)
        return ((at, match.end(), ids) if cites and ids is not None else None), match.end()

    def _cites(self, raw: str, start: int, end: int, ids: Ids | None) -> bool:
        """Whether what is raised cites: it is not a power; behind a number that may have one, it names a
        context."""
        if not _is_power(raw, start):
            return ids is not None
        return bool(ids) and _ends_figure(raw, start, end)

    def _addressed(self, raw: str, code: list[_Found]) -> Iterator[_Found]:
        """The address of a context, as it is."""
        if "://" not in raw and "www." not in raw:
            return
        for link in find_addresses(raw):
            start, end = link.span
            part = _within(start, code) or _IN_MARKUP.search(raw[max(0, start - _REACH) : start])
            ids = None if part else self._names.linked(link.target)
            if ids:
                around = raw[start - 1 : start] == "<" and raw[end : end + 1] == ">"
                yield start - around, end + around, ids

    def _running(self, raw: str, code: list[_Found]) -> Iterator[_Found]:
        """Numbers and ids in running text: the words around them belong to the sentence."""
        if _FIRST_WORDS.isdisjoint(_WORD.findall(raw.lower())):
            return
        if not _MAY_NAME.search(raw) and not self._names.has_titles:
            return
        done = 0
        for word in _WORD.finditer(raw):
            match = _RUNNING.match(raw, word.start()) if word[0].lower() in _FIRST_WORDS else None
            if match is None or match.end() < done:
                continue
            at = match.end()
            label = match["label"]
            if _within(at, code) or (label and _is_verb(raw, match.start())):
                continue
            number = _RUNNING_NUMBER.match(raw, at) if label else None
            if number:
                yield from self._numbers(raw, number, several=label.lower().endswith(_PLURAL))
                continue
            if title := self._titled(raw, at):
                done = title[1]
                yield title
                continue
            name = _RUNNING_NAME.match(raw, at)
            said = name[1].rstrip(_EDGES) if name else ""
            if name and _IDENTIFIER.match(said):
                ids = self._names.named(said)
                if ids:
                    yield name.start(1), name.start(1) + len(said), ids

    def _titled(self, raw: str, at: int) -> _Found | None:
        """The title of a context that begins at ``at``, of several words, with what sets it off."""
        if not self._names.has_titles:
            return None
        begin = at
        while begin > 0 and raw[begin - 1] in _SETS_OFF:
            begin -= 1
        set_off = _SET_OFF.match(raw, begin)
        first = set_off.end() if set_off else at
        ends = [
            word.end() for word in islice(_PART_OF_TITLE.finditer(raw, first, first + _REACH), _MOST_WORDS)
        ]
        for end in reversed(ends[1:]):
            if ids := self._names.named(raw[first:end]):
                closes = _SET_OFF.match(raw, end) if set_off and set_off.end() > begin else None
                return begin, closes.end() if closes else end, ids
        return None

    def _numbers(self, raw: str, first: re.Match[str], *, several: bool) -> Iterator[_Found]:
        number: re.Match[str] | None = first
        while number:
            ids = self._names.numbered(number[1])
            if ids:
                yield *number.span(1), ids
            joint = _RUNNING_JOINT.match(raw, number.end()) if several else None
            number = _RUNNING_NUMBER.match(raw, joint.end()) if joint else None

    # ------------------------------------------------------------------------------------ what marks name

    def _read(self, content: str, bracket: str) -> Ids | None:
        """What the content of a bracket names; None if it is not a citation."""
        whole = self._name(content.strip(), sure=bracket in _SQUARE)
        if whole is not None:
            return whole
        text = content.strip(_EDGES + "{}" if bracket == "{" else _EDGES)
        if bracket in _SQUARE and _FOOTNOTE.fullmatch(text):
            if (defined := self._footnotes.get(text)) is not None:
                return defined
            said = text[1:]
            ids = self._names.named(said)
            return self._names.numbered(said) if ids is None and _NUMBER.fullmatch(said) else ids or ()
        text = text.lstrip("^@# ")
        ids = self._name(text, sure=bracket in _SQUARE)
        if ids is not None or not text:
            return ids
        attributed = _ATTRIBUTED.match(text)
        if attributed:
            text = text[attributed.end() :]
        labelled = _LABELLED.match(text)
        rest = text[labelled.end() :] if labelled else text
        numbers = bracket in _SQUARE or labelled is not None
        ids = self._listed(rest, bracket, numbers=numbers) if rest else None
        if ids is not None or not rest:
            return ids
        # "{{ref:kb-2214}}": whatever it is called, behind the colon stands the name of a context.
        label, _, named = text.partition(":")
        ids = self._name(named.strip(), sure=False) if 0 < len(label) <= 20 else None
        announced = _ANNOUNCED.match(text) if ids is None else None
        return () if announced and not tells(fold_name(text[announced.end() :])) else ids

    def _listed(self, text: str, bracket: str, *, numbers: bool) -> Ids | None:
        """What a list of marks names; None unless all of its items are marks."""
        ids = self._name(text, sure=numbers)
        if ids is not None:
            return ids
        items = [item for item in _SPLIT.split(text) if item] if len(text) <= _MAX_CONTENT else []
        found: list[Ids] = []
        for item in items[: _MAX_ITEMS + 1]:
            ids = self._item(item, bracket, numbers=numbers, lone=len(items) == 1)
            if ids is not None:
                found.append(ids)
            elif not (found and _LOCATOR.fullmatch(item.strip())):
                return None
        return joined(found) if found and len(items) <= _MAX_ITEMS else None

    def _item(self, item: str, bracket: str, *, numbers: bool, lone: bool) -> Ids | None:
        text = item.strip()
        pair = _PAIRS[text[0]].fullmatch(text) if text[:1] in _SQUARE else None
        if pair:
            text, bracket, numbers = pair[1], "[", True
        elif text.startswith("["):
            return self._linked_item(text)
        text = text.strip(_EDGES).lstrip("^@#")
        labelled = _LABELLED.match(text)
        if labelled and labelled.end() < len(text) and self._name(text, sure=numbers) is None:
            text, numbers = text[labelled.end() :], True
        ids = self._name(text, sure=numbers)
        if ids is not None:
            return ids
        if "/" in text:
            return self._names.linked(text)
        if numbers and _NUMBER.fullmatch(text):
            ids = self._names.numbered(text)
            sound = int(text) > 0 or lone
            return ids if ids or (len(text) < 4 and sound) else None
        span = _RANGE.fullmatch(text) if numbers else None
        if span:
            return self._names.ranged(span[1], span[2]) or None
        if _UUID.fullmatch(text):
            return ()
        return self._shaped(text, bracket) if bracket in _SQUARE else None

    def _linked_item(self, text: str) -> Ids | None:
        shown = _PAIRS["["].match(text)
        target = _TARGET.fullmatch(text, shown.end()) if shown else None
        if shown is None or target is None:
            return None
        if tells(fold_name(shown[1])) and self._names.named(shown[1]) is None:
            return None
        ids = self._names.linked(target[1])
        return self._name(shown[1], sure=True) if ids is None else ids

    def _shaped(self, text: str, bracket: str) -> Ids | None:
        """A citation by its shape, in square brackets, whether or not it names a context."""
        dagger = _DAGGER.fullmatch(text)
        if dagger and (dagger[3] or bracket in "【〖"):
            named = self._names.named(dagger[3].strip()) if dagger[3] else None
            if named is not None:
                return named
            counted = int(dagger[2]) if dagger[2] else len(self._names.order)
            return self._names.numbered(dagger[1]) or self._names.order[counted : counted + 1]
        token = _TOKEN.fullmatch(text)
        if token:
            return self._names.numbered(token[2]) if token[1].lower() in _LABELS else ()
        return () if _FILE.fullmatch(text) else None

    def _name(self, text: str, *, sure: bool) -> Ids | None:
        """The contexts of this name. Unless it is ``sure`` that this is a name, anything that may be a value
        is not.
        """
        if not sure and (len(text) < 2 or _VALUE.fullmatch(text[:_MAX_CONTENT])):
            return None
        return self._names.named(text)


def _ends_of_code(raw: str) -> dict[int, int]:
    """Where the code ends that each run of backticks may begin: behind the next run of its length. An
    unclosed fence continues to the end, and any other run that nothing closes begins none."""
    runs: dict[int, list[int]] = {}
    for run in _RUN_OF_TICKS.finditer(raw):
        runs.setdefault(len(run[0]), []).append(run.start())
    ends: dict[int, int] = {}
    for length, starts in runs.items():
        ends |= {start: after + length for start, after in pairwise(starts)}
        ends[starts[-1]] = len(raw) if length >= 3 else starts[-1] + length
    return ends


def _with_phrases(raw: str, found: list[_Found]) -> list[_Found]:
    """Marks, with the phrases that frame a sentence: "As stated in document 1, …", "…, according to [2]"."""
    wider: list[_Found] = []
    at = 0
    while at < len(found):
        last = at
        while last + 1 < len(found) and _BETWEEN.fullmatch(raw, found[last][1], found[last + 1][0]):
            last += 1
        start, end = found[at][0], found[last][1]
        before = raw[max(0, start - _REACH) : start]
        leads = _LEADING_PHRASE.search(before)
        comma = _COMMA.match(raw, end)
        trails = _TRAILING_PHRASE.search(before) if _ENDS.match(raw, end) else None
        # What is cut off in front may have been a part of something longer.
        whole = leads if leads and comma and (leads.start() or start <= _REACH) else trails
        marks = found[at : last + 1]
        if whole:
            begin = max(start - len(before) + whole.start(1), wider[-1][1] if wider else 0)
            stop = comma.end() if whole is leads and comma else end
            edges = [begin, *(mark[0] for mark in marks[1:]), stop]
            marks = [(edges[i], edges[i + 1], ids) for i, (_, _, ids) in enumerate(marks)]
        wider += marks
        at = last + 1
    return wider


def _overlaps(mark: _Found, taken: list[_Found]) -> bool:
    """Whether a mark overlaps one of those that are taken, which are ascending and apart."""
    after = bisect_left(taken, (mark[1],))
    return after > 0 and taken[after - 1][1] > mark[0]


def _within(at: int, spans: list[_Found]) -> bool:
    behind = bisect_left(spans, (at + 1,))
    return behind > 0 and spans[behind - 1][1] > at


def _is_mark(text: str) -> bool:
    """Whether the text of a link is a number or an id rather than words of the sentence."""
    said = text.strip(_EDGES + "[]^")
    return any(c.isdigit() for c in said) and (len(said.split()) == 1 or _LABELLED.match(said) is not None)


def _stands_alone(raw: str, start: int, end: int) -> bool:
    """Whether a link comes after a sentence, or is the whole text."""
    before = raw[max(0, start - 12) : start].rstrip(" \t\n*_-")
    if before:
        return before[-1] in ".!?。:;)]"
    return start < 12 and not raw[end : end + 12].strip(" .*_\n")


def _stands_for_a_value(raw: str, start: int, end: int) -> bool:
    """Whether a mark with a number stands where an amount's number belongs: "take [40] mg", "$[79]"."""
    if not any(char.isdigit() for char in raw[start:end]):
        return False
    before = raw[max(0, start - _REACH) : start].rstrip(_MARKUP)
    after = raw[end : end + _REACH].lstrip(_MARKUP)
    if _CURRENCY_BEFORE.search(before):
        return True
    if not before[-1:].isalpha() or _COUNTED_BEFORE.search(before):
        return False
    if _UNIT_BEHIND.match(after) or (after[:1].isalpha() and _LIMIT_BEFORE.search(before)):
        return True
    return _AMOUNT.match(f"1 {after.lower()}") is not None and not _NOT_COUNTED.match(after)


def _is_power(raw: str, at: int) -> bool:
    """Whether a superscript at ``at`` is a power: after a digit, a unit or a variable."""
    before = raw[at - 1 : at]
    if before == ")":
        before = raw[at - 2 : at - 1]
        return before.isdigit() or (before.isalpha() and not raw[at - 3 : at - 2].isalpha())
    if before.isdigit() or before in ("⁻", "⁺", "^"):
        return True
    behind = raw[max(0, at - 20) : at]
    letters = _LAST_LETTERS.search(behind)
    if letters is None:
        return False
    if len(letters[0]) <= _FACTORS and _IN_FORMULA.search(behind[: letters.start()]):
        return True  # "A = πr²"
    return letters[0].lower() in _POWERED


def _ends_figure(raw: str, start: int, end: int) -> bool:
    """Whether what is raised behind a number stands in prose: those of formulas, and of ten, are powers."""
    number = _NUMBER_BEFORE.search(raw[max(0, start - _REACH) : start])
    if number is None or number[2] == "10":
        return False
    return not _IN_FORMULA.search(number[1]) and not _IN_FORMULA.match(raw, end)


def _is_verb(raw: str, at: int) -> bool:
    """Whether a label at ``at`` is a verb: "you must document 3 cases"."""
    before = raw[max(0, at - _REACH) : at]
    return _VERB.search(before) is not None and not _NO_VERB.search(before)
