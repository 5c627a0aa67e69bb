"""What docs/security.md says is so: what is kept how long, how it fails, what is withheld, who is asked."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

from consumers.settings import KafkaSettings, OpsSettings
from consumers.topics import plan_topics
from guardrail.client import GuardClient
from guardrail.config.settings import LoggingSettings
from guardrail.judges.cache import CacheSettings
from guardrail.judges.cascade import CascadeSettings
from guardrail.judges.model import ClassifierSettings
from guardrail.judges.spending import BudgetSettings
from guardrail.limits import Limits
from guardrail.logs import TEXT_KEYS
from guardrail.policy import Policy

TEXT = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
WORDS = " ".join(TEXT.split())
_DAY_MS = 86_400_000

_WATCHED = """
import asyncio, os, sys
from guardrail import Guard

seen = []

def watch(event, arguments):
    if event == "socket.connect":
        seen.append((event, arguments[1]))
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        seen.append((event, arguments[0]))

async def main():
    async with Guard() as guard:
        verdict = await guard.check("What does it cost?", ["It costs $49 a month."], "It costs $79 a month.")
    print(len(verdict.claims))

sys.addaudithook(watch)
sys.dont_write_bytecode = True
asyncio.run(main())
print(seen)
"""


def test_topics_are_kept_as_long_as_it_says() -> None:
    told = dict(re.findall(r"^\| `([a-z.-]+)` \| .* \| ([^|]+) \|$", TEXT, re.MULTILINE))
    plans = {plan.name: plan.configs for plan in plan_topics(KafkaSettings(), 6, 3)}
    assert told.keys() == plans.keys()
    for name, kept in told.items():
        if plans[name]["cleanup.policy"] == "delete":
            assert kept == f"{int(plans[name]['retention.ms']) // _DAY_MS} days"
        else:
            assert f"within {int(plans[name]['max.compaction.lag.ms']) // 60_000} minutes" in kept


def test_it_fails_as_it_says() -> None:
    policy = Policy()
    assert (policy.mode, policy.on_unverified, policy.on_incomplete) == ("stream", "fail_closed", "block")
    client = inspect.signature(GuardClient).parameters
    assert client["on_timeout"].default == "raise"
    assert f"`timeout_s` ({client['timeout_s'].default:g} s)" in WORDS
    assert CascadeSettings().on_unavailable == {}
    assert BudgetSettings().on_budget == "local"


def test_what_is_off_by_default_is_off() -> None:
    assert not LoggingSettings().log_texts
    assert {"question", "context", "answer", "claim", "quote"} <= TEXT_KEYS
    assert (OpsSettings().host, OpsSettings().traces) == ("127.0.0.1", False)
    assert not ClassifierSettings(preset="hhem").allow_remote_code
    cache = CacheSettings()
    assert (cache.redis_url, cache.ttl_seconds) == (None, 3600)


def test_memory_is_what_it_says() -> None:
    assert f"the last {Limits.finished_responses_remembered:,} finished" in WORDS
    assert f"for {Limits.finished_response_ttl_ms // 60_000} minutes, and" in WORDS


def test_a_guard_with_the_local_judge_asks_nobody_and_writes_no_file() -> None:
    done = subprocess.run([sys.executable, "-c", _WATCHED], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["1", "[]"]
