"""The files that the tutorials in docs/ have their reader save."""

from __future__ import annotations

import re
from pathlib import Path


def _blocks(page: str) -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / page).read_text("utf-8")
    return re.findall(r"```(?:yaml|python)\n(.*?)```", text, re.DOTALL)


OBSERVING, CHAT, ENFORCING, TEST_CHAT, CASES = _blocks("tutorial-kafka-chat.md")
"""guardrail.yaml at first, chat.py, guardrail.yaml then, test_chat.py, cases.py."""
REVIEWING, RECEIVER = _blocks("tutorial-review.md")
"""What guardrail.yaml gets in addition, receiver.py."""
PROXY, PROXY_POLICY, ASK = _blocks("tutorial-litellm.md")
"""config.yaml, guardrail.yaml, ask.py."""
