"""The names of a response's contexts, and which contexts a name or number refers to."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import unquote

from guardrail.claims.phrases import one_of

MAX_NAME_CHARS: Final = 512
"""As long as an id can be; what is longer names nothing."""

MAX_RANGE: Final = 20
"""Numbers that "[3-8]" may stand for; of a wider range only both ends are meant."""

_JOINS: Final = re.compile(r"[\s_#:-]+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_EXTENSION: Final = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
_SCHEME: Final = re.compile(r"(?:https?:)?//(?:www\.)?|www\.", re.IGNORECASE)
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
            self._add(self._names, [(fold(name), by) for name, by in level])
        stems = [(_EXTENSION.sub("", name), by) for name, by in last]
        self._add(self._names, [(fold(name), by) for name, by in stems if _LETTER.search(name)])
        self._loose: dict[str, Ids] | None = None  # made when one is asked for

    @staticmethod
    def _add(known: dict[str, Ids], named: Iterable[tuple[str, str]]) -> None:
        """Names of one level: they add to each other, and never to those of a level before."""
        new: dict[str, dict[str, None]] = {}
        for name, by in named:
            if name and name not in known and len(name) <= MAX_NAME_CHARS:
                new.setdefault(name, {})[by] = None
        known.update((name, tuple(ids)) for name, ids in new.items())

    def named(self, text: str) -> Ids | None:
        """The contexts with this name; None if there are none."""
        if text in self._exact:
            return (text,)
        if len(text) > MAX_NAME_CHARS:
            return None
        name = fold(text)
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
        numbers = range(low, high + 1) if low < high <= low + MAX_RANGE else (low, high)
        return joined(self.numbered(str(number)) for number in numbers)

    def linked(self, target: str) -> Ids | None:
        """The contexts that a link leads to; None if there are none.

        An added or missing query ("?utm_source=…") makes no difference; a different one, "?id=2" instead of
        "?id=1", belongs to another document.
        """
        found: Ids | None = None
        if len(target) <= 2 * MAX_NAME_CHARS:
            address = _address(target)
            bare, query, _ = address.partition("?")
            found = self._links.get(address) or (self._links if query else self._bare).get(bare)
        if found is None and not _SCHEME.match(target):
            found = self.named(unquote(target).lstrip("#./"))
        return found


def joined(found: Iterable[Ids]) -> Ids:
    """All ids, each once."""
    return tuple(dict.fromkeys(by for ids in found for by in ids))


def fold(text: str) -> str:
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
            paths.setdefault(folded := fold(last), set()).add(path)
            parts.append((last, folded, by))
    return [(last, by) for last, folded, by in parts if len(paths[folded]) == 1]


def _is_address(name: str) -> bool:
    return "/" in name or name.lower().startswith("www.")


def _address(target: str) -> str:
    """An address without insignificant parts: scheme, www, fragment, a trailing slash."""
    whole = unquote(target.strip()).partition("#")[0]
    path, query, asked = whole.partition("?")
    return _SCHEME.sub("", path.rstrip("/") + query + asked, count=1).rstrip("/").casefold()
