"""The README and the pages of docs/, and every code block in them as a Markdown parser sees it."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer.main
from markdown_it import MarkdownIt

from guardrail.cli import app
from tests.support.llm_server import LlmServer

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
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


def page(name: str) -> str:
    """The text of a page of docs/."""
    return (DOCS / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    """The blocks of one language on a page of docs/."""
    return [block.text for block in code_blocks([DOCS / name]) if block.language == language]


def code_blocks(pages: Iterable[Path] = PAGES) -> Iterator[Block]:
    """All of them, page after page."""
    for path in pages:
        name = path.resolve().relative_to(ROOT).as_posix()
        counts: dict[str, int] = {}
        for token in MarkdownIt("commonmark").parse(path.read_text(encoding="utf-8")):
            if token.type in {"fence", "code_block"}:
                language = token.info.strip()
                number = counts.get(language, 0)
                counts[language] = number + 1
                line = (token.map or [0])[0] + 1
                yield Block(name, language, number, line, token.content)


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


def parse(arguments: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """Name and parameters of a command of ``guardrail``, which is not run. Raises what the command line
    raises of wrong usage.
    """
    command: Any = typer.main.get_command(app)
    context = command.make_context("guardrail", list(arguments))
    while hasattr(command, "resolve_command"):
        left = [*getattr(context, "_protected_args", []), *context.args]
        name, command, left = command.resolve_command(context, left)
        context = command.make_context(name, left, parent=context)
    return str(context.command_path), dict(context.params)


def printed_by(code: str) -> str:
    """What a program prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


async def printed_with(server: LlmServer, code: str, folder: Path) -> str:
    """What a program prints that is run in ``folder``; the LLM judge that it builds asks ``server``."""
    there = {"GUARDRAIL_JUDGE__LLM__BASE_URL": server.url, "OPENAI_API_KEY": "not-sent-there"}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code),
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("GUARDRAIL_")} | there,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return out.decode()
