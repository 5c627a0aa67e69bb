"""The checker: what is read for a claim and when it ends, under pressure, and with which files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from guardrail.errors import ConfigError, JudgeUnavailable
from guardrail.events import Finding, Verdict
from guardrail.evidence.index import EvidenceIndex
from guardrail.judges.local import check
from guardrail.judges.local.check import ClaimChecker, build_checker
from guardrail.judges.local.combiner import FEATURES, WORDS, Parameters
from guardrail.judges.local.examination import facts_of
from guardrail.judges.local.settings import LocalJudgeSettings, VerifierSettings
from guardrail.verdicts import HALF_CHECKED, checked_in_part
from tests.unit.judges.local.contexts import Noting, claim_of, index_of
from tests.unit.judges.model.tiny_verifier import parameters_for, write_parameters, write_verifier

FILLER = "The filler of this filler, filler. " * 20  # English
SKY = index_of(f"Sky is red. {FILLER} Sky is blue. {FILLER} Sky is sky. {FILLER}")
SHORT = index_of("Sky is blue.")
SURE = "Blue is sky."  # no sentence of the contexts, word for word
NEVER_SURE = "Sky is delta."  # one word that counts: 0.02
HOPELESS = "Alpha is beta."
FEWER = ("verifier: too little time was left to read more than one window",)
FACTS = ("verifier: too little time was left to read each fact by itself",)
NONE = ("verifier: too little time was left",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_verifier(tmp_path_factory.mktemp("verifier"), max_tokens=256)


@pytest.fixture
def verifier(folder: Path) -> Noting:
    return Noting(folder)


@pytest.fixture
def checker(folder: Path, verifier: Noting) -> ClaimChecker:
    return ClaimChecker(LocalJudgeSettings(), parameters_for(folder), verifier)


@pytest.fixture
def never_settled(folder: Path, verifier: Noting) -> ClaimChecker:
    """Reads all windows of every claim."""
    return ClaimChecker(LocalJudgeSettings(), parameters_for(folder, sure=1.0, hopeless=0.0), verifier)


def settings_for(folder: Path, parameters: Parameters) -> LocalJudgeSettings:
    write_parameters(folder, parameters)
    return LocalJudgeSettings(verifier=VerifierSettings(path=folder))


@pytest.mark.parametrize(
    ("claim", "readings", "verdict"),
    [
        (SURE, 1, Verdict.SUPPORTED),  # the first window settles it
        (HOPELESS, 1, Verdict.UNSUPPORTED),
        (NEVER_SURE, 2, Verdict.UNSUPPORTED),  # two do: the second brought nothing either
    ],
)
def test_windows_are_read_until_one_settles_the_claim(
    checker: ClaimChecker, verifier: Noting, claim: str, readings: int, verdict: Verdict
) -> None:
    assert checker.check("c", claim_of(claim), "", SKY).verdict is verdict
    assert len(verifier.lengths) == readings
    examined = checker.examine(claim_of(claim), "", SKY)
    assert examined is not None
    assert len(examined.read) >= readings  # all of them, for fitting
    assert examined.features.keys() == set(FEATURES)


@pytest.mark.parametrize(("pressure", "readings", "degraded"), [(0, 2, ()), (1, 1, FEWER), (2, 0, NONE)])
def test_pressed_for_time_fewer_windows_are_read_and_the_judgement_says_so(
    never_settled: ClaimChecker, verifier: Noting, pressure: int, readings: int, degraded: tuple[str, ...]
) -> None:
    claims = {"c": claim_of(SURE)}
    (found,) = never_settled.check_all(claims, "", SKY, lambda: False, lambda: pressure)
    assert (len(verifier.lengths), found.degraded_from) == (readings, degraded)


@pytest.mark.parametrize(
    ("claim", "contexts", "pressure"),
    [
        (SURE, SHORT, 1),  # there is one window
        (SURE, SKY, 1),  # the first settles it
        (HOPELESS, SKY, 1),
        ("!" * 100_000, SKY, 2),  # the verifier can't read it
        (f"Sky is {'zeta eta ' * 20}", SKY, 2),
    ],
)
def test_nothing_is_said_to_be_left_out_that_would_not_have_been_read(
    checker: ClaimChecker, claim: str, contexts: EvidenceIndex, pressure: int
) -> None:
    claims = {"c": claim_of(claim)}
    (hurried,) = checker.check_all(claims, "", contexts, lambda: False, lambda: pressure)
    assert hurried == checker.check("c", claims["c"], "", contexts)
    assert hurried.degraded_from == ()


@pytest.mark.parametrize(
    ("sure", "pressure", "readings", "degraded"),
    [(0.9, 0, 1, ()), (0.9, 1, 1, ()), (1.0, 0, 3, ()), (1.0, 1, 1, FACTS)],
)
def test_the_facts_of_a_claim_that_may_be_supported_are_read_by_themselves_if_there_is_time(
    checker: ClaimChecker,
    verifier: Noting,
    monkeypatch: pytest.MonkeyPatch,
    sure: float,
    pressure: int,
    readings: int,
    degraded: tuple[str, ...],
) -> None:
    monkeypatch.setattr(check, "_FACTS_SURE", sure)
    claims = {"c": claim_of("Sky is blue; filler is red.")}
    index = index_of("Sky is blue. Filler is red.")
    (found,) = checker.check_all(claims, "", index, lambda: False, lambda: pressure)
    assert (len(verifier.lengths), found.degraded_from) == (readings, degraded)


def test_without_a_verifier_nothing_is_searched_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    searched = []
    monkeypatch.setattr(check, "find_candidates", lambda *said, **_: searched.append(said))
    alone = ClaimChecker(LocalJudgeSettings(), parameters_for(folder))
    alone.check("c", claim_of("The documents do not mention a refund."), "", SKY)
    assert searched == []


def test_what_no_time_was_left_for_is_judged_by_words(folder: Path, checker: ClaimChecker) -> None:
    alone = ClaimChecker(LocalJudgeSettings(), parameters_for(folder))
    (hurried,) = checker.check_all({"c": claim_of(SURE)}, "", SKY, lambda: False, lambda: 2)
    expected = alone.check("c", claim_of(SURE), "", SKY)
    assert expected.degraded_from == ()
    assert hurried == checked_in_part(replace(expected, degraded_from=NONE, hurried=True))
    (unhurried,) = alone.check_all({"c": claim_of(SURE)}, "", SKY, lambda: False, lambda: 2)
    assert unhurried.degraded_from == ()  # who has no verifier leaves none out


@pytest.mark.parametrize("text", [SURE, "The documents don't mention alpha."])
def test_what_no_time_was_left_for_is_never_supported(checker: ClaimChecker, text: str) -> None:
    claims = {"c": claim_of(text)}
    (unhurried,) = checker.check_all(claims, "", SKY, lambda: False)
    assert unhurried.verdict is Verdict.SUPPORTED
    (hurried,) = checker.check_all(claims, "", SKY, lambda: False, lambda: 2)
    assert hurried.verdict is Verdict.PARTIALLY_SUPPORTED
    assert hurried.support is not None
    assert hurried.support <= HALF_CHECKED
    assert Finding.CHECKED_IN_PART in hurried.findings


@pytest.mark.parametrize("more", ["and beta gamma delta " * 80, "!" * 100_000, "[SEP] " * 300])
def test_what_the_verifier_cannot_read_is_judged_by_words(
    folder: Path, checker: ClaimChecker, more: str
) -> None:
    """Never by features of 0."""
    claim = claim_of(f"Sky is blue {more}")
    examined = checker.examine(claim, "", SKY)
    assert examined is not None
    assert examined.features.keys() == set(WORDS)
    alone = ClaimChecker(LocalJudgeSettings(), parameters_for(folder))
    assert checker.check("c", claim, "", SKY).support == alone.check("c", claim, "", SKY).support


@pytest.mark.parametrize(
    ("after", "readings", "judged"),
    [(0, 0, []), (1, 0, []), (2, 1, []), (3, 2, []), (4, 2, ["c0"]), (99, 4, ["c0", "c1"])],
)
def test_once_stopped_a_claim_that_is_not_wholly_read_has_no_judgement(
    never_settled: ClaimChecker, verifier: Noting, after: int, readings: int, judged: list[str]
) -> None:
    """Asked before each claim and each of two windows, and when all is read."""
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        return asked > after

    claims = {f"c{n}": claim_of(SURE) for n in range(2)}
    assert [each.claim_id for each in never_settled.check_all(claims, "", SKY, stopped)] == judged
    assert len(verifier.lengths) == readings


def test_claims_together_are_judged_as_one_by_one(checker: ClaimChecker) -> None:
    texts = [SURE, "Sky is red.", "Nothing.", HOPELESS, SURE, "The documents do not mention rain."]
    claims = {f"c{n}": claim_of(text) for n, text in enumerate(texts)}
    together = list(checker.check_all(claims, "", SKY, lambda: False))
    assert together == [checker.check(claim_id, claim, "", SKY) for claim_id, claim in claims.items()]


def test_marks_have_their_places_in_the_whole_claim(checker: ClaimChecker) -> None:
    """Of its prose; also where a part of it is judged by itself. Those of a lead-in have none."""
    for text, lead_in in (
        ("Documents do not mention alpha, but filler is delta gamma.", ""),
        ("\U0001f327 filler is gamma.", "Sky is:"),
    ):
        claim = claim_of(text, lead_in)
        found = checker.check("c", claim, "", index_of("Filler is red."))
        assert found.verdict is not Verdict.SUPPORTED
        marked = [claim.prose.text[start:end] for start, end in found.unsupported_spans]
        assert marked[-1].endswith("gamma")
        assert "filler" not in " ".join(marked)


def test_a_verifier_that_fails_settles_nothing(folder: Path) -> None:
    """No verdict without what the combiner was fitted with: the error is the judge's."""
    broken = Noting(folder)
    broken._graph = None  # type: ignore[assignment]
    checker = ClaimChecker(LocalJudgeSettings(), parameters_for(folder), broken)
    with pytest.raises(JudgeUnavailable, match="the verifier failed"):
        checker.check("c", claim_of(SURE), "", SKY)


def _foreign(folder: Path) -> LocalJudgeSettings:
    return settings_for(folder, parameters_for(folder, sha256="0" * 64))


def _other_tokens(folder: Path) -> LocalJudgeSettings:
    settings = settings_for(folder, parameters_for(folder))
    (folder / "tokenizer.json").write_text((folder / "tokenizer.json").read_text() + "\n")
    stated = json.loads((folder / "manifest.json").read_text())
    stated["sha256"]["tokenizer.json"] = hashlib.sha256((folder / "tokenizer.json").read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(stated))
    return settings


@pytest.mark.parametrize("spoil", [_foreign, _other_tokens])
def test_parameters_run_with_their_verifier_only(
    tmp_path: Path, spoil: Callable[[Path], LocalJudgeSettings]
) -> None:
    settings = spoil(write_verifier(tmp_path / "v"))
    with pytest.raises(ConfigError, match=r"fitted with tiny .* but tiny .* is loaded"):
        build_checker(settings)
    with pytest.raises(ConfigError, match=r"fitted with tiny .* but tiny .* is loaded"):
        check.check_files(settings)
    disabled = settings.model_copy(update={"verifier": VerifierSettings(enabled=False)})
    assert build_checker(disabled).check("c", claim_of(SURE), "", SHORT).verdict is Verdict.SUPPORTED


def test_a_package_without_its_verifier_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "packaged_folder", lambda: None)
    with pytest.raises(ConfigError, match="the package has no verifier, but the parameters were fitted with"):
        build_checker(LocalJudgeSettings())


def test_importing_the_judge_loads_no_runtime() -> None:
    code = (
        "import sys, guardrail.judges.local; print({'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("The ship was built in May, and Ida has led it.", ["The ship was built in May", "Ida has led it."]),
        ("It is red; he was there but she was not.", ["It is red", "he was there", "she was not."]),
        ("It has a hall and a garden for guests.", []),
        ("The ship was built in 2019.", []),
        (" and " * 3000, []),
        ("it was so and " * 3000, []),
    ],
)  # fmt: skip
def test_a_claim_of_several_facts_is_told_from_one_of_several_things(text: str, facts: list[str]) -> None:
    assert [text[start:end] for start, end in facts_of(text)] == facts


def test_a_claim_is_no_better_supported_than_its_worst_fact() -> None:
    index = index_of("The captain is Ingrid Moe. The chief engineer is Jonas Berg, who came in 2019.")
    checker = build_checker(LocalJudgeSettings())

    def support(text: str) -> float:
        return checker.check("c", claim_of(text), "", index).support or 0.0

    right = "The captain is Ingrid Moe and the chief engineer is Jonas Berg."
    wrong = "The captain is Jonas Berg and the chief engineer is Ingrid Moe."
    assert support(wrong) < min(support(right), 0.5)


def test_what_was_asked_is_not_backed_by_being_said_again() -> None:
    checker = build_checker(LocalJudgeSettings())
    source = index_of("The lift is inspected every 6 months by a firm from Bergen.")
    found = checker.check(
        "c", claim_of("Yes, it is inspected every 3 weeks."), "Is it inspected every 3 weeks?", source
    )
    assert found.verdict is Verdict.UNSUPPORTED
    assert Finding.FIGURE_ABSENT in found.findings
