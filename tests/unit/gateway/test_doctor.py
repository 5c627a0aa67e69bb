"""What the doctor tells of a gateway, with the judge that ships with the package."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from consumers.doctor import examine
from consumers.gateway import SURFACES, examine_gateway
from consumers.gateway.dialects import DIALECTS
from consumers.settings import GuardSettings
from guardrail.cli import app
from guardrail.doctor import Check
from tests.support.certificates import Authority
from tests.support.chat_upstream import ChatUpstream
from tests.support.programs import environment


async def told(settings: dict[str, Any], within_s: float | None = 60.0) -> dict[str, Check]:
    found = GuardSettings.model_validate(settings)
    return {check.about: check async for check in examine_gateway(found, within_s)}


def serve(upstream: ChatUpstream, **more: Any) -> dict[str, Any]:
    upstream.answers({"data": []})
    return {"serve": {"upstream": upstream.url, **more}}


async def test_every_surface_withholds_what_is_wrong_and_the_upstream_is_not_asked(
    upstream: ChatUpstream,
) -> None:
    checks = await told(serve(upstream))
    assert {check.state for check in checks.values()} == {"ok"}
    assert {about for about in checks if about.endswith("answer")} == {
        f"{name}, {which} answer" for name in SURFACES for which in ("right", "wrong")
    }
    assert [each[:2] for each in upstream.asked] == [("GET", "/v1/models")]


async def test_every_dialect_that_is_on_withholds_and_says_what_it_can_not(
    upstream: ChatUpstream,
) -> None:
    checks = await told(serve(upstream, dialects=list(DIALECTS)))
    for name, dialect in DIALECTS.items():
        assert (checks[f"dialect {name}"].state, checks[f"dialect {name}"].detail) == ("warn", dialect.cannot)
        for which in ("right", "wrong"):
            assert checks[f"dialect {name}, {which} answer"].state == "ok", checks


async def test_a_policy_that_observes_fails_on_every_surface(upstream: ChatUpstream) -> None:
    settings = serve(upstream, dialects=list(DIALECTS))
    checks = await told({**settings, "policies": {"default": {"mode": "observe"}}})
    for name in (*SURFACES, *(f"dialect {each}" for each in DIALECTS)):
        wrong = checks[f"{name}, wrong answer"]
        assert (wrong.state, "only observes" in wrong.remedy) == ("fail", True), name


@pytest.mark.parametrize(
    ("key", "status", "state", "detail"),
    [
        (None, "401 Unauthorized", "ok", "which callers send"),
        ("k", "401 Unauthorized", "fail", "refuses the key: 401"),
        ("k", "200 OK", "ok", "takes the key"),
        (None, "404 Not Found", "warn", "answers 404 to GET /models"),
    ],
)
async def test_the_upstream(
    upstream: ChatUpstream, key: str | None, status: str, state: str, detail: str
) -> None:
    settings = serve(upstream, upstream_key=key)
    upstream.answers({}, status)
    check = (await told(settings, None))[f"upstream {upstream.url}"]
    assert (check.state, detail in check.detail) == (state, True), check


async def test_keys_of_weak_policies_and_answers_without_documents_are_named(upstream: ChatUpstream) -> None:
    keys = [
        {"name": "shop", "sha256": "0" * 64, "routes": ["shop", "trial"]},
        {"name": "mail", "sha256": "1" * 64, "tenant": "acme"},
    ]
    checks = await told(
        {
            **serve(upstream, keys=json.dumps(keys), missing_contexts="pass", contexts_from=[]),
            "policies": {"default": {}, "lax": {"mode": "observe"}},
            "routes": [{"route": "trial", "policy": "lax"}],
        },
        None,
    )
    assert checks["key shop"].detail == "with route 'trial' has policy 'lax', which withholds nothing"
    assert checks["key shop"].state == "warn"
    assert "key mail" not in checks
    assert checks["documents"].state in {"fail", "warn"}


async def test_without_a_section_kafka_there_is_no_kafka(upstream: ChatUpstream) -> None:
    found = GuardSettings.model_validate(serve(upstream))
    checks = [check async for check in examine(found, None)]
    assert {check.state for check in checks} <= {"ok", "skip"}
    assert "the gateway does without" in next(each.detail for each in checks if each.area == "broker")


def test_where_its_packages_are_missing_they_are_named(tmp_path: Path) -> None:
    config = tmp_path / "guardrail.yaml"
    config.write_text("serve: {missing_contexts: judge}")
    without = "import sys; sys.modules['starlette'] = None; from guardrail.cli import main; main()"
    for command in (["config", "check"], ["doctor", "--no-prove", "--config"], ["serve", "--config"]):
        done = subprocess.run(
            [sys.executable, "-c", without, *command, str(config)],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )
        assert "pip install '.[serve]'" in " ".join((done.stdout + done.stderr).split())
        assert "Traceback" not in done.stderr


def test_config_check_notes_what_serve_would_refuse(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    one, other = authority.issue("localhost"), authority.issue("other")
    keys, config = tmp_path / "keys.yaml", tmp_path / "guardrail.yaml"
    keys.write_text("- {name: shop, sha256: none}")
    files = {"certificate": str(one.certfile), "private_key": str(other.keyfile)}
    config.write_text(json.dumps({"serve": {**files, "keys": {"file": str(keys)}}}))
    result = CliRunner().invoke(app, ["config", "check", str(config)])
    assert result.exit_code == 0
    assert "serve.keys: 0.sha256" in result.stdout
    assert "serve.certificate: it can't be used with serve.private_key" in result.stdout
    one.certfile.unlink()
    result = CliRunner().invoke(app, ["config", "check", str(config)])
    assert result.stdout.count("serve.certificate") == 1  # once, and without another's remedy
