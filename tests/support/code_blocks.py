"""Every code block of the README and of docs/, fenced and indented, as a Markdown parser sees them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from markdown_it import MarkdownIt

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "helm/guardrail/README.md"])


@dataclass(frozen=True, slots=True)
class Block:
    """``number`` counts the blocks of one language on a page, from 0; indented ones have no language."""

    page: str
    language: str
    number: int
    line: int
    text: str

    @property
    def name(self) -> str:
        """What a test is called, and what tables in tests name it by."""
        return f"{self.page}:{self.language or 'shell'}:{self.number}"


def code_blocks() -> Iterator[Block]:
    """All of them, page after page."""
    for path in PAGES:
        counts: dict[str, int] = {}
        for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
            if token.type in {"fence", "code_block"}:
                language = token.info.strip()
                number = counts.get(language, 0)
                counts[language] = number + 1
                line = (token.map or [0])[0] + 1
                yield Block(path.relative_to(ROOT).as_posix(), language, number, line, token.content)


def shell_lines(text: str) -> Iterator[list[str]]:
    """The commands of a block in words, without variables before them, comments, and where output goes."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;>")
        lexer.whitespace_split = True
        words: list[str] = []
        into_file = False
        for word in [*lexer, ";"]:
            if set(word) <= set("|&;"):
                while words and re.match(r"[A-Z_]+=", words[0]):
                    words = words[1:]
                if words:
                    yield words
                words, into_file = [], False
            elif word in {">", ">>"}:
                into_file = True
            elif not into_file:
                words.append(word)
