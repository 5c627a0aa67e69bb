"""The local judge with a verifier: features, verdicts, reasons, and what is judged without it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from guardrail.claims.model import Claim
from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.events import Context, Severity, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.base import JudgeRequest
from guardrail.judges.local import LocalJudge, LocalJudgeSettings, assembly
from guardrail.judges.local import judge as judge_module
from guardrail.judges.local.assembly import build_checker
from guardrail.judges.local.check import ClaimChecker
from guardrail.judges.local.combiner import (
    Logistic,
    Parameters,
    load_parameters,
    load_rules_parameters,
    log_odds,
)
from guardrail.judges.local.fitted import ReadingKind
from guardrail.judges.local.settings import VerifierSettings
from guardrail.judges.local.verification import FEATURES
from guardrail.judges.local.verifier import Verifier, load_verifier
from tests.unit.judges.local.contexts import CONTEXTS, claim_of, index_of
from tests.unit.judges.local.tiny_verifier import parameters_for, write_parameters, write_verifier

FILLER = " ".join(["Filler filler filler filler filler filler filler filler filler."] * 9)
SKY = EvidenceIndex([Context(id="d0", text=f"{FILLER} The sky is blue. {FILLER} The sky is not red.")])
OF_TWO = "The sky is blue red."
"""A claim that takes both sentences: they are read together, and the better one alone."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_verifier(tmp_path_factory.mktemp("verifier"))


@pytest.fixture(scope="module")
def verifier(folder: Path) -> Verifier:
    return load_verifier(folder)


def settings_for(folder: Path, parameters: Parameters) -> LocalJudgeSettings:
    path = write_parameters(folder / "parameters.json", parameters)
    return LocalJudgeSettings(parameters_path=path, verifier=VerifierSettings(path=folder))


def request_of(claims: Sequence[str], index: EvidenceIndex, deadline: float | None = None) -> JudgeRequest:
    texts = {f"c{n}": claim_of(text) for n, text in enumerate(claims)}
    return JudgeRequest("r", "", texts, index, deadline or time.monotonic() + 60)


def test_features_are_those_of_the_readings(folder: Path, verifier: Verifier) -> None:
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)
    examined = checker.examine(claim_of(OF_TWO), "", SKY)
    assert examined is not None
    assert examined.verification is not None
    assert set(FEATURES) < set(examined.features)
    by_kind = {
        premise.kind: verifier.score([(OF_TWO, premise.text)])[0]
        for premise in examined.verification.premises
    }
    assert set(by_kind) == {ReadingKind.SENTENCES, ReadingKind.SENTENCE}
    features = examined.features
    assert features["model_support"] == max(r.support for r in by_kind.values())
    assert features["model_support_mean"] == pytest.approx(sum(r.support for r in by_kind.values()) / 2)
    assert features["model_contradiction"] == max(r.contradiction for r in by_kind.values())
    scores = set(FEATURES) - {"unread_rules", "read_support"}
    assert all(0.0 <= features[name] <= 1.0 for name in scores)
    assert all(abs(features[name]) <= math.log(999) + 1e-9 for name in FEATURES)


async def test_the_verifier_decides_where_the_rules_leave_it_open(folder: Path) -> None:
    judge = LocalJudge(settings_for(folder, parameters_for(folder)))
    reply = await judge.judge(request_of(["The sky is blue.", "The filler is beta."], SKY))
    assert [j.verdict for j in reply.judgements] == [Verdict.SUPPORTED, Verdict.UNSUPPORTED]
    await judge.aclose()


@pytest.mark.parametrize("batch_size", [1, 3])
def test_claims_together_are_judged_as_one_by_one(folder: Path, batch_size: int) -> None:
    settings = settings_for(folder, parameters_for(folder))
    settings = settings.model_copy(
        update={"verifier": settings.verifier.model_copy(update={"batch_size": batch_size})}
    )
    checker = build_checker(settings)
    texts = ["The sky is blue.", "The sky is red.", "Nothing.", "The filler is beta.", "The sky is blue."]
    claims = {f"c{n}": claim_of(text) for n, text in enumerate(texts)}
    together = list(checker.check_all(claims, "", SKY, lambda: False))
    assert together == [checker.check(claim_id, claim, "", SKY) for claim_id, claim in claims.items()]


def test_the_same_claim_and_premise_are_read_once_a_request(folder: Path, verifier: Verifier) -> None:
    counting = Counting(folder)
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), counting)
    claims = {f"c{n}": claim_of(OF_TWO) for n in range(5)}
    assert len(list(checker.check_all(claims, "", SKY, lambda: False))) == 5
    assert counting.runs == 2


class Counting(Verifier):
    """Counts runs of the model; waits in each until it is let on."""

    def __init__(self, folder: Path, *, gated: bool = False) -> None:
        loaded = load_verifier(folder)
        self.__dict__.update(loaded.__dict__)
        self.runs = 0
        self.reached, self.go = threading.Event(), threading.Event()
        if not gated:
            self.go.set()

    def _run(self, batch):  # type: ignore[no-untyped-def]
        self.runs += 1
        self.reached.set()
        assert self.go.wait(30)
        return super()._run(batch)


def gated_judge(folder: Path) -> tuple[LocalJudge, Counting]:
    judge, gated = LocalJudge(), Counting(folder, gated=True)
    judge._checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), gated)
    return judge, gated


async def test_a_cancelled_request_stops_before_its_next_batch(folder: Path) -> None:
    judge, gated = gated_judge(folder)
    task = asyncio.create_task(judge.judge(request_of(["The sky is blue.", "The sky is red."], SKY)))
    await asyncio.to_thread(gated.reached.wait, 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gated.go.set()
    assert (
        await judge.judge(request_of([], SKY))
    ).judgements == ()  # one worker: the cancelled job has ended
    assert gated.runs == 1
    await judge.aclose()


async def test_a_claim_that_is_not_read_in_time_gets_no_verdict(folder: Path) -> None:
    judge, gated = gated_judge(folder)
    request = request_of([OF_TWO, "The sky is red."], SKY)
    task = asyncio.create_task(judge.judge(request))
    await asyncio.to_thread(gated.reached.wait, 30)
    object.__setattr__(request, "deadline", time.monotonic() - 1)  # passes while the first pair is read
    gated.go.set()
    assert (await task).judgements == ()
    assert gated.runs == 1
    await judge.aclose()


def test_time_that_is_up_ends_the_examination_of_claims_that_share_a_batch(folder: Path) -> None:
    examined: list[str] = []

    class Noting(ClaimChecker):
        def _examine(self, claim, question, evidence):  # type: ignore[no-untyped-def]
            examined.append(claim.text)
            return super()._examine(claim, question, evidence)

    checker = Noting(LocalJudgeSettings(), parameters_for(folder), load_verifier(folder, batch_size=8))
    examined.clear()  # what it tried itself on
    claims = {f"c{n}": claim_of("The sky is blue.") for n in range(8)}
    assert list(checker.check_all(claims, "", SKY, lambda: len(examined) >= 2)) == []
    assert len(examined) == 2


@pytest.mark.parametrize("more", ["and beta gamma delta " * 20, "!" * 100_000, "[SEP] " * 70])
def test_what_the_verifier_cannot_read_is_judged_by_the_rules(
    folder: Path, verifier: Verifier, more: str
) -> None:
    """A claim that leaves no room in the window; never by features of 0."""
    claim = claim_of(f"The sky is blue {more}")
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)
    rules = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
    examined = checker.examine(claim, "", SKY)
    assert examined is not None
    assert not set(FEATURES) & set(examined.features)
    assert checker.check("c", claim, "", SKY).support == rules.check("c", claim, "", SKY).support


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The sky \ud800 is blue.", "The sky is blue."),
        ("The sky is blue.", "The sky \udc00 is blue."),
        ("a \ud800 b", "a b c"),
    ],
)
async def test_halves_of_surrogate_pairs_stop_no_judge(claim: str, source: str, enabled: bool) -> None:
    """The guard refuses such texts; a judge that is used by itself has them to judge."""
    judge = LocalJudge(LocalJudgeSettings(verifier=VerifierSettings(enabled=enabled)))
    index = EvidenceIndex([Context(id="d0", text=source)])
    reply = await judge.judge(request_of([claim, "The moon is made of cheese."], index))
    assert [each.claim_id for each in reply.judgements] == ["c0", "c1"]
    assert reply.judgements[0].verdict is not Verdict.UNVERIFIED
    assert all(end <= len(claim) for _, end in reply.judgements[0].unsupported_spans)
    await judge.aclose()


def test_a_context_without_end_is_not_tokenised(folder: Path) -> None:
    """A sentence of few words and very many characters: the next best one is read, or none."""
    seen: list[int] = []

    class Measuring(Counting):
        def encode(self, text):  # type: ignore[no-untyped-def]
            seen.append(len(text))
            return super().encode(text)

    index = EvidenceIndex([Context(id="d0", text=f"The sky is {'-' * 500_000} blue.")])
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), Measuring(folder))
    assert checker.check("c", claim_of("The sky is blue."), "", index).verdict is not Verdict.UNVERIFIED
    assert max(seen) < 10_000


@pytest.mark.parametrize(
    ("claim", "is_read"),
    [
        ("The sky is blue.", True),  # "the" is in no vocabulary, and in the source
        ("The sky is blue \u2713.", True),
        ("Sky is blue \u0665\u0660.", False),
        ("Our sky is blue.", False),
        ("\u10d9\u10d0\u10e2\u10d0 \u10d2\u10d0\u10e0\u10d3\u10d0 sky", False),
    ],
)
def test_words_that_the_vocabulary_lacks_are_not_taken_for_others(
    folder: Path, verifier: Verifier, claim: str, is_read: bool
) -> None:
    """All of them are one token: another number, or name, would read as the source's."""
    source = "The sky is blue \u0668\u0669, \u10d9\u10d0\u10e2\u10d0 \u10d2\u10d0\u10e0\u10d3\u10d0."
    index = EvidenceIndex([Context(id="d0", text=source)])
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)
    examined = checker.examine(claim_of(claim), "", index)
    assert examined is not None
    assert (examined.verification is not None) == is_read


@pytest.mark.parametrize("name", CONTEXTS)
def test_without_a_verifier_nothing_changes(verifier: Verifier, name: str) -> None:
    """One that no parameters name adds features, and nothing else."""
    index = index_of(CONTEXTS)
    plain = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
    beside = ClaimChecker(LocalJudgeSettings(), load_rules_parameters(), verifier)
    disabled = build_checker(LocalJudgeSettings(verifier=VerifierSettings(enabled=False)))
    for text in CONTEXTS[name].split(". "):
        claim = claim_of(text)
        expected, found = plain.check("c", claim, "", index), beside.check("c", claim, "", index)
        assert (expected.verdict, expected.support) == (found.verdict, found.support)
        assert disabled.check("c", claim, "", index) == expected


def test_what_the_rules_make_of_it_is_one_of_the_features(folder: Path, verifier: Verifier) -> None:
    examined = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier).examine(
        claim_of("The sky is blue."), "", SKY
    )
    assert examined is not None
    rules = load_rules_parameters().combiner.probability(examined.features)
    assert examined.features["rules_support"] == rules
    read = examined.features["three_sentences"] / examined.features["anywhere"]
    assert examined.features["unread_rules"] == pytest.approx((1 - read) * log_odds(rules))
    stacked = Logistic(bias=0.5, weights={"rules_support": 2.0, "passage": 1.0}, log_odds=("rules_support",))
    total = 0.5 + 2.0 * math.log(rules / (1 - rules)) + examined.features["passage"]
    assert stacked.probability(examined.features) == pytest.approx(1 / (1 + math.exp(-total)))
    sure = stacked.probability({"rules_support": 1.0, "passage": 0.0})
    assert sure == pytest.approx(1 / (1 + math.exp(-0.5 - 2.0 * math.log(999))))


def test_a_contradiction_counts_from_its_line_on(folder: Path, verifier: Verifier) -> None:
    index = EvidenceIndex([Context(id="d0", text="It was not so: filler filler gamma, as delta is red.")])
    claim = claim_of("Gamma costs beta.")

    def judged(line: float | None) -> tuple[Verdict, str]:
        parameters = parameters_for(folder, contradicted_at=line)
        found = ClaimChecker(LocalJudgeSettings(), parameters, verifier).check("c", claim, "", index)
        return found.verdict, found.evidence[0].quote if found.evidence else ""

    assert judged(None)[0] is Verdict.UNSUPPORTED
    assert judged(0.999)[0] is Verdict.UNSUPPORTED
    verdict, quote = judged(0.9)
    assert verdict is Verdict.CONTRADICTED
    assert "not so" in quote


def test_words_without_support_are_named_where_the_rules_find_none(folder: Path, verifier: Verifier) -> None:
    """All words stand somewhere, not in what is read: only the verifier can tell which are meant."""
    far = " ".join(f"Filler {word} filler." for word in ("gamma", "delta"))
    index = EvidenceIndex([Context(id="d0", text=f"The sky brings filler rain. {FILLER} {far}")])
    parameters = parameters_for(folder, readings=(ReadingKind.SENTENCE,))
    checker = ClaimChecker(LocalJudgeSettings(), parameters, verifier)
    found = checker.check("c", claim_of("The sky brings filler rain, gamma delta."), "", index)
    assert found.verdict is not Verdict.SUPPORTED
    assert "'gamma delta'" in found.reasoning


def test_settings_say_how_much_is_read(folder: Path, verifier: Verifier) -> None:
    def kinds(**settings: object) -> list[ReadingKind]:
        chosen = LocalJudgeSettings.model_validate({"verifier": settings})
        checker = ClaimChecker(chosen, parameters_for(folder), verifier)
        examined = checker.examine(claim_of(OF_TWO), "", SKY)
        assert examined is not None
        assert examined.verification is not None
        return [premise.kind for premise in examined.verification.premises]

    assert kinds() == ["sentences", "sentence"]
    assert kinds(readings=["sentence"]) == ["sentence"]
    assert kinds(tokens_per_claim=32) == ["sentences"]


def test_in_haste_the_rules_judge_and_say_so(folder: Path, verifier: Verifier) -> None:
    """A verdict by the rules is better than none; nothing is taken for read that was not."""
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)
    rules = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
    claims = {f"c{n}": claim_of("The sky is blue.") for n in range(4)}
    turns: list[int] = []

    def hurried() -> bool:
        turns.append(1)
        return len(turns) > 1

    first, *others = checker.check_all(claims, "", SKY, lambda: False, hurried)
    assert first.degraded_from == ()
    assert len(others) == 3
    expected = rules.check("c", claims["c0"], "", SKY)
    for each in others:
        assert each.degraded_from == ("verifier: too little time was left",)
        assert (each.verdict, each.support) == (expected.verdict, expected.support)
    assert list(checker.check_all(claims, "", SKY, lambda: True, lambda: True)) == []


@pytest.mark.parametrize(("waited_s", "in_haste"), [(1.9, False), (2.1, True)])
async def test_a_request_that_waited_for_half_of_its_time_is_judged_in_haste(
    folder: Path, monkeypatch: pytest.MonkeyPatch, waited_s: float, in_haste: bool
) -> None:
    now = 1_000.0
    monkeypatch.setattr(judge_module, "time", SimpleNamespace(monotonic=lambda: now))
    judge = LocalJudge(settings_for(folder, parameters_for(folder)))
    free = threading.Event()
    for _ in range(judge.settings.workers):
        judge._pool.submit(free.wait)
    asked = asyncio.create_task(judge.judge(request_of(["The sky is blue."], SKY, now + 4.0)))
    await asyncio.sleep(0)  # it has asked by now, and waits for a thread
    now += waited_s
    free.set()
    (judgement,) = (await asked).judgements
    assert bool(judgement.degraded_from) == in_haste
    reply = await judge.judge(request_of(["The sky is blue."], SKY, now + 4.0))
    assert not reply.judgements[0].degraded_from
    await judge.aclose()


def test_a_long_claim_is_read_beside_more_than_a_short_one(folder: Path, verifier: Verifier) -> None:
    """One sentence beside a summary of two would make it look half made up, whatever the tokens allow."""
    first = "Gamma costs beta and sky brings rain and rain and rain."
    second = "Delta is red and blue as gamma was not red and not blue."
    index = EvidenceIndex([Context(id="d0", text=f"{FILLER} {first} {FILLER} {second} {FILLER}")])
    long = "Gamma costs beta and sky brings rain, delta is red and blue as gamma was not."

    def read(claim: str, wanted: VerifierSettings) -> int:
        settings, fitted = LocalJudgeSettings(verifier=wanted), parameters_for(folder, tokens_per_claim=32)
        examined = ClaimChecker(settings, fitted, verifier).examine(claim_of(claim), "", index)
        assert examined is not None
        if examined.verification is None:
            return 0
        return len(examined.verification.premises[0].sentences)

    assert read("Gamma is red.", VerifierSettings()) == 1
    assert read(long, VerifierSettings()) == 2
    assert read(long, VerifierSettings(tokens_per_claim=32)) < 2  # who sets a limit means it


def test_parameters_run_with_their_verifier_only(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path / "v")
    with pytest.raises(ConfigError, match=r"fitted with tiny .* but tiny .* is loaded"):
        build_checker(settings_for(folder, parameters_for(folder, sha256="0" * 64)))
    parameters = parameters_for(folder)
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + "\n")
    stated = json.loads((folder / "manifest.json").read_text())
    stated["sha256"]["tokenizer.json"] = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(stated))
    with pytest.raises(ConfigError, match=r"fitted with tiny .* but tiny .* is loaded"):  # other tokens
        build_checker(settings_for(folder, parameters))
    with pytest.raises(ConfigError, match="none is loaded"):
        ClaimChecker(LocalJudgeSettings(), parameters_for(folder))


def test_the_packaged_verifier_is_used_where_the_packaged_parameters_name_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "load_parameters", lambda path: parameters_for(folder))
    monkeypatch.setattr(assembly, "packaged_folder", lambda: folder)
    claim = claim_of("The sky is blue.")
    examined = build_checker(LocalJudgeSettings()).examine(claim, "", SKY)
    assert examined is not None
    assert examined.verification is not None
    disabled = build_checker(LocalJudgeSettings(verifier=VerifierSettings(enabled=False)))
    rules = ClaimChecker(LocalJudgeSettings(), load_rules_parameters())
    assert disabled.check("c", claim, "", SKY) == rules.check("c", claim, "", SKY)
    monkeypatch.setattr(assembly, "packaged_folder", lambda: None)
    with pytest.raises(ConfigError, match="the package has no verifier, but the parameters were fitted with"):
        build_checker(LocalJudgeSettings())


def test_a_verifier_without_its_parameters_is_refused(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path / "v")
    rules = write_parameters(tmp_path / "rules.json", load_rules_parameters())
    with pytest.raises(ConfigError, match=r"fitted without a verifier; set judge\.local\.parameters_path"):
        build_checker(LocalJudgeSettings(parameters_path=rules, verifier=VerifierSettings(path=folder)))


def test_parameters_of_a_verifier_cannot_do_without(tmp_path: Path) -> None:
    folder = write_verifier(tmp_path / "v")
    path = write_parameters(tmp_path / "p.json", parameters_for(folder))
    with pytest.raises(ConfigError, match=r"enabled is false, but .* was fitted with the verifier tiny"):
        build_checker(LocalJudgeSettings(parameters_path=path, verifier=VerifierSettings(enabled=False)))


def test_features_of_a_model_need_its_name(tmp_path: Path) -> None:
    raw = parameters_for(write_verifier(tmp_path)).model_dump() | {"verifier": None}
    with pytest.raises(ValidationError, match="model_support comes of a verifier"):
        Parameters.model_validate(raw)


def test_the_packaged_rules_know_of_no_verifier() -> None:
    rules = load_rules_parameters()
    assert rules.verifier is None
    assert rules.rarity == load_parameters().rarity


def test_a_verifier_that_fails_settles_nothing(folder: Path) -> None:
    """No verdict without what the combiner was fitted with: the error is the judge's."""
    broken = Counting(folder)
    broken._session = None
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), broken)
    with pytest.raises(JudgeUnavailable, match="the verifier failed"):
        checker.check("c", claim_of("The sky is blue."), "", SKY)


def test_importing_the_judge_loads_no_runtime() -> None:
    code = (
        "import sys, guardrail.judges.local; print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_lead_in_is_no_part_of_what_is_read(folder: Path, verifier: Verifier) -> None:
    """Offsets of unsupported words are those of the claim."""
    claim = Claim(0, 0, "29 is blue beta.", 0, 16, Severity.NORMAL, lead_in="The sky:")
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)
    examined = checker.examine(claim, "", SKY)
    assert examined is not None
    assert examined.verification is not None
    assert examined.verification.unsupported(claim.text)[-1] == (11, 15)
