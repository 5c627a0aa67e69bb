"""The classifier judge and the verifier on model servers: the same verdicts as in process, and failures."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from guardrail.claims.model import Claim
from guardrail.errors import ConfigError, JudgeError, JudgeReplyError, JudgeUnavailable
from guardrail.events import Verdict
from guardrail.judges.base import JudgeRequest
from guardrail.judges.local.judge import LocalJudge
from guardrail.judges.local.settings import LocalJudgeSettings
from guardrail.judges.model import (
    ClassifierJudge,
    ClassifierSettings,
    ServerSettings,
    start_notes,
)
from guardrail.verdicts import Judgement
from tests.support.constants import made, make_retries_quick
from tests.support.json_server import Answer
from tests.support.judges import reply_of
from tests.support.model_servers import ModelServer, OipServer, TeiServer, VllmServer
from tests.unit.judges.model.asking import request
from tests.unit.judges.model.tiny import write_model
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier

KINDS: dict[str, type[ModelServer]] = {"oip": OipServer, "tei": TeiServer, "vllm": VllmServer}
SECRET = "alpha beta hunter2"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    make_retries_quick(monkeypatch)


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("served") / "tiny-nli")


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with one label, the logit of support."""
    return write_model(tmp_path_factory.mktemp("served") / "tiny-scorer", ["supported"])


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 64 tokens."""
    return write_model(tmp_path_factory.mktemp("served") / "tiny-nli", max_tokens=64)


def settings(folder: Path, server: ModelServer, **changes: Any) -> ClassifierSettings:
    kind = next(name for name, each in KINDS.items() if isinstance(server, each))
    place = {"kind": kind, "url": server.root, **({} if kind == "tei" else {"model": "m"})}
    more = {name: changes.pop(name) for name in ("template", "labels") if name in changes}
    served = made(ServerSettings, **place, **changes)
    return ClassifierSettings.model_validate({"model": str(folder), "server": served, **more})


@asynccontextmanager
async def judging(
    kind: str, folder: Path, *, max_tokens: int = 512, **changes: Any
) -> AsyncIterator[tuple[ClassifierJudge, ModelServer]]:
    async with KINDS[kind](folder, max_tokens=max_tokens) as server:
        judge = ClassifierJudge(settings(folder, server, **changes))
        try:
            yield judge, server
        finally:
            await judge.aclose()


async def in_process(folder: Path, asked: JudgeRequest, **more: Any) -> tuple[Judgement, ...]:
    judge = ClassifierJudge(ClassifierSettings.model_validate({"model": str(folder), **more}))
    try:
        return (await reply_of(judge, asked)).judgements
    finally:
        await judge.aclose()


def alike(ours: Sequence[Judgement], others: Sequence[Judgement]) -> None:
    """The same judgements, their numbers but for the last bits."""
    assert [each.claim_id for each in ours] == [each.claim_id for each in others]
    for one, other in zip(ours, others, strict=True):
        numbers = [(each.confidence, each.support, each.contradiction) for each in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], abs=1e-5)
        plain = [replace(each, confidence=0.0, support=0.0, contradiction=None) for each in (one, other)]
        assert plain[0] == plain[1]


CLAIMS: list[str | Claim] = ["The sky is blue", "red 29", "alpha beta gamma", "costs 49 . red"]
CONTEXTS = [
    "filler . " * 300 + "The sky is blue today.",
    "not alpha beta",
    "costs 49 29 red " + "filler " * 600,
]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_gives_the_verdicts_of_the_same_model_in_process(kind: str, nli: Path) -> None:
    asked = request(CLAIMS, CONTEXTS)
    async with judging(kind, nli) as (judge, server):
        found = (await reply_of(judge, asked)).judgements
        assert judge.name == "classifier:tiny-nli"
    expected = await in_process(nli, asked)
    assert {each.verdict for each in expected} > {Verdict.SUPPORTED}
    alike(sorted(found, key=lambda j: j.claim_id), sorted(expected, key=lambda j: j.claim_id))
    assert sum(path in {"/v2/models/m/infer", "/predict", "/classify"} for path, _ in server.asked) >= 4


@pytest.mark.parametrize("kind", KINDS)
async def test_one_label_is_the_logit_of_support(kind: str, scorer: Path) -> None:
    asked = request(CLAIMS[:2], CONTEXTS)
    async with judging(kind, scorer) as (judge, server):
        found = (await reply_of(judge, asked)).judgements
    expected = await in_process(scorer, asked)
    alike(sorted(found, key=lambda j: j.claim_id), sorted(expected, key=lambda j: j.claim_id))
    if kind == "vllm":
        assert {path for path, _ in server.asked} == {"/v1/models", "/score"}


@pytest.mark.parametrize("kind", ["oip", "tei"])
async def test_a_template_makes_one_text(kind: str, nli: Path) -> None:
    template = "premise : {premise} hypothesis : {hypothesis}"
    asked = request(["sky blue"], ["the sky is blue"])
    async with judging(kind, nli, template=template) as (judge, server):
        found = (await reply_of(judge, asked)).judgements
    alike(found, await in_process(nli, asked, template=template))
    if kind == "tei":
        ((_, sent),) = [each for each in server.asked if each[0] == "/predict"]
        assert sent["inputs"] == [["premise : the sky is blue hypothesis : sky blue"]]
        assert sent["truncate"] is False


@pytest.mark.parametrize("kind", ["tei", "vllm"])
async def test_windows_are_as_long_as_the_server_takes(kind: str, nli: Path) -> None:
    """It says so itself; the model's own files would allow 512."""
    context = "filler " * 400 + "the sky is blue"
    async with judging(kind, nli, max_tokens=64) as (judge, _):
        (judgement,) = (await reply_of(judge, request(["sky blue"], [context]))).judgements
    assert judgement.verdict is Verdict.SUPPORTED


async def test_a_batch_is_no_larger_than_the_server_takes(nli: Path) -> None:
    async with judging("tei", nli) as (judge, server):
        await reply_of(judge, request(["sky blue"], ["the sky is blue"] * 11))
        sizes = [len(body["inputs"]) for path, body in server.asked if path == "/predict"]
    assert sorted(sizes) == [3, 4, 4]


async def test_a_server_that_says_nothing_of_its_tensors(nli: Path) -> None:
    async with judging("oip", nli) as (judge, server):
        assert isinstance(server, OipServer)
        server.tensors = False
        (judgement,) = (await reply_of(judge, request(["sky blue"], ["the sky is blue"]))).judgements
        assert judgement.verdict is Verdict.SUPPORTED
        (sent,) = [body for path, body in server.asked if path.endswith("/infer")]
        assert [each["name"] for each in sent["inputs"]] == ["input_ids", "attention_mask", "token_type_ids"]


async def test_headers(nli: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("Bearer s3cret\n", encoding="utf-8")
    headers = {"X-Team": "a", "Authorization": {"file": str(tmp_path / "token")}}
    async with judging("oip", nli, headers=headers) as (judge, server):
        await reply_of(judge, request(["sky blue"], ["the sky"]))
    assert all(head["authorization"] == "Bearer s3cret" for head in server.heads)
    assert all(head["x-team"] == "a" for head in server.heads)


async def test_calls_at_once_are_bounded(nli: Path) -> None:
    async with judging("oip", nli, max_concurrency=3) as (judge, server):
        server.hold = asyncio.Event()
        asked = request(["sky blue"] * 12, ["the sky is blue"] * 20)
        asking = asyncio.ensure_future(reply_of(judge, asked))
        while server.at_once < 3:
            server.arrived.clear()
            await server.arrived.wait()
        server.hold.set()
        assert len((await asking).judgements) == 12
        assert server.most_at_once == 3


# ------------------------------------------------------------------------------------------------- failures


async def failure(
    kind: str, folder: Path, before: Callable[[str, str, Any], Answer | None], seconds: float = 60.0
) -> JudgeError:
    """The error of a request for one claim."""
    async with judging(kind, folder) as (judge, server):
        server.before = before
        with pytest.raises(JudgeError) as caught:
            await reply_of(judge, request([SECRET], ["the sky is blue"], seconds=seconds))
    assert "hunter2" not in str(caught.value)
    return caught.value


def on(path: str, status: int, told: Any = None) -> Callable[[str, str, Any], Answer | None]:
    return lambda method, asked, body: (status, told) if asked.endswith(path) else None


async def test_a_server_that_is_busy_is_asked_again(nli: Path) -> None:
    left = [(503, None), (429, {"error": "Model is overloaded", "error_type": "overloaded"})]
    async with judging("tei", nli) as (judge, server):
        server.before = lambda method, path, body: left.pop() if path == "/predict" and left else None
        (judgement,) = (await reply_of(judge, request(["sky blue"], ["the sky is blue"]))).judgements
        assert judgement.verdict is Verdict.SUPPORTED
        assert [path for path, _ in server.asked] == ["/info", "/predict", "/predict", "/predict"]


async def test_a_connection_that_is_cut_is_made_again(nli: Path) -> None:
    left = [(0, None)]
    async with judging("oip", nli) as (judge, server):
        server.before = lambda method, path, body: left.pop() if path.endswith("infer") and left else None
        (judgement,) = (await reply_of(judge, request(["sky blue"], ["the sky is blue"]))).judgements
        assert judgement.verdict is Verdict.SUPPORTED


@pytest.mark.parametrize(
    ("kind", "before", "says"),
    [
        ("oip", on("/infer", 401), "judge.classifier.server: check headers"),
        ("oip", on("/infer", 404), "judge.classifier.server: check kind, url and model"),
        (
            "oip",
            on("/ready", 400, {"error": "Model version not ready"}),
            "check judge.classifier.server.model",
        ),
        ("oip", on("/ready", 200, {"name": "m", "ready": False}), "the model m is not ready"),
        (
            "oip",
            on("/infer", 200, b"<html>hunter2"),
            "is not JSON; judge.classifier.server: check kind and url",
        ),
        ("oip", on("/infer", 200, {"outputs": []}), "has no output logits"),
        (
            "oip",
            on("/infer", 200, {"outputs": [{"name": "logits", "shape": [1, 2], "data": [0.1, 0.2]}]}),
            "an output of shape [1, 2] for 1 pairs and 3 labels",
        ),
        (
            "oip",
            on("/infer", 200, {"outputs": [{"name": "logits", "shape": [1, 3], "data": [0.1, "hunter2"]}]}),
            "something other than numbers",
        ),
        (
            "oip",
            on("/models/m", 200, {"inputs": [{"name": "text", "datatype": "BYTES", "shape": [-1]}]}),
            "takes 'text'; a classifier of pairs takes input_ids",
        ),
        ("tei", on("/info", 200, {"model_type": {"embedding": {"pooling": "cls"}}}), "serves no classifier"),
        ("tei", on("/predict", 424, {"error": "hunter2", "error_type": "backend"}), "see the server's log"),
        (
            "tei",
            on("/predict", 413, {"error": "`inputs` must have less than 512 tokens. Given: 600"}),
            "more tokens than it takes: give the tokenizer of the model",
        ),
        (
            "tei",
            on("/predict", 200, [[{"label": "joy", "score": 0.1}]]),
            "has a label that the model's config.json lacks",
        ),
        ("tei", on("/predict", 200, [[{"label": "neutral", "score": 0.1}]]), "lacks a label of the model's"),
        ("vllm", on("/v1/models", 200, {"data": [{"id": "other"}]}), "lists no model m"),
        ("vllm", on("/classify", 200, {"data": []}), "has no data for each of 1 pairs"),
        ("vllm", on("/classify", 200, {"data": [{"index": [0]}]}), "has no data for each of 1 pairs"),
        (
            "vllm",
            on("/classify", 200, {"data": [{"index": 0, "probs": [0.5, 0.5]}]}),
            "other labels than the 3",
        ),
        (
            "vllm",
            on("/classify", 200, {"data": [{"index": 0, "probs": [3.1, -2.0, 0.2]}]}),
            "a probability that is not between 0 and 1",
        ),
    ],
)
async def test_what_is_wrong_and_where_to_look(
    nli: Path, kind: str, before: Callable[[str, str, Any], Answer | None], says: str
) -> None:
    assert says in str(await failure(kind, nli, before))


async def test_nothing_listens(nli: Path) -> None:
    """Guards start all the same: a server that is restarted doesn't keep them from it."""
    async with OipServer(nli) as server:
        chosen = settings(nli, server)
    judge = ClassifierJudge(chosen)
    try:
        with pytest.raises(
            JudgeUnavailable, match=r"nothing listens there; check judge.classifier.server.url"
        ):
            await reply_of(judge, request(["sky blue"], ["the sky is blue"]))
    finally:
        await judge.aclose()


async def test_a_server_that_hangs_costs_no_more_than_the_deadline(nli: Path) -> None:
    async with judging("oip", nli) as (judge, server):
        server.hold = asyncio.Event()
        with pytest.raises(JudgeUnavailable):
            await reply_of(judge, request(["sky blue"], ["the sky is blue"], seconds=0.3))
        await server.left.wait()
        assert server.hung_up == 1


async def test_one_reply_is_waited_for_no_longer_than_its_time(nli: Path) -> None:
    async with judging("oip", nli, timeout_ms=100) as (judge, server):
        server.hold = asyncio.Event()
        with pytest.raises(JudgeUnavailable, match=r"within 0\.1 s"):
            await reply_of(judge, request(["sky blue"], ["the sky is blue"]))
        assert sum(path.endswith("/infer") for path, _ in server.asked) == 3


async def until_inference(server: ModelServer) -> None:
    while not any(path.endswith("/infer") for path, _ in server.asked):
        server.arrived.clear()
        await server.arrived.wait()


async def test_who_no_longer_waits_withdraws_the_calls(nli: Path) -> None:
    async with judging("oip", nli) as (judge, server):
        server.hold = asyncio.Event()
        asking = asyncio.ensure_future(reply_of(judge, request(["sky blue"], ["the sky is blue"])))
        await until_inference(server)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.left.wait()


async def test_closing_ends_what_is_asked(nli: Path) -> None:
    async with judging("oip", nli) as (judge, server):
        server.hold = asyncio.Event()
        asking = asyncio.ensure_future(reply_of(judge, request(["sky blue"], ["the sky is blue"])))
        await until_inference(server)
        await judge.aclose()
        with pytest.raises(JudgeUnavailable):
            await asking
        with pytest.raises(JudgeUnavailable, match="closed"):
            await reply_of(judge, request(["sky blue"], ["the sky is blue"]))


async def test_a_server_that_keeps_failing_is_left_alone(nli: Path) -> None:
    async with judging("tei", nli) as (judge, server):
        await reply_of(judge, request(["sky blue"], ["the sky is blue"]))
        server.before = on("/predict", 500)
        for _ in range(5):
            with pytest.raises(JudgeError):
                await reply_of(judge, request(["sky blue"], ["the sky is blue"]))
        before = len(server.asked)
        with pytest.raises(JudgeUnavailable, match="not calling it again for a while"):
            await reply_of(judge, request(["sky blue"], ["the sky is blue"]))
        assert len(server.asked) == before


async def test_texts_are_not_logged(nli: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        await failure("tei", nli, on("/predict", 424, {"error": SECRET}))
    assert "hunter2" not in caplog.text


# ------------------------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ({"kind": "oip", "url": "http://x"}, "model is not set; give the model's name on the oip server"),
        ({"kind": "tei", "url": "http://x", "model": "m"}, "serves one model; take it out"),
        ({"kind": "tei", "url": "x:80"}, "must be a URL with http:// or https://"),
        ({"kind": "tei", "url": "http://a:b@x"}, "must hold no user or password"),
        ({"kind": "tei", "url": "http://x", "headers": {"a b": "c"}}, "not a name of a header"),
        ({"kind": "triton", "url": "http://x"}, "'oip', 'tei' or 'vllm'"),
    ],
)
def test_settings_that_can_not_be_right(server: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ClassifierSettings.model_validate({"server": server})


def refused(folder: Path, **changes: Any) -> str:
    place = {"kind": "vllm", "url": "http://127.0.0.1:9", "model": "m"}
    with pytest.raises(ConfigError) as caught:
        ClassifierJudge(ClassifierSettings.model_validate({"model": str(folder), "server": place, **changes}))
    return str(caught.value)


def test_models_that_vllm_can_not_be_asked_about(nli: Path, scorer: Path, tmp_path: Path) -> None:
    assert "--chat-template" in refused(scorer, template="{premise} {hypothesis}")
    typed = write_model(tmp_path / "typed")
    config = json.loads((typed / "config.json").read_text("utf-8"))
    (typed / "config.json").write_text(json.dumps({**config, "type_vocab_size": 2}), encoding="utf-8")
    assert "serve it with kind oip or tei" in refused(typed)
    assert "which no server of this kind serves" in refused(nli, preset="minicheck-flan-t5-large")
    unnamed = write_model(tmp_path / "unnamed", name_labels=False)
    assert "judge.classifier.labels" in refused(unnamed)


def test_a_served_model_needs_no_runtime_here(nli: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "guardrail.judges.model.classifier.installed",
        lambda *names: not {"torch", "onnxruntime"} & set(names),
    )
    place = {"kind": "tei", "url": "http://x"}
    assert list(start_notes(ClassifierSettings.model_validate({"model": str(nli), "server": place}))) == []


# -------------------------------------------------------------------------------- the local judge's verifier


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_verifier(tmp_path_factory.mktemp("verifiers") / "tiny", max_tokens=256)


@asynccontextmanager
async def local_judges(
    verifier: Path, **changes: Any
) -> AsyncIterator[tuple[LocalJudge, LocalJudge, OipServer]]:
    """One whose verifier is served, and one whose verifier is here."""
    write_parameters(verifier, parameters_for(verifier))
    here = {"path": str(verifier)}
    async with OipServer(verifier) as server:
        there = {**here, "server": made(ServerSettings, url=server.root, model="m", **changes)}
        served, own = (
            LocalJudge(LocalJudgeSettings.model_validate({"verifier": each})) for each in (there, here)
        )
        try:
            yield served, own, server
        finally:
            await served.aclose()
            await own.aclose()


async def test_a_served_verifier_gives_the_verdicts_of_one_in_process(verifier: Path) -> None:
    asked = request(
        ["The sky is blue.", "It costs 29 red.", "alpha beta"], ["The sky is blue today.", "not alpha beta"]
    )
    async with local_judges(verifier) as (served, own, server):
        found = (await reply_of(served, asked)).judgements
        alike(found, (await reply_of(own, asked)).judgements)
        assert found[0].verdict is Verdict.SUPPORTED
        bodies = [body for path, body in server.asked if path.endswith("/infer")]
        assert bodies
        assert all(
            [each["name"] for each in body["outputs"]] == ["logits", "token_logits"] for body in bodies
        )


async def test_a_served_verifier_that_fails_says_where_to_look(verifier: Path) -> None:
    asked = request(["The sky is blue."], ["The sky is blue today."])
    async with local_judges(verifier) as (served, _, server):
        server.before = on("/infer", 404)
        with pytest.raises(JudgeError, match=r"judge.local.verifier.server: check kind, url and model"):
            await reply_of(served, asked)


async def test_a_model_that_is_no_verifier_is_refused(nli: Path, verifier: Path) -> None:
    write_parameters(verifier, parameters_for(verifier))
    async with OipServer(nli) as server:
        there = {"path": str(verifier), "server": {"url": server.root, "model": "m"}}
        judge = LocalJudge(LocalJudgeSettings.model_validate({"verifier": there}))
        try:
            with pytest.raises(JudgeReplyError, match="gives 'logits', not logits, token_logits"):
                await reply_of(judge, request(["The sky is blue."], ["The sky is blue today."]))
        finally:
            await judge.aclose()


async def test_a_served_verifier_that_hangs_is_given_up(verifier: Path) -> None:
    asked = request(["The sky is blue."], ["The sky is blue today."])
    async with local_judges(verifier, timeout_ms=100) as (served, _, server):
        server.hold = asyncio.Event()
        begun = time.monotonic()
        with pytest.raises(JudgeUnavailable):
            await reply_of(served, asked)
        assert time.monotonic() - begun < 30  # and not for as long as the request would wait


def test_the_verifier_needs_both_outputs() -> None:
    with pytest.raises(ValidationError, match="gives no token_logits; serve it with kind oip"):
        LocalJudgeSettings.model_validate({"verifier": {"server": {"kind": "tei", "url": "http://x"}}})
