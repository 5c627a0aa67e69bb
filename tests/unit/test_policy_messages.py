"""What a policy tells users, in which language, and when; and how its content is told apart."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from guardrail.events import Decision, DeliveryBlocked, Verdict
from guardrail.messages import message_in
from guardrail.policy import UNAVAILABLE, WITHHELD, Policy
from tests.support.sessions import Driver

TEXTS = {"default": "other", "de": "deutsch", "pt-BR": "brasil", "zh-Hant": "trad"}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (None, "other"),
        ("", "other"),
        ("de", "deutsch"),
        ("DE", "deutsch"),
        ("de-CH-1996", "deutsch"),
        ("de_AT", "deutsch"),
        ("pt-br", "brasil"),
        ("pt", "other"),
        ("zh-Hant-TW", "trad"),
        ("zh", "other"),
        ("den", "other"),
        ("default", "other"),
        ("x" * 256, "other"),
    ],
)
def test_the_language_is_looked_up_from_the_whole_tag_to_its_beginning(
    language: str | None, text: str
) -> None:
    assert message_in(TEXTS, language) == text
    assert message_in("one for all", language) == "one for all"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"de": "nein"}, "add it under default"),
        ({"default": "no", "d": "nein"}, "'d' is not a language"),
        ({"default": "no", 1: "nein"}, "1 is not a language"),
        ({"default": "no", "de": 5}, "the text for 'de' is none"),
        ({"default": "no", "de": "a", "DE": "b"}, "two texts are for one language"),
        (5, "this is not text"),
        (["no"], "this is not text"),
    ],
)
@pytest.mark.parametrize("name", ["fallback_message", "unavailable_message", "redaction_text"])
def test_what_is_no_message_is_an_error(name: str, value: Any, told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        Policy.model_validate({name: value})


def message(driver: Driver) -> str:
    assert isinstance(driver.final, DeliveryBlocked)
    return driver.final.message


BLOCKING = ("verdict CONTRADICTED: block",)


def policy(**given: Any) -> Policy:
    return Policy.model_validate({"rules": BLOCKING, **given})


def test_a_wrong_claim_is_no_technical_failure() -> None:
    driver = Driver(policy())
    driver.whole("It costs wrong $79. ")
    assert message(driver) == WITHHELD


def test_a_low_score_is_none_either() -> None:
    driver = Driver(policy(rules=[], mode="hold", block_below=0.5))
    driver.whole("Oslo is unbacked in Norway. ")
    assert message(driver) == WITHHELD


def no_verdict(driver: Driver) -> None:
    driver.feed("Oslo is in Norway. Rome is ")
    driver.pass_time(11.0)


def gave_up(driver: Driver) -> None:
    driver.feed("Oslo is in ")
    driver.apply(driver.session.abort(driver.now))


def no_room(driver: Driver) -> None:
    driver.apply(driver.session.stop_judging("overloaded", driver.now))


def refused(driver: Driver) -> None:
    driver.apply(driver.session.end_early("contexts_too_large", driver.now, force_block=True))


@pytest.mark.parametrize("fail", [no_verdict, gave_up, no_room, refused])
@pytest.mark.parametrize("mode", ["stream", "hold"])
def test_a_block_that_says_nothing_of_the_answer_says_so(fail: Any, mode: str) -> None:
    driver = Driver(policy(mode=mode))
    fail(driver)
    assert message(driver) == UNAVAILABLE


def test_a_judge_that_could_not_say_of_one_claim_is_a_technical_failure() -> None:
    driver = Driver(policy(), verdict_of=lambda _: Verdict.UNVERIFIED)
    driver.whole("Oslo is in Norway. ")
    assert driver.verdict.rule == "on_unverified: fail_closed"
    assert message(driver) == UNAVAILABLE


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"fallback_message": "Ask our staff."}, "Ask our staff."),
        ({"fallback_message": "Ask our staff.", "unavailable_message": "Later."}, "Later."),
        ({"unavailable_message": {"default": "Later.", "de": "Später."}}, "Später."),
        ({"fallback_message": {"default": "No.", "de": "Nein."}}, "Nein."),
    ],
)
def test_an_operator_who_set_the_one_message_never_has_the_built_in_other(
    given: dict[str, Any], shown: str
) -> None:
    driver = Driver(policy(**given), language="de-AT")
    gave_up(driver)
    assert message(driver) == shown


def test_a_redacted_segment_is_in_the_language_of_the_response() -> None:
    texts = {"default": "[removed]", "de": "[entfernt]"}
    redacting = policy(rules=["verdict CONTRADICTED: redact"], redaction_text=texts)
    driver = Driver(redacting, language="de")
    driver.whole("Oslo is wrong in Norway. ")
    assert driver.shown == "[entfernt] "
    assert driver.case.delivered == "[entfernt] "
    assert driver.delivered[0].decision is Decision.REDACT


class TestDigest:
    def test_it_is_of_the_content_and_not_of_the_name(self) -> None:
        assert Policy(name="a").ref.digest == Policy(name="b").ref.digest
        assert len({Policy().ref.digest, Policy(mode="hold").ref.digest, Policy(version="2").ref.digest}) == 3

    def test_a_copy_has_its_own(self) -> None:
        policy = Policy()
        before = policy.ref
        assert policy.model_copy(update={"mode": "hold"}).ref.digest == Policy(mode="hold").ref.digest
        assert policy.model_copy(update={"name": "other"}).ref.name == "other"
        assert policy.ref == before

    def test_asking_for_it_makes_no_other_policy(self) -> None:
        asked = Policy()
        assert asked.ref
        assert asked == Policy()
        assert asked.model_dump() == Policy().model_dump()

    def test_how_it_is_written_makes_no_difference(self) -> None:
        one = Policy.model_validate(
            {"weights": {"minor": 1, "major": 3}, "rules_before": ["reason date: flag"]}
        )
        rules = ["reason date: flag", *(rule.line for rule in Policy().rules)]
        other = Policy.model_validate({"rules": rules, "weights": {"major": 3.0, "minor": 1.0}})
        assert one.ref.digest == other.ref.digest

    def test_it_outlives_being_stored(self) -> None:
        policy = Policy(mode="hold", fallback_message={"default": "no", "de": "nein"})
        assert Policy.model_validate(policy.model_dump(mode="json")).ref == policy.ref
