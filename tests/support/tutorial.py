"""The files that docs/tutorial-kafka-chat.md has its reader save."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_TEXT: Final = (Path(__file__).parents[2] / "docs" / "tutorial-kafka-chat.md").read_text("utf-8")
_BLOCKS: Final = re.findall(r"```(?:yaml|python)\n(.*?)```", _TEXT, re.DOTALL)
OBSERVING, CHAT, ENFORCING, TEST_CHAT, CASES = _BLOCKS
"""guardrail.yaml at first, chat.py, guardrail.yaml then, test_chat.py, cases.py."""
