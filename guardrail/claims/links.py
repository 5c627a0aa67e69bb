"""Where a text leads: its links and addresses, whether a source contains them too, and the names of contexts.

Bare ones are found by searching outward from "@", "://", "www." and well-known endings. Each search is
bounded (64 characters to the left, 2,000 to the right), so a text of a million at signs costs a million
bounded steps.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from guardrail.claims.phrases import one_of
from guardrail.events import Context, Span

_MAX_LOCAL: Final = 64
_MAX_HOST: Final = 121
_STARTS: Final = re.compile(
    r"@|https?://|ftp://|\bwww\."
    r"|\.(?:com|org|net|gov|edu|io|eu|de|fr|es|uk|info|int|dev|app|ai|co|ch|at|nl)(?![\w-])",
    re.IGNORECASE,
)
_DOMAIN: Final = re.compile(r"[A-Za-z0-9\u00c0-\uffdc][\w-]{0,62}(?:\.[\w-]{1,63}){1,8}")
_LOCAL: Final = re.compile(r"[\w.+\-%]{1,64}\Z")
_TAIL: Final = re.compile(r"[^\s<>\"'“”‘’\[\]{}|\\^`]{1,2000}")
_HOST_LEFT: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,120}\Z")
_TRAILING: Final = ".,;:!?)*_…。，"
_MARKDOWN: Final = re.compile(
    r"\]\([ \t]{0,4}<?([^\s<>()]{1,2000}(?:\([^\s<>()]{0,200}\)[^\s<>()]{0,200})?)"
    r">?(?:\s{1,4}(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'))?[ \t]{0,4}\)?"
)
# What a page loads, or leads to, by itself or on a click.
_ELEMENT: Final = re.compile(r"<[A-Za-z][^<>]{0,4000}>?")
_ATTRIBUTE: Final = re.compile(
    r"(?:\b(?:href|src|srcset|data|poster|action|formaction|background)\s{0,4}=\s{0,4}|\burl\(\s{0,4})"
    r"[\"']?\s{0,4}([^\s\"'<>]{1,2000})",
    re.IGNORECASE,
)
_LONGEST_LINK_TEXT: Final = 300
_SCHEME: Final = re.compile(r"(?:(?:https?|ftp):)?//|mailto:", re.IGNORECASE)
# To another host; browsers read "\\" as "/", and skip white space.
_AWAY: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:|[\\/]{2}")
_UNSEEN: Final = re.compile(r"[\x00-\x20]+")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])")
_GOES_BEFORE: Final = re.compile(r"[\w@-]\Z|(?<!www)(?<!WWW)\.\Z")
_GOES_ON: Final = re.compile(r"[\w-]|[.@][\w-]")
_REACH: Final = 4
# Query parameters that tell a page how its reader got there, and change nothing that it shows.
_TRACKING: Final = re.compile(
    r"(?:utm_\w{1,40}|[gf]bclid|gclid|msclkid|mc_[ce]id)=[^&]{0,200}", re.IGNORECASE
)
# Anchors within the page and telephone numbers: not addresses that a source could have.
_PLACELESS: Final = ("#", "tel:", "sms:")
# What runs or holds its content: in angle brackets, or behind a label, "[f]:", which may be cut off.
_RUNS: Final = re.compile(
    r"(?:^[ ]{0,3}(?:\[[^\]\n]{1,300}\]:[ \t]{0,4})?<?|<)"
    r"((?:(?:javascript|vbscript):|data:[^\s,<>]{0,200},|file:/)[^\s<>]{0,2000})>?",
    re.IGNORECASE | re.MULTILINE,
)
# Characters of contexts that are read on the event loop for one response: 25 ms at the worst.
_MAX_READ: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Link:
    """A link or address: its place in the raw text, and its target."""

    span: Span
    target: str


def find_addresses(text: str) -> Iterator[Link]:
    """The e-mail addresses and web addresses in ``text``, in order and without overlap."""
    last = 0
    for match in _STARTS.finditer(text):
        at = match.start()
        if at < last:
            continue
        span = _email(text, at, last) if match[0] == "@" else _url(text, match, last)
        if span is not None and fold_address(text[slice(*span)]):
            last = span[1]
            yield Link(span, text[slice(*span)])


def find_targets(raw: str) -> Iterator[Link]:
    """The targets of links and images in Markdown and HTML in ``raw``. Spans don't overlap or are the same,
    except for code that runs inside an element.
    """
    if "](" in raw:
        for match in _MARKDOWN.finditer(raw):
            opened = raw.rfind("[", max(0, match.start() - _LONGEST_LINK_TEXT), match.start())
            yield Link((match.start() if opened < 0 else opened, match.end()), _plain(match[1]))
    if "<" in raw:
        for element in _ELEMENT.finditer(raw):
            for match in _ATTRIBUTE.finditer(element[0]):
                yield Link(element.span(), _plain(match[1]))
    for match in _RUNS.finditer(raw) if ":" in raw else ():
        yield Link(match.span(), _plain(match[1]))


def _plain(target: str) -> str:
    return html.unescape(_ESCAPED.sub(r"\1", target))


def fold_address(target: str) -> str:
    """``target`` as addresses are compared: without scheme, "www.", fragment and what only tells where a
    reader comes from; the host in lower case."""
    scheme = _SCHEME.match(target)
    bare = target[scheme.end() :] if scheme else target
    bare = without_tracking(bare.partition("#")[0])
    host, slash, path = bare.partition("/")
    if "@" in host:
        host = host.partition("?")[0]
    return (host.lower().removeprefix("www.") + slash + path).rstrip("/" + _TRAILING)


def without_tracking(address: str) -> str:
    """``address`` without "utm_source=…" and the like in its query."""
    path, asks, query = address.partition("?")
    kept = [each for each in query.split("&") if not _TRACKING.fullmatch(each)] if asks else []
    return path + asks + "&".join(kept) if kept else path


def any_absent(links: Iterable[Link], contexts: Iterable[Context]) -> bool:
    """Whether a link or address is in no context: neither in its text or source, nor its id.

    CPU work in the length of the contexts: call it off the event loop.
    """
    wanted = {fold_address(link.target) for link in links if not link.target.lower().startswith(_PLACELESS)}
    wanted.discard("")
    for context in contexts:
        if not wanted:
            return False
        wanted.discard(context.id)
        for text in (context.source or "", context.text):
            if wanted and text:
                # "İ" in lower case would be two characters, and shift everything after it.
                lowered = text.replace("İ", "I").lower()
                wanted = {target for target in wanted if not _stands(target, text, lowered)}
    return bool(wanted)


class KnownLinks:
    """Distinguishes links that lead outside one response's contexts from those that the contexts contain.

    A decision needs the texts of the contexts, which are read on the event loop. So that no answer makes that
    slow, only the first ``_MAX_READ`` characters are read; a link not found there counts as foreign.
    """

    __slots__ = ("_budget", "_contexts", "_known", "_sources")

    def __init__(self, contexts: Sequence[Context]) -> None:
        self._contexts: Sequence[Context] = contexts
        self._known: dict[str, bool] = {}
        self._sources: frozenset[str] | None = None
        self._budget = _MAX_READ

    def release(self) -> None:
        """Drop the contexts, when no more text comes."""
        self._contexts = ()

    def any_foreign(self, links: Iterable[Link]) -> bool:
        """Whether a link leads to another host, with an address that no context has."""
        return any(self._is_foreign(link) for link in links if leads_away(link.target))

    def _is_foreign(self, link: Link) -> bool:
        target = fold_address(link.target)
        if self._sources is None:
            names = (name for context in self._contexts for name in (context.id, context.source) if name)
            self._sources = frozenset(map(fold_address, names))
        if target in self._sources:
            return False
        if target not in self._known:
            self._budget -= sum(len(context.text) for context in self._contexts)
            if self._budget < 0:
                return True
            self._known[target] = any_absent((link,), self._contexts)
        return self._known[target]


def leads_away(target: str) -> bool:
    """Whether ``target`` is an address with a host, and not a place in the shown text."""
    bare = _UNSEEN.sub("", target).lower()
    if bare.startswith(_PLACELESS):
        return False
    return _AWAY.match(bare) is not None or _STARTS.search(bare) is not None


def _stands(target: str, text: str, lowered: str) -> bool:
    """Whether ``text`` contains the folded address, and not only as part of another host or path."""
    host, slash, path = target.partition("/")
    host, path = host.lower(), slash + path
    at = lowered.find(host)
    while at >= 0:
        end = at + len(host) + len(path)
        if (
            text.startswith(path, at + len(host))
            and not _GOES_BEFORE.search(text, max(0, at - _REACH), at)
            and not _GOES_ON.match(text, end)
        ):
            return True
        at = lowered.find(host, at + 1)
    return False


def _email(text: str, at: int, last: int) -> Span | None:
    local = _LOCAL.search(text[max(last, at - _MAX_LOCAL) : at])
    domain = _DOMAIN.match(text, at + 1, at + 256)
    if local is None or domain is None:
        return None
    start = at - len(local[0].lstrip(".-"))
    return None if start == at else (start, domain.end())


def _url(text: str, match: re.Match[str], last: int) -> Span | None:
    start, end = match.span()
    if text[start] == ".":  # a bare domain: example.com/path
        host = _HOST_LEFT.search(text[max(last, start - _MAX_HOST) : start])
        if host is None:
            return None
        start -= len(host[0])
        tail = _TAIL.match(text, end) if text[end : end + 1] == "/" else None
    else:
        tail = _TAIL.match(text, end)
        if tail is None:
            return None
    shortest = end
    end = tail.end() if tail else end
    while end > shortest and text[end - 1] in _TRAILING:
        if text[end - 1] == ")" and "(" in text[start:end]:
            break
        end -= 1
    return start, end


# ---------------------------------------------------------------------------------------- names of contexts

_MAX_NAME_CHARS: Final = 512
"""As long as an id can be; what is longer names nothing."""

_MAX_RANGE: Final = 20
"""Numbers that "[3-8]" may stand for; of a wider range only both ends are meant."""

_JOINS: Final = re.compile(r"[\s_#:-]+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_EXTENSION: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_SCHEME_OF_NAME: Final = re.compile(r"(?:https?:)?//(?:www\.)?|www\.", re.IGNORECASE)
_MARKS: Final = " \t\r\n\"'`*“”‘’«»"

Ids = tuple[str, ...]
"""Ids of contexts, in the order of the contexts."""

Named = tuple[str, str | None]
"""The id of a context, and where it comes from."""

_LABEL: Final = re.compile(rf"\A{one_of('labels')}\.?[\s_#:-]*(?=\d)")


class ContextNames:
    """The names of one response's contexts. Building it is linear in their ids and sources.

    The first interpretation of a name that matches counts: an id; a whole source (title, file name, address);
    the last part of a source's path; that without its extension. Case, white space, hyphens and underscores
    are ignored if the name stays unambiguous. The name of a source refers to all its contexts.
    """

    __slots__ = ("_bare", "_exact", "_links", "_loose", "_names", "has_titles", "order")

    def __init__(self, contexts: Sequence[Named]) -> None:
        self.order: Ids = tuple(by for by, _ in contexts)
        self._exact = frozenset(self.order)
        self._names: dict[str, Ids] = {}
        self._links: dict[str, Ids] = {}
        whole = [(by, by) for by, _ in contexts]
        sources = [(source, by) for by, source in contexts if source]
        addresses = [(_address(name), by) for name, by in (*whole, *sources) if _is_address(name)]
        self._add(self._links, addresses)
        # Addresses without the query that they have, as far as only one is left.
        bare = Counter(name.partition("?")[0] for name in self._links)
        queried = {name: ids for name, ids in self._links.items() if bare[name.partition("?")[0]] == 1}
        self._bare = {name.partition("?")[0]: ids for name, ids in queried.items()}
        self.has_titles = any(" " in source.strip() for source, _ in sources)
        """Whether a context is called something of several words."""
        last = _last_parts((*whole, *sources))
        for level in (whole, sources, last):
            self._add(self._names, [(fold_name(name), by) for name, by in level])
        stems = [(_EXTENSION.sub("", name), by) for name, by in last]
        self._add(self._names, [(fold_name(name), by) for name, by in stems if _LETTER.search(name)])
        self._loose: dict[str, Ids] | None = None  # made when one is asked for

    @staticmethod
    def _add(known: dict[str, Ids], named: Iterable[tuple[str, str]]) -> None:
        """Names of one level: they add to each other, and never to those of a level before."""
        new: dict[str, dict[str, None]] = {}
        for name, by in named:
            if name and name not in known and len(name) <= _MAX_NAME_CHARS:
                new.setdefault(name, {})[by] = None
        known.update((name, tuple(ids)) for name, ids in new.items())

    def named(self, text: str) -> Ids | None:
        """The contexts with this name; None if there are none."""
        if text in self._exact:
            return (text,)
        if len(text) > _MAX_NAME_CHARS:
            return None
        name = fold_name(text)
        found = self._names.get(name)
        if found is not None or not name:
            return found
        if self._loose is None:
            self._loose = _unambiguous(self._names)
        return self._loose.get(_loosened(name))

    def numbered(self, number: str) -> Ids:
        """The context with this id, else the one at this position, counted from 1; empty if there is none."""
        if number in self._exact:
            return (number,)
        at = int(number)
        if str(at) in self._exact:
            return (str(at),)
        return (self.order[at - 1],) if 0 < at <= len(self.order) else ()

    def ranged(self, first: str, last: str) -> Ids:
        """The contexts from one number to another."""
        low, high = int(first), int(last)
        numbers = range(low, high + 1) if low < high <= low + _MAX_RANGE else (low, high)
        return joined(self.numbered(str(number)) for number in numbers)

    def linked(self, target: str) -> Ids | None:
        """The contexts that a link leads to; None if there are none.

        An added or missing query ("?utm_source=…") makes no difference; a different one, "?id=2" instead of
        "?id=1", belongs to another document.
        """
        found: Ids | None = None
        if len(target) <= 2 * _MAX_NAME_CHARS:
            address = _address(target)
            bare, query, _ = address.partition("?")
            found = self._links.get(address) or (self._links if query else self._bare).get(bare)
        if found is None and not _SCHEME_OF_NAME.match(target):
            found = self.named(unquote(target).lstrip("#./"))
        return found


def joined(found: Iterable[Ids]) -> Ids:
    """All ids, each once."""
    return tuple(dict.fromkeys(by for ids in found for by in ids))


def fold_name(text: str) -> str:
    """A name without insignificant differences: case, width, quotes and emphasis around it."""
    text = text.strip(_MARKS)
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(plain.casefold().split())


def _loosened(name: str) -> str:
    """Without separators, and with all labels treated alike: "Document 2", "doc-2" and "doc2" are the
    same.
    """
    return _JOINS.sub("", _LABEL.sub("§", name)) if _LETTER.search(name) else ""


def _unambiguous(names: dict[str, Ids]) -> dict[str, Ids]:
    found: dict[str, set[Ids]] = {}
    for name, ids in names.items():
        found.setdefault(_loosened(name), set()).add(ids)
    return {name: next(iter(of)) for name, of in found.items() if name and len(of) == 1}


def _last_parts(named: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The last parts of paths, if only one path ends in them."""
    paths: dict[str, set[str]] = {}
    parts = []
    for name, by in named:
        path = name.replace("\\", "/").split("?")[0].split("#")[0].rstrip("/")
        last = unquote(path.rpartition("/")[2])
        if _LETTER.search(last):
            paths.setdefault(folded := fold_name(last), set()).add(path)
            parts.append((last, folded, by))
    return [(last, by) for last, folded, by in parts if len(paths[folded]) == 1]


def _is_address(name: str) -> bool:
    return "/" in name or name.lower().startswith("www.")


def _address(target: str) -> str:
    """An address without insignificant parts: scheme, www, fragment, a trailing slash."""
    whole = unquote(target.strip()).partition("#")[0]
    path, query, asked = whole.partition("?")
    return _SCHEME_OF_NAME.sub("", path.rstrip("/") + query + asked, count=1).rstrip("/").casefold()
