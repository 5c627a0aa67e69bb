"""Says how the checks of those frameworks come out that are installed, and writes it into the page."""

from __future__ import annotations

import re
from importlib import import_module

from tests.unit.integrations.conformance.checks import PAGE, Conformance

text = PAGE.read_text("utf-8")
for name in ("haystack", "llama_index", "ragas"):
    try:
        found: Conformance = import_module(f"{__package__}.in_{name}").CONFORMANCE
    except ImportError as error:
        print(f"{name}: {error}")  # noqa: T201
        continue
    piece = found.piece()
    print(piece)  # noqa: T201
    begin, end = piece.splitlines()[0], piece.splitlines()[-1]
    text = re.sub(f"{begin}.*?{end}", piece.replace("\\", r"\\"), text, flags=re.DOTALL)
PAGE.write_text(text, "utf-8")
