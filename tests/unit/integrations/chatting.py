"""What a chat model says that reads the LLM judge's prompt."""

from __future__ import annotations

import json
import re


def verdicts(prompt: str) -> str:
    """Supported are the claims of ``prompt`` that stand in a document, word for word."""
    documents = dict(re.findall(r"^\[(\d+)\] (.*)$", prompt.rpartition("The marker is")[2], re.MULTILINE))
    said = []
    for claim, text in re.findall(r"^\[m\d+ claim (c\d+)\]\n(.*)$", prompt, re.MULTILINE):
        found = next((number for number, sentence in documents.items() if text in sentence), None)
        said.append(f"{claim} unsupported: Not there." if found is None else f"{claim} {found} supported")
    return json.dumps({"v": said})
