"""examples/chat_service: what its page shows in a real browser, and what its command says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from playwright.async_api import Locator, Page, async_playwright, expect
from starlette.testclient import TestClient

from examples.chat_service.models import ANSWERS, DOCUMENTS, CannedModel, EndpointModel
from examples.chat_service.service import completion, events, service
from guardrail.client import GuardClient
from guardrail.testing import MemoryGuard, ScriptedJudge, check_events
from tests.support.guards import until
from tests.support.kafka_broker import free_ports
from tests.support.llm_server import LlmServer, Reply
from tests.support.programs import command, environment

ROOT = Path(__file__).parents[2]
WATCH = """() => {
    window.shown = [];
    const note = () => window.shown.push(document.querySelector(".answer:last-child .text").textContent);
    new MutationObserver(note).observe(document.getElementById("chat"), {subtree: true, childList: true});
}"""
"""Keeps every state of the newest answer's text, however short it lasts."""
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")

expect.set_options(timeout=120_000)  # no machine is this slow


@asynccontextmanager
async def running(*options: str) -> AsyncIterator[str]:
    """The service as its docstring says; yields its address, and ends it by SIGTERM, in order."""
    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.chat_service", "--port", str(port), *options),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        said = await process.stdout.readline()
        address = f"http://127.0.0.1:{port}"
        assert address.encode() in said
        async with asyncio.timeout(30):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except ConnectionRefusedError:
                    await asyncio.sleep(0.02)
                else:
                    writer.close()
                    await writer.wait_closed()
                    break
        yield address
    finally:
        if process.returncode is None:
            process.terminate()
        _, errors = await process.communicate()
    assert (process.returncode, errors.decode()) == (0, "")


@asynccontextmanager
async def page_at(address: str, browser_path: str) -> AsyncIterator[Page]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        try:
            page = await browser.new_page()
            await page.goto(address)
            yield page
        finally:
            await browser.close()


async def block(page: Page) -> Locator:
    """The second answer, blocked: what was shown of it gives way to the message."""
    await page.evaluate(WATCH)
    await page.get_by_role("button", name="How do I reach support?").click()
    blocked = page.locator(".answer").nth(1)
    await expect(blocked.locator(".status b")).to_contain_text("Blocked")
    await expect(blocked.locator(".text")).to_have_text(
        "This answer was withheld because it could not be verified against the source documents."
    )
    shown: list[str] = await page.evaluate("window.shown")
    assert "Support answers e-mails on weekdays from 8:00 to 18:00. " in shown  # until the block came
    assert "4321" not in await page.locator("#chat").inner_text()
    return blocked


async def redaction(page: Page) -> Locator:
    """The third answer, with its redaction."""
    await page.get_by_role("button", name="How long does a refund take?").click()
    redacted = page.locator(".answer").nth(2)
    await expect(redacted.locator(".status b")).to_contain_text("was removed")
    return redacted


async def flag(page: Page) -> Locator:
    """The fourth answer, a piece of which is flagged."""
    await page.get_by_role("button", name="Are my files safe with you?").click()
    flagged = page.locator(".answer").nth(3)
    await expect(flagged.locator(".piece.flag")).to_contain_text("Three auditors")
    return flagged


async def test_the_page_shows_text_as_it_is_released_and_a_block_as_it_happens(browser_path: str) -> None:
    async with running() as address, page_at(address, browser_path) as page:
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        await expect(page.locator("dd")).to_have_count(len(DOCUMENTS))

        await page.get_by_role("button", name="What does the Pro plan cost?").click()
        first = page.locator(".answer").nth(0)
        # Released before the answer is complete.
        await expect(first.locator(".piece").first).to_have_text(
            "The Pro plan costs $29 a month and includes 2 TB of storage. "
        )
        await expect(first.locator(".status b")).to_contain_text("Checked: backed by the documents")
        assert await first.locator(".text").inner_text() == ANSWERS["What does the Pro plan cost?"]

        blocked = await block(page)
        await expect(blocked.locator(".piece")).to_have_count(0)
        redacted = await redaction(page)
        await expect(redacted.locator(".piece.redact")).to_have_text("[removed: not backed by the sources]")
        await flag(page)
        await page.locator("input").fill("Weather?")
        await page.get_by_role("button", name="Ask").click()
        unchecked = page.locator(".answer").nth(4)
        await expect(unchecked.locator(".status b")).to_have_text("Nothing in it was to be checked")
        assert said == []


@asynccontextmanager
async def gateway(upstream: str, port: int) -> AsyncIterator[None]:
    """``guardrail serve`` in front of that."""
    program = command("serve", "--port", str(port), "--upstream", upstream)
    process = await asyncio.create_subprocess_exec(
        *program, env=environment() | {"GUARDRAIL_OPS__PORT": "0"}, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        while b"serve.listening" not in (line := await process.stderr.readline()):
            assert line, "it ended"
        yield
    finally:
        process.terminate()
        await process.communicate()


async def test_the_page_reads_what_guardrail_serve_streams(browser_path: str) -> None:
    (port,) = free_ports(1)
    async with (
        running("--gateway", f"http://127.0.0.1:{port}/v1") as address,
        gateway(f"{address}/model/v1", port),
        page_at(address, browser_path) as page,
    ):
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))

        await page.get_by_role("button", name="What does the Pro plan cost?").click()
        first = page.locator(".answer").nth(0)
        await expect(first.locator(".status b")).to_contain_text("Checked: backed by the documents")
        assert await first.locator(".text").inner_text() == ANSWERS["What does the Pro plan cost?"]
        assert await first.locator(".piece").count() == 2  # sentence by sentence

        await block(page)
        redacted = await redaction(page)
        await expect(redacted.locator(".text")).to_contain_text("[removed: not backed by the sources]")
        await expect(redacted.locator(".text")).not_to_contain_text("30 days")
        flagged = await flag(page)
        await expect(flagged.locator(".piece:not(.flag)")).to_contain_text("Files are encrypted")
        assert said == []


async def test_a_gateway_that_is_away_is_told() -> None:
    (port,) = free_ports(1)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}/v1") as client:
        (told,) = [each async for each in completion(client, "any-model", "What does Pro cost?")]
    assert b'"error"' in told


async def test_the_page_runs_nothing_that_a_text_holds(browser_path: str) -> None:
    hostile = "<img src=x onerror=\"document.title='taken over'\"> refunds take how long?"
    async with running() as address, page_at(address, browser_path) as page:
        title = await page.title()
        await page.locator("input").fill(hostile)
        await page.get_by_role("button", name="Ask").click()
        await expect(page.locator(".question")).to_have_text(hostile)
        await expect(page.locator(".status")).to_be_visible()
        assert await page.locator("#chat img").count() == 0
        assert await page.title() == title


async def test_a_reader_who_goes_away_ends_the_answer() -> None:
    async with MemoryGuard(ScriptedJudge()) as guard:
        async with GuardClient(transport=guard.transport()) as client:
            told = events(client, CannedModel(1_000), "How long does a refund take?")
            assert (await anext(told))[0] == "piece"
            await told.aclose()  # type: ignore[attr-defined]
            await until(lambda: b"response.aborted" in (guard.records("responses")[-1].value or b""))
        assert check_events(guard.records("responses")) == []


async def test_a_failing_model_is_told_without_its_words() -> None:
    class Failing:
        async def answer(self, question: str) -> AsyncIterator[str]:
            yield "Half a sen"
            raise ConnectionError("the key sk-123 is no good")

    async with (
        MemoryGuard(ScriptedJudge()) as guard,
        GuardClient(transport=guard.transport()) as client,
    ):
        told = [each async for each in events(client, Failing(), "?")]
    assert told[-1][0] in {"failed", "block"}
    assert "sk-123" not in str(told)


async def test_answers_may_come_from_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not-sent-there")
    text = "The Pro plan costs $29 a month and includes 2 TB of storage."
    async with (
        LlmServer(Reply(lambda _: text)) as server,
        MemoryGuard(ScriptedJudge()) as guard,
        GuardClient(transport=guard.transport()) as client,
    ):
        model = EndpointModel(server.url, "some-model")
        told = [each async for each in events(client, model, "What does Pro cost?")]
        await model.aclose()
    assert told[0] == ("piece", {"text": text, "decision": "release", "rule": None})
    assert "The Pro plan costs $29" in server.calls[0].system
    assert server.calls[0].user == "What does Pro cost?"


def test_a_question_that_is_none_is_refused() -> None:
    web = TestClient(service(CannedModel().answer))
    assert web.get("/answer").status_code == 400
    assert web.get("/answer", params={"question": "x" * 2_001}).status_code == 400
    assert "default-src 'none'" in web.get("/").headers["content-security-policy"]


async def test_a_broker_that_is_not_there_is_one_line_with_the_remedy() -> None:
    (port,) = free_ports(1)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.chat_service", "--bootstrap-servers", f"127.0.0.1:{port}"),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert (process.returncode, out) == (1, b"")
    assert len(err.splitlines()) == 1
    assert f"can't be reached at 127.0.0.1:{port}".encode() in err
