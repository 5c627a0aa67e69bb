"""Labels in a file of their own, and samples with those that are about them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from guardrail.errors import ConfigError, DecodeError
from guardrail.events import Label, parse_label
from guardrail.offline.lines import read_lines
from guardrail.offline.results import BadSample, Sample


def read_labels(path: str | Path) -> dict[str, list[Label]]:
    """The labels of a file with one a line, by the id of their response; of two with one id, the later.

    Raises OSError, and ConfigError naming the line that is no label.
    """
    found: dict[str, dict[str, Label]] = defaultdict(dict)
    with Path(path).open("rb") as stream:
        for line in read_lines(stream):
            try:
                label = parse_label(line.data or b"")
            except DecodeError as error:
                raise ConfigError(
                    f"{path} line {line.number}: {error}; give one label event a line"
                ) from None
            mine = found[label.response_id]
            mine[label.id or f"line {line.number}"] = label
    return {response_id: list(labels.values()) for response_id, labels in found.items()}


def labelled(sample: Sample | BadSample, labels: Mapping[str, Sequence[Label]]) -> Sample | BadSample:
    """The sample with the labels of its id added to its own."""
    if isinstance(sample, Sample) and (more := labels.get(sample.response.response_id)):
        return replace(sample, labels=(*sample.labels, *more))
    return sample
