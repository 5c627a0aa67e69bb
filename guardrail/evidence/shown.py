"""A context as readers see it, with offsets back to its text: what claims are compared with.

Tables and the like (``guardrail.structure``) are told record by record, a line each with the headers beside
the values, "Pro: Price: $29; Storage: 2 TB": that is how search, figures and the verifier read them.

Struck-through and hidden text is not evidence, and a value stays the same whatever invisible markup it
contains: "$<b>4</b>9", "1&nbsp;200 euros". Line breaks, bullets and table bars stay, since they determine how
the lines of contexts are read, and so do the backticks of code. Texts without any such markup stay unchanged.
"""

from __future__ import annotations

import heapq
import html
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Final, NamedTuple

from guardrail.claims import markup
from guardrail.events import Span
from guardrail.structure import Field, Table, TableRecord, read_tables
from guardrail.structure.tables import yes_or_no
from guardrail.structure.tex import RAISED, Change, formula_changes

_WIDE: Final = "\uff03-\uff19\uff21-\uff3a\uff41-\uff5a\uffe0-\uffe5\U0001d400-\U0001d7ff"
# Searching for one set of characters is much faster than searching for alternatives.
_MAY_HIDE: Final = re.compile(rf"[<&*~\\^{markup.INVISIBLE}{markup.ODD_SPACES}{_WIDE}]")
_MAY_STRESS: Final = re.compile(r"\b_|(?<=\d)\[\d|\]:[ \t]")
_BEGINS: Final = re.compile(rf"[<&*~_\\\[{markup.INVISIBLE}{markup.ODD_SPACES}{_WIDE}]")
_NAME: Final = r"[A-Za-z][A-Za-z0-9-]{0,30}"
_ATTRIBUTES: Final = r"""(?:[^<>"']|"[^"<]{0,300}"|'[^'<]{0,300}'|["']){0,500}+"""
_SIGN: Final = re.compile(
    rf"""
    (?P<comment> <!-- )
  | (?P<tag> <(?P<close>/?)(?P<name>{_NAME})(?P<attributes>\s{_ATTRIBUTES}|\s?/)?> )
  | (?P<unrendered> <[?](?!php\b|=)[^<>]{{1,2000}}>
      | (?<![^\n])[ ]{{0,3}}\[[^\]\n]{{1,100}}\]:[ \t]{{0,4}}\S{{1,500}}[ \t]{{1,4}}
        (?:\([^()\n]{{1,2000}}\)|"[^"\n]{{1,2000}}"|'[^'\n]{{1,2000}}')[ \t]*+(?=\n|\Z) )
  | (?P<struck> (?<!~)~~(?=[^\s~])(?:[^~\n]|~(?!~)|\n(?!\s*\n)){{1,2000}}+~~(?!~) )
  | (?P<entity> {markup.ENTITY.pattern} )
  | (?P<escape> \\[!-/:-@\[-`{{-~] )
  | (?P<stress> (?<!\S)\*++(?![\s*]) | (?<=[^\s*])\*++(?!\*)
              | (?<!\w)_++(?=\S) | (?<=[^\s_])_++(?!\w) )
  | (?P<note> (?<=\d)\[\d{{1,3}}(?:[,;–-][ ]?\d{{1,3}}){{0,20}}\] )
  | (?P<space> [{markup.ODD_SPACES}] )
  | (?P<unseen> [{markup.INVISIBLE}] )
  | (?P<wide> [{_WIDE}] )
    """,
    re.VERBOSE,
)
_ATTRIBUTE: Final = re.compile(r"""([^\s"'=<>/]++)(?:\s{0,4}=\s{0,4}("[^"]*+"|'[^']*+'|[^\s"']++))?""")
_HIDING: Final = {
    name: re.compile("|".join(values), re.IGNORECASE | re.DOTALL)
    for name, values in markup.HTML["hidden_by"].items()
}
_VOID: Final = frozenset(markup.HTML["void"].split())
_RAISED: Final = re.compile(
    r"<sup[^<>]{0,100}>\s{0,4}(\[?\d{1,2}(?:[,;] ?\d{1,2}){0,8}\]?)\s{0,4}</sup\s{0,4}>", re.IGNORECASE
)
_UNIT: Final = re.compile(r"(?:\d|(?<![^\W\d_])[^\W\d_]{1,3})\Z")
_EMPHASIS: Final = "*_"
_FENCE: Final = re.compile("```")
_ELEMENT: Final = re.compile(rf"<!--|(?P<tag><(?P<close>/?)(?P<name>{_NAME})(?=[\s>/]){_ATTRIBUTES}>)")
_COMMENT_END: Final = re.compile("--!?>")
#: Elements that need no end tag: what ends them besides one of their own name.
_ENDED_BY: Final = {name: frozenset(others.split()) for name, others in markup.HTML["ended_by"].items()}
_CODE_REACH: Final = 1_000
_MOST_HIDDEN: Final = 100  # stretches of hidden text in a table
_REPEATED: Final = 20_000  # characters of headers and labels that are told beside values
_TIMES_AS_LONG: Final = 8  # the same for each character of the table
_LINE_WORDS: Final = 45  # of a line that tells a record, before it goes on in another
_LINE_BREAK: Final = re.compile(r"[\r\n]")
_BARE: Final = re.compile(r"[*_~]{0,4}[+-]?\d[\d.,\s]*(?:[–-]\s?\d[\d.,\s]*)?[*_~]{0,4}")
_UNIT_OF_HEADER: Final = re.compile(r"[(\[]([^()\[\]]{1,16})[)\]]\s*\Z|(?:,| in |/)\s?([^\s,()\d]{1,6})\s*\Z")
_UNIT_OF_KEY: Final = re.compile(
    r"(?-i:(?<=[a-z])(?:_|(?=[A-Z])))(?:(eur|usd|gbp|chf)|(kg|mg|ml|km|cm))\Z", re.IGNORECASE
)
#: In keys whose unit is not that of the value alone: "dose_mg_per_kg", "revenue_million_eur", "price_kg".
_OF_MORE: Final = frozenset(
    ("per", "sq", "square", "cubic", "k", "m", "mio", "million", "thousand", "billion")
)
_PRICES: Final = frozenset(("price", "cost", "fee", "rate"))
_AMOUNTS: Final = frozenset(("amount", "value", "price", "cost", "fee", "sum", "total"))
_CURRENCIES: Final = frozenset(("currency", "currency_code", "currencycode"))
_CODE: Final = re.compile(r"[A-Z]{3}|[$€£¥]")
_DECIMALS: Final = re.compile(r"\d+\.\d{1,2}")
_SIGNS: Final = frozenset("$€£¥")
_NAME_PARTS: Final = re.compile(r"(?<=[^\W_])_(?=[^\W_])|(?<=[a-z])(?=[A-Z][a-z])")


class ShownField(NamedTuple):
    """A value with its header, both as shown; a header of "" stands nowhere."""

    header: str
    value: Span


class ShownRecord(NamedTuple):
    """A record of a table as shown: a line, or several that begin with the same label."""

    label: str
    fields: tuple[ShownField, ...]


class ShownTable(NamedTuple):
    """The records of a table; ``kind`` says what labels them, "" where nothing does."""

    kind: str
    records: tuple[ShownRecord, ...]


class ShownText:
    """``text`` is what readers see; its spans map back to the raw text. ``lines`` are the spans of the lines
    that tell records, each of which is read as one sentence."""

    __slots__ = (
        "_at",
        "_ends",
        "_length",
        "_marks",
        "_parts",
        "_raw",
        "_starts",
        "lines",
        "tables",
        "text",
    )

    def __init__(self, raw: str) -> None:
        self.text = raw
        self._raw = raw
        self.lines: list[Span] = []
        self.tables: tuple[ShownTable, ...] = ()
        # Pieces: the start as shown, the start in the raw text, and the end there if it is a replacement,
        # else 0. Empty for a text that is shown as it is.
        self._at, self._starts, self._ends = array("I"), array("I"), array("I")
        tables = read_tables(raw)
        stressed = ("_" in raw or "[" in raw) and _MAY_STRESS.search(raw)
        if tables or stressed or raw.count("$") > 1 or _MAY_HIDE.search(raw):
            self._read(raw, tables)

    def _read(self, raw: str, tables: Sequence[Table]) -> None:
        self._parts: list[str] = []
        self._length = at = 0
        self._marks = _Marks(raw)
        told = []
        for table in self._worth_telling(tables):
            self._copy(at, table.start)
            told.append(self._tell(table))
            at = table.end
        self._copy(at, len(raw))
        self.tables = tuple(told)
        self.text = "".join(self._parts)
        if self.text == raw:
            del self._at[:], self._starts[:], self._ends[:]
        del self._parts, self._length, self._marks

    def _worth_telling(self, tables: Sequence[Table]) -> Iterator[Table]:
        """The tables but for those that hidden text covers in part, which stay text, and those whose headers
        or labels would be told many times over: a hostile one may be a thousand times as long that way."""
        hidden = [
            (a, b)
            for a, b, said in self._marks.changes(0, len(self._raw))
            if not said and self._is_hidden(a, b)
        ]
        starts = [start for start, _ in hidden]
        for table in tables:
            first = bisect_left(starts, table.start)
            first -= first > 0 and hidden[first - 1][1] > table.start
            over = hidden[first : bisect_left(starts, table.end)]
            cells = (
                {c for r in table.records for c in (*r.label, *(f.value for f in r.fields))}
                if over
                else set()
            )
            if any(not any(a <= start and end <= b for a, b in cells) for start, end in over[:_MOST_HIDDEN]):
                continue
            room = _REPEATED + _TIMES_AS_LONG * (table.end - table.start)
            for record in table.records:
                heads = sum(end - start for field in record.fields for start, end in field.header)
                room -= heads + len(record.fields) * sum(end - start for start, end in record.label)
            if room >= 0 and len(over) <= _MOST_HIDDEN:
                yield table

    def _is_hidden(self, start: int, end: int) -> bool:
        """Whether what is not shown is more than a tag: a comment, struck text, or an element that hides."""
        raw = self._raw
        if raw[start] != "<" or raw[start : start + 4].lower() == "<sup":
            return end - start > 1 and raw[start] == "~"
        return raw.startswith("<!--", start) or 0 <= raw.find(">", start, end) < end - 1

    def _copy(self, at: int, stop: int, *, cell: bool = False) -> Span:
        """Show a stretch of the raw text, that of a cell without line breaks."""
        begin = self._length
        for start, end, said in (*self._marks.changes(at, stop), (stop, stop, "")):
            if start > at:
                piece = self._raw[at:start]
                self._add(_LINE_BREAK.sub(" ", piece) if cell else piece, at, 0)
            if said:
                self._add(said, start, end)
            at = end
        return begin, self._length

    def _add(self, said: str, start: int, end: int) -> None:
        self._parts.append(said)
        self._at.append(self._length)
        self._starts.append(start)
        self._ends.append(end)
        self._length += len(said)

    def _tell(self, table: Table) -> ShownTable:
        """Show a table record by record."""
        records = []
        for record in table.records:
            if self._length and not self._parts[-1].endswith("\n"):
                self._add("\n", *record.fields[0].value)
            records.append(self._tell_record(record))
        self._add("\n", table.end - 1, table.end)
        kind = " ".join(self._said(cell) for cell in table.kind)
        return ShownTable(kind, tuple(records))

    def _tell_record(self, record: TableRecord) -> ShownRecord:
        label = ", ".join(self._said(cell) for cell in record.label)
        fields: list[ShownField] = []
        begin = words = 0
        currencies = self._currencies(record)
        for field in record.fields:
            header, before, behind = self._headed(field, currencies.get(field.header[:-1], ""))
            length = 1 + header.count(" ") + self._raw.count(" ", *field.value)
            if not words or not label or words + length > _LINE_WORDS:
                if words:
                    self.lines.append((begin, self._length))
                    self._add("\n", *field.value)
                begin, words = self._length, label.count(" ") + 1
                if label:
                    self._add(f"{label}: ", *record.label[-1])
            else:
                self._add("; ", *field.value)
            words += length
            if header or before:
                self._add(f"{header}: {before}" if header else before, *field.value)
            span = self._value(field, behind)
            if span[0] < span[1]:
                fields.append(ShownField(header, span))
        self.lines.append((begin, self._length))
        return ShownRecord(label, tuple(fields))

    def _value(self, field: Field, behind: str) -> Span:
        said = yes_or_no(self._raw[slice(*field.value)])
        if said is not None and not self._raw[slice(*field.value)].isalpha():
            begin = self._length
            self._add("yes" if said else "no", *field.value)
            return begin, self._length
        start, end = self._copy(*field.value, cell=True)
        if behind:
            self._add(behind, *field.value)
        return start, self._length if behind else end

    def _headed(self, field: Field, beside: str) -> tuple[str, str, str]:
        """The header of a value as it is told, and its sign or unit before or behind the value. That stands
        in the header, or in data ``beside``: "Weight (kg)" of "12" is "Weight: 12 kg"."""
        header = ", ".join(said for cell in field.header if (said := self._said(cell)))
        value = self._raw[slice(*field.value)]
        if not field.header or not _BARE.fullmatch(value):
            return header, "", ""
        key = self._raw[slice(*field.header[-1])]
        if key.casefold() in _AMOUNTS and (beside or len(field.header) > 1):
            return header, "", f" {beside}" if beside and _DECIMALS.fullmatch(value) else ""
        own = _UNIT_OF_KEY.search(key)
        before = _NAME_PARTS.sub(" ", key[: own.start()]).casefold().split() if own else ()
        if own is not None and (_OF_MORE if own[1] else _OF_MORE | _PRICES).isdisjoint(before):
            said = own[1].upper() if own[1] else own[2].lower()
            return header[: -len(said)].rstrip(" ,_"), "", f" {said}"
        unit = _UNIT_OF_HEADER.search(header)
        if unit is None:
            return header, "", ""
        name = header[: unit.start()].rstrip(" ,_") or header
        said = (unit[1] or unit[2]).strip()
        return (name, said, "") if said in _SIGNS else (name, "", f" {said}")

    def _currencies(self, record: TableRecord) -> dict[tuple[Span, ...], str]:
        """The currency of each object that is an amount and its currency, such as {"amount": 4.5, "currency":
        "GBP"}, by the headers that lead to it. Whole amounts may be of cents."""
        inner: dict[tuple[Span, ...], list[Field]] = {}
        for field in record.fields:
            if field.header:
                inner.setdefault(field.header[:-1], []).append(field)
        found: dict[tuple[Span, ...], str] = {}
        for path, fields in inner.items():
            if len(fields) == 2:  # an amount and its currency
                keys = [self._raw[slice(*field.header[-1])].casefold() for field in fields]
                code = next(
                    (self._said(f.value) for f, key in zip(fields, keys, strict=True) if key in _CURRENCIES),
                    "",
                )
                if _CODE.fullmatch(code) and not _AMOUNTS.isdisjoint(keys):
                    found[path] = code
        return found

    def _said(self, cell: Span) -> str:
        """A cell as shown, on one line."""
        parts: list[str] = []
        at = cell[0]
        for start, end, said in (*self._marks.changes(*cell), (cell[1], cell[1], "")):
            parts += (self._raw[at:start], said)
            at = end
        return _NAME_PARTS.sub(" ", " ".join("".join(parts).split())).strip(" :*")

    def raw_span(self, start: int, end: int) -> Span:
        """The span in the raw text of ``text[start:end]``; 0 <= start < end <= len(text). Includes the marks
        of an emphasis around it.
        """
        if not self._at or start >= end:
            return start, end
        if self.lines and (span := self._table_span(start, end)) is not None:
            return span
        first, last = self._place(start)[0], self._place(end - 1)[1]
        before = self._place(start - 1)[1] if start else 0
        after = self._place(end)[0] if end < len(self.text) else len(self._raw)
        while first > before and self._raw[first - 1] in _EMPHASIS:
            first -= 1
        while last < after and self._raw[last] in _EMPHASIS:
            last += 1
        return first, last

    def _table_span(self, start: int, end: int) -> Span | None:
        """The span where pieces of a table do not ascend; None where all do."""
        low, high = bisect_right(self._at, start) - 1, bisect_right(self._at, end - 1)
        starts = self._starts[low:high]
        if all(a <= b for a, b in pairwise(starts)) and not any(self._ends[low:high]):
            return None
        spans = [self._place(at) for at in (start, *self._at[low + 1 : high])]
        spans += [self._place(min(end, after) - 1) for after in (*self._at[low + 1 : high], end)]
        return min(first for first, _ in spans), max(last for _, last in spans)

    def _place(self, at: int) -> Span:
        """The position of one shown character in the raw text."""
        piece = bisect_right(self._at, at) - 1
        start, end = self._starts[piece], self._ends[piece]
        if end:
            return start, end
        return start + at - self._at[piece], start + at - self._at[piece] + 1


class _Marks:
    """What of a text isn't shown as written. Where marks end that have two parts is found once for the whole
    text: looked for one by one, many that nothing closes would take quadratic time."""

    def __init__(self, raw: str) -> None:
        self._raw = raw

    @cached_property
    def _fences(self) -> list[int]:
        return [match.start() for match in _FENCE.finditer(self._raw)]

    @cached_property
    def _comment_ends(self) -> list[int]:
        return [match.end() for match in _COMMENT_END.finditer(self._raw)]

    @cached_property
    def _elements(self) -> dict[int, int]:
        """The end of each element that is closed, by where its content begins: at its end tag, or, if it
        needs none, at what can't stand within it. What comments hold closes nothing."""
        found: dict[int, int] = {}
        open_: dict[str, list[int]] = {}
        ended: dict[int, int] = {}  # those that need no end tag, where they end without
        commented = 0
        for match in _ELEMENT.finditer(self._raw):
            if match.start() < commented:
                continue
            if not match["tag"]:
                commented = self._comment_end(match.end()) or commented
                continue
            name = match["name"].lower()
            for other, enders in _ENDED_BY.items():
                if open_.get(other) and not match["close"] and (name == other or name in enders):
                    ended.setdefault(open_[other][-1], match.start())
            begun = open_.setdefault(name, [])
            if not match["close"]:
                begun.append(match.end())
            elif begun:
                found[begun.pop()] = match.end()
        return ended | found

    @cached_property
    def _formulas(self) -> list[Change]:
        return formula_changes(self._raw)

    def _in_formulas(self, at: int, stop: int) -> Sequence[Change]:
        """What is shown otherwise than written in the formulas between two places."""
        first = bisect_left(self._formulas, at, key=itemgetter(0))
        return self._formulas[first : bisect_right(self._formulas, stop, key=itemgetter(1))]

    def _comment_end(self, at: int) -> int | None:
        """Where the comment ends whose content begins at ``at``; None if nothing closes it."""
        found = bisect_right(self._comment_ends, at)
        return self._comment_ends[found] if found < len(self._comment_ends) else None

    def _in_code(self, at: int) -> bool:
        """Whether something stands within code, in a line or between fences, which shows it."""
        line = self._raw[max(0, at - _CODE_REACH) : at].rpartition("\n")[2]
        return line.count("`") % 2 == 1 or bisect_right(self._fences, at) % 2 == 1

    def changes(self, at: int, stop: int) -> Iterator[Change]:
        """``(start, end, what is shown instead)`` of everything between two places that isn't shown as
        written, ascending and apart."""
        for change in heapq.merge(self._in_formulas(at, stop), self._outside_formulas(at, stop)):
            if change[0] >= at:
                yield change
                at = change[1]

    def _outside_formulas(self, at: int, stop: int) -> Iterator[Change]:
        raw = self._raw
        while begins := _BEGINS.search(raw, at, stop):
            match = _SIGN.match(raw, begins.start(), stop)
            if match is None:
                at = begins.end()
                continue
            start, at = match.span()
            kind = match.lastgroup
            said: str | None = ""
            if kind == "comment":
                end = self._comment_end(at)
                if end is None and self._in_code(start):
                    continue
                at = end or len(raw)
            elif match["name"]:
                said, at = self._tag(match)
            elif kind == "entity":
                said = "".join(map(_plain, html.unescape(match[0])))
            elif kind in ("space", "wide", "unseen"):
                said = _plain(match[0]) if kind != "unseen" or not markup.joins(raw, start) else None
            elif kind == "escape":
                said = match[0][1:]
            elif kind == "stress" and markup.multiplies(raw, start, at):
                said = None
            at = min(at, stop)
            if said is not None and said != raw[start:at]:
                yield start, at, said

    def _tag(self, match: re.Match[str]) -> tuple[str | None, int]:
        """What is shown of a tag, with its content if that is hidden, and where to continue; None: the text
        itself, which is not a tag. What nothing closes hides all that follows, save in code.
        """
        raw, name, end = self._raw, match["name"].lower(), match.end()
        hidden = name in markup.HIDING_TAGS or _hides(match["attributes"] or "")
        if name not in markup.TAGS and not hidden:
            return None, end
        if hidden and not match["close"] and name not in _VOID:
            behind = self._elements.get(end)
            if behind is not None or not self._in_code(match.start()):
                return "", behind or len(raw)
        raised = _RAISED.match(raw, match.start()) if name == "sup" else None
        if raised:
            power = _UNIT.search(raw, max(0, match.start() - 4), match.start()) and raised[1].isdigit()
            return raised[1].translate(RAISED) if power else "", raised.end()
        return "" if name in markup.INLINE_TAGS else " ", end


def _plain(char: str) -> str:
    if _INVISIBLE.match(char):
        return " " if char.isspace() else ""
    return " " if _ODD_SPACE.match(char) else markup.PLAIN_CHARS.get(ord(char), char)


_INVISIBLE: Final = re.compile(f"[{markup.INVISIBLE}]")
_ODD_SPACE: Final = re.compile(f"[{markup.ODD_SPACES}]")


def _hides(attributes: str) -> bool:
    """Whether an element with these attributes isn't shown: hidden, without a size, off the page, white."""
    return any(
        name.lower() in _HIDING and _HIDING[name.lower()].search(value) is not None
        for name, value in _ATTRIBUTE.findall(attributes)
    )
