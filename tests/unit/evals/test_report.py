"""The report in a real browser: what it shows, what hostile texts can't do, and that it prints."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Request, async_playwright, expect

from guardrail.evals.overview import Overview
from guardrail.evals.report import pieces, standing_out, write_report
from guardrail.evals.results import Evaluation, EvaluationResult, ScoreValue, StoredResults, TraceStep
from guardrail.events import (
    ClaimPart,
    Context,
    Decision,
    Evidence,
    Label,
    PolicyRef,
    Response,
    Severity,
    Usage,
    Verdict,
)
from tests.unit.evals.results import claim, failed, result

expect.set_options(timeout=120_000)  # no machine is this slow

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
ANSWER: Final = "Take one tablet. Take up to five tablets a day. It tastes of mint. Chew it. See a doctor."
EVIL: Final = (
    "<script>window.hit=1</script><img src=x onerror=window.hit=1><svg onload=window.hit=1>"
    "\"' onmouseover=window.hit=1 style='position:fixed' </style><style>*{display:none}</style>"
    "</title></textarea>"
    '<!-- --></main></body>{{ 7*7 }}{% raw %}&lt;b&gt;<a href="javascript:window.hit=1">x</a>'
    "<iframe src=https://evil.example/></iframe><link rel=stylesheet href=https://evil.example/x.css>"
    "<meta http-equiv=refresh content=0;url=https://evil.example/>"
    "\u202egnp.exe\u2066\x00\x1b[31m\u2028\ufeff" + "W" * 3000
)


@dataclass
class Seen:
    """What a page did while it was open."""

    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refused: list[tuple[str, str | None]] = field(default_factory=list)


@asynccontextmanager
async def opened(
    path: Path, browser_path: str, *, width: int = 1200, scheme: Any = "light"
) -> AsyncIterator[tuple[Page, Seen]]:
    """The page from the disk, in a browser that notes what it asks for and says."""
    seen = Seen()
    async with async_playwright() as playwright:
        browser: Browser = await playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
        try:
            page = await browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)

            def said(message: ConsoleMessage) -> None:
                seen.console.append(message.text)

            def asked(request: Request) -> None:
                seen.asked.append(request.url)

            page.on("console", said)
            page.on("pageerror", lambda error: seen.console.append(str(error)))
            page.on("dialog", lambda dialog: seen.console.append(dialog.message))
            page.on("request", asked)
            page.on("requestfailed", lambda request: seen.refused.append((request.url, request.failure)))
            await page.goto(path.as_uri())
            yield page, seen
        finally:
            await browser.close()


def example() -> tuple[EvaluationResult, ...]:
    """One answer with a claim of every verdict, and others around it."""
    claims = [
        claim(ANSWER, "Take one tablet.", quote="Take one tablet."),
        claim(
            ANSWER,
            "Take up to five tablets a day.",
            Verdict.CONTRADICTED,
            quote="Never take more than three tablets a day.",
            index=1,
            reasoning="The claim says five, the source three.",
            support=0.02,
            named="five",
        ),
        claim(ANSWER, "It tastes of mint.", Verdict.UNSUPPORTED, severity=Severity.MINOR, index=2),
        claim(ANSWER, "Chew it.", Verdict.PARTIALLY_SUPPORTED, index=3, quote="Swallow it whole."),
        claim(ANSWER, "See a doctor.", Verdict.UNVERIFIED, index=4, support=None),
    ]
    return (
        result("fine", answer="Hello.", score=None, route="chat", truth=Verdict.SUPPORTED),
        result(
            "dose",
            Decision.BLOCK,
            claims,
            score=0.2,
            answer=ANSWER,
            rule="contradicted fact",
            route="health",
            model="small",
            truth=Verdict.CONTRADICTED,
            cost_usd=0.0123,
        ),
        result("mint", Decision.FLAG, claims[2:3], score=0.5, answer=ANSWER, rule="unbacked", model="large"),
        failed("contexts: Field required", "line 4"),
    )


def run_of(*results: EvaluationResult, name: str = "nightly") -> Evaluation:
    return Evaluation(results, name, {"judge": "local"})


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, compared with a run in which the wrong dose was released."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    now = example()
    dose = now[1].verdict
    assert dose is not None
    released = dose.model_copy(
        update={
            "decision": Decision.RELEASE,
            "score": 0.7,
            "claims": tuple(c.model_copy(update={"verdict": Verdict.SUPPORTED}) for c in dose.claims),
        }
    )
    before = (now[0], now[1].model_copy(update={"verdict": released}), now[2])
    write_report(run_of(*now), path, run_of(*before, name="yesterday"))
    return path


# ------------------------------------------------------------------------------------ what it shows


def test_the_claim_that_decided_is_named_beside_the_rule(tmp_path: Path) -> None:
    dose = example()[1]
    assert dose.verdict is not None
    path = tmp_path / "report.html"
    known = dose.verdict.model_copy(update={"deciding_claim": "c1"})
    write_report(run_of(dose.model_copy(update={"verdict": known})), path)
    page = path.read_text("utf-8")
    found = re.search(r"Rule <b>contradicted fact</b>, by <a href=\"#(\w+)\">claim 2</a>", page)
    assert found is not None
    assert f'id="{found[1]}"' in page
    write_report(run_of(dose), path)
    assert "Rule <b>contradicted fact</b></span>" in path.read_text("utf-8"), "an older record does not say"


def test_no_link_leads_to_a_claim_beyond_those_that_are_shown(tmp_path: Path) -> None:
    first = example()[1].verdict
    assert first is not None
    claims = [first.claims[0].model_copy(update={"claim_id": f"c{n}", "index": n}) for n in range(200)]
    long = result("long", Decision.BLOCK, claims, answer=ANSWER, rule="a rule")
    assert long.verdict is not None
    path = tmp_path / "report.html"
    for deciding, named in (("c99", True), ("c100", False)):
        verdict = long.verdict.model_copy(update={"deciding_claim": deciding})
        write_report(run_of(long.model_copy(update={"verdict": verdict})), path)
        page = path.read_text("utf-8")
        assert (", by <a href" in page) is named
        assert set(re.findall(r'href="#(\w+)"', page)) <= set(re.findall(r'id="(\w+)"', page))


async def test_curves_are_drawn_where_labels_tell_right_from_wrong(
    tmp_path: Path, page_file: Path, browser_path: str
) -> None:
    async with opened(page_file, browser_path) as (page, seen):
        assert await page.locator("#agreement polyline.curve").count() == 7  # four curves, three keys
        assert await page.locator("#agreement circle.spot").count() == 1
    assert not seen.console
    unlabelled = tmp_path / "unlabelled.html"
    write_report(run_of(*(each.model_copy(update={"labels": ()}) for each in example())), unlabelled)
    assert "polyline" not in unlabelled.read_text("utf-8")


async def test_claims_are_marked_in_the_text_and_linked_to_their_evidence(
    page_file: Path, browser_path: str
) -> None:
    async with opened(page_file, browser_path) as (page, seen):
        card = page.locator("#r1")
        shown = await card.locator(".text").evaluate(
            "e => [...e.childNodes].filter(n => n.tagName !== 'SUP').map(n => n.textContent).join('')"
        )
        assert shown == ANSWER
        contradicted = card.locator("mark.v-contradicted")
        assert "".join(await contradicted.all_text_contents()) == "Take up to five tablets a day."
        assert await card.locator("mark.named").all_text_contents() == ["five"]
        first = card.locator(".claims .claim").first
        await expect(first).to_contain_text("The claim says five, the source three.")
        await expect(first.locator("blockquote")).to_have_text(
            "Take one tablet. Never take more than three tablets a day. Swallow it whole."
        )
        await expect(first.locator("blockquote mark")).to_have_text(
            "Never take more than three tablets a day."
        )
        await expect(first.locator(".context")).to_have_text("leaflet")
        await card.get_by_role("link", name="claim 2, contradicted").click()
        await expect(page.locator(".claim:target")).to_contain_text("Take up to five tablets a day.")
    assert seen.console == []


async def test_a_verdict_is_told_by_line_and_symbol_and_not_by_colour_alone(
    page_file: Path, browser_path: str
) -> None:
    names = ("supported", "partially_supported", "unsupported", "contradicted", "unverified")
    async with opened(page_file, browser_path) as (page, _):
        marks = [page.locator(f"#r1 mark.v-{name}").first for name in names]
        lines = [await mark.evaluate("e => getComputedStyle(e).textDecorationStyle") for mark in marks]
        symbols = [await page.locator(f"#r1 mark.v-{name} + sup").inner_text() for name in names]
    assert lines == ["solid", "dotted", "dashed", "wavy", "double"]
    assert symbols == ["✓1", "◐4", "?3", "✗2", "…5"]


async def test_sections_tell_groups_errors_scores_agreement_and_changes(
    page_file: Path, browser_path: str
) -> None:
    async with opened(page_file, browser_path) as (page, _):
        await expect(page.locator("#summary")).to_contain_text("1 answer of 3 would be withheld (33.3 %)")
        await expect(page.locator("#groups")).to_contain_text("health")
        await expect(page.locator("#groups")).to_contain_text("small")
        await expect(page.locator("#errors")).to_contain_text("contexts: Field required")
        await expect(page.locator("#scores")).to_contain_text("1 answer without a score")
        await expect(page.locator("#agreement")).to_contain_text(
            "2 answers of 4 and 0 claims of 6 have labels"
        )
        await expect(page.locator("#cost")).to_contain_text("$0.012")
        await expect(page.locator("#comparison h2")).to_have_text("Compared with yesterday")
        await expect(page.locator("#x1 header")).to_contain_text("0.70 → 0.20")
        await expect(page.locator("#x1")).to_contain_text("supported → ✗ contradicted")
        assert await page.locator("#decisions tbody tr").count() == 3


async def test_the_filter_shows_one_decision(page_file: Path, browser_path: str) -> None:
    async with opened(page_file, browser_path) as (page, _):
        cards = page.locator("#worst .card")
        assert await cards.count() == 3
        await page.get_by_label("flag", exact=True).check()
        await expect(page.locator("#r2")).to_be_visible()
        await expect(page.locator("#r1")).to_be_hidden()
        await page.get_by_label("all", exact=True).check()
        await expect(page.locator("#r1")).to_be_visible()


async def test_links_lead_somewhere_ids_are_unique_and_charts_have_names(
    page_file: Path, browser_path: str
) -> None:
    async with opened(page_file, browser_path) as (page, _):
        found = await page.evaluate(
            """() => ({
                lost: [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))
                    .filter(h => !h.startsWith('#') || !document.getElementById(h.slice(1))),
                ids: [...document.querySelectorAll('[id]')].map(e => e.id),
                nameless: [...document.querySelectorAll('svg[role=img]')].filter(s => !s.ariaLabel).length,
                charts: document.querySelectorAll('svg[role=img]').length,
                unlabelled: [...document.querySelectorAll('section')].filter(
                    s => !document.getElementById(s.getAttribute('aria-labelledby'))).length,
            })"""
        )
    assert found["lost"] == []
    assert len(found["ids"]) == len(set(found["ids"]))
    assert (found["nameless"], found["unlabelled"]) == (0, 0)
    assert found["charts"] > 5


CONTRAST: Final = """() => {
    const numbers = c => c.match(/[\\d.]+/g).map(Number);
    const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(
        v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4
    ).reduce((sum, v, n) => sum + v * [.2126, .7152, .0722][n], 0);
    const behind = e => {
        for (; e; e = e.parentElement) {
            const c = getComputedStyle(e).backgroundColor;
            if (c !== 'rgba(0, 0, 0, 0)') return numbers(c);
        }
        return [255, 255, 255];
    };
    const faint = [];
    for (const e of document.querySelectorAll('body *')) {
        const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!own || e.closest('svg') || !e.checkVisibility()) continue;
        const [a, b] = [lum(numbers(getComputedStyle(e).color)), lum(behind(e))].sort((x, y) => y - x);
        const ratio = (a + .05) / (b + .05);
        if (ratio < 4.5) faint.push(`${e.tagName}.${e.className}: ${ratio.toFixed(2)}`);
    }
    return [...new Set(faint)];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_text_has_enough_contrast(page_file: Path, browser_path: str, scheme: str) -> None:
    async with opened(page_file, browser_path, scheme=scheme) as (page, _):
        assert await page.evaluate(CONTRAST) == []
        dark = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (dark == "rgb(18, 22, 29)") is (scheme == "dark")


async def test_it_prints_open_without_controls_within_the_page(page_file: Path, browser_path: str) -> None:
    async with opened(page_file, browser_path, width=700, scheme="dark") as (page, _):
        supported = page.locator("#r1 .more .claim")
        await expect(supported).to_be_hidden()
        pdf = await page.pdf(prefer_css_page_size=True)
        await page.emulate_media(media="print", color_scheme="dark")
        await expect(supported).to_be_visible()
        await expect(page.locator("nav")).to_be_hidden()
        await expect(page.locator(".filter")).to_be_hidden()
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        cut = await page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1)"
            ".map(e => e.closest('section').id)"
        )
        assert cut == []
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/MediaBox ?\[0 0 59[45]\.\d+ 84[12]\.\d+\]", pdf)) >= 2  # sheets of A4


# ------------------------------------------------------------------------------------ hostile texts


def hostile(response_id: str, decision: Decision, *, score: float = 0.1) -> EvaluationResult:
    """A result whose every text is hostile."""
    told = [
        claim(EVIL, EVIL[:90], Verdict.CONTRADICTED, reasoning=EVIL, named=EVIL[10:60]),
        claim(EVIL, EVIL[90:400], Verdict.SUPPORTED, index=1, reasoning=EVIL),
    ]
    claims = [
        each.model_copy(
            update={
                "evidence": (Evidence(context_id=EVIL[:512], quote=EVIL, span=(5, 5 + len(EVIL))),) * 6,
                "judge": EVIL,
                "degraded_from": (EVIL,),
                "parts": (ClaimPart(text=EVIL, verdict=Verdict.UNSUPPORTED),),
                "severity_reasons": (EVIL,),
            }
        )
        for each in told
    ]
    base = result(response_id, decision, claims, score=score, answer=EVIL, rule=EVIL)
    assert base.verdict is not None
    label = Label(
        response_id=response_id,
        verdict=Verdict.CONTRADICTED,
        category=EVIL[:256],
        reviewer=EVIL[:256],
        correction=EVIL,
    )
    return EvaluationResult(
        place=EVIL,
        response=Response(
            response_id=response_id,
            question=EVIL,
            contexts=(Context(id=EVIL[:512], text="12345" + EVIL + "rest" * 80, source=EVIL),),
            answer=EVIL,
            route=EVIL[:256],
            tenant=EVIL[-256:],
            generator_model=EVIL[100:300],
        ),
        verdict=base.verdict.model_copy(
            update={"policy": PolicyRef(name=EVIL, version=EVIL), "usage": Usage(judge_calls=1, cost_usd=2.0)}
        ),
        scores={EVIL: ScoreValue(value=None, reason=EVIL), "strict": ScoreValue(value=0.5)},
        labels=(label,),
        explanation=EVIL,
        trace=(TraceStep(step=EVIL, prompt=EVIL, reply=EVIL, latency_ms=3.0),),
    )


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    names = (EVIL[:200], EVIL[60:260], "plain")
    now = [
        *(hostile(name, Decision.BLOCK) for name in names),
        hostile("miss", Decision.RELEASE, score=0.9),
        failed(EVIL, EVIL),
    ]
    before = [hostile(name, Decision.FLAG, score=0.8) for name in names]
    shorter = before[0].response
    assert shorter is not None
    before[0] = before[0].model_copy(update={"response": shorter.model_copy(update={"answer": EVIL[:300]})})
    run = Evaluation(tuple(now), EVIL, {EVIL: EVIL})
    write_report(run, path, Evaluation(tuple(before), EVIL, {}), title=EVIL)
    return path


@pytest.mark.parametrize("width", [400, 1400])
async def test_hostile_texts_are_only_texts(hostile_file: Path, browser_path: str, width: int) -> None:
    async with opened(hostile_file, browser_path, width=width) as (page, seen):
        for each in await page.locator("summary").all():
            await each.click()
        await page.mouse.move(width / 2, 400)
        found = await page.evaluate(
            """() => ({
                hit: window.hit ?? null,
                strangers: [...document.querySelectorAll(
                    'script, img, iframe, link, object, embed, textarea, base, meta[http-equiv=refresh]'
                )].map(e => e.outerHTML),
                styles: document.querySelectorAll('style').length,
                attributes: [...document.querySelectorAll('*')].flatMap(e => [...e.attributes])
                    .map(a => a.name).filter(name => name.startsWith('on') || name === 'style'),
                wide: document.documentElement.scrollWidth - window.innerWidth,
                mains: document.querySelectorAll('main').length,
                last: document.body.lastElementChild.tagName,
            })"""
        )
        text = await page.locator("body").inner_text()
    assert found.pop("wide") <= 0, "it has to be moved sideways"
    assert found == {
        "hit": None,
        "strangers": [],
        "styles": 1,
        "attributes": [],
        "mains": 1,
        "last": "FOOTER",
    }
    assert seen.console == []
    assert seen.asked == [hostile_file.as_uri()]
    assert "<script>window.hit=1</script>" in text
    assert "{{ 7*7 }}" in text
    assert "\\u202egnp.exe\\u2066\\x00\\x1b[31m\\u2028\\ufeff" in text


def test_no_control_character_or_mark_of_direction_gets_into_the_file(hostile_file: Path) -> None:
    page = hostile_file.read_text("utf-8")
    assert (
        re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]", page) == []
    )


@pytest.fixture
def spoilt_file(page_file: Path, tmp_path: Path) -> Path:
    """The page as if a text had not been escaped."""
    path = tmp_path / "spoilt.html"
    attack = "<script>window.hit=1</script><img src=https://evil.example/x.png onerror=window.hit=1>"
    attack += "<style>main{display:none}</style>"
    path.write_text(page_file.read_text("utf-8").replace("<main>", f"{attack}<main>"), encoding="utf-8")
    return path


async def test_the_pages_policy_stops_what_escaping_would_miss(spoilt_file: Path, browser_path: str) -> None:
    async with opened(spoilt_file, browser_path) as (page, seen):
        assert await page.evaluate("window.hit ?? null") is None
        await expect(page.locator("main")).to_be_visible()
    assert len([line for line in seen.console if "Content Security Policy" in line]) >= 3
    assert seen.asked == [spoilt_file.as_uri(), "https://evil.example/x.png"]
    assert seen.refused == [("https://evil.example/x.png", "csp")]


# ------------------------------------------------------------------------------------ bounds, edges


def test_of_many_results_only_the_worst_are_in_the_page(tmp_path: Path) -> None:
    def many(count: int) -> Iterator[EvaluationResult]:
        for number in range(count):
            decision = Decision.BLOCK if number % 10 == 0 else Decision.RELEASE
            yield result(f"answer-{number}", decision, score=number % 7 / 7, rule=f"rule {number % 3}")

    sizes = []
    for count in (100, 5000):
        write_report(run_of(*many(count)), tmp_path / "report.html", worst=5)
        sizes.append((tmp_path / "report.html").stat().st_size)
        assert len(re.findall(r'<article class="card', (tmp_path / "report.html").read_text("utf-8"))) == 5
    assert sizes[1] < sizes[0] + 3000


def test_a_huge_answer_is_cut_and_says_so(tmp_path: Path) -> None:
    answer = "word " * 100_000
    write_report(run_of(result("huge", answer=answer)), tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert len(page) < 100_000
    assert "480,000 more characters of the answer are left out" in page


@pytest.mark.parametrize(
    "results",
    [[], [failed("no JSON")], [result("r", score=None)], [result("r").model_copy(update={"response": None})]],
    ids=["no results", "only errors", "nothing to check", "verdicts alone"],
)
def test_runs_with_little_in_them_have_a_report_too(
    results: Sequence[EvaluationResult], tmp_path: Path
) -> None:
    figures = write_report(run_of(*results), tmp_path / "report.html", run_of(*results))
    json.dumps(figures, allow_nan=False)
    assert "nan" not in re.sub(r"<[^>]*>", "", (tmp_path / "report.html").read_text("utf-8")).split()


def test_spans_that_reach_out_of_the_text_break_nothing() -> None:
    odd = claim("One.", "One.").model_copy(update={"span": (2, 900), "unsupported_spans": ((50, 60), (3, 1))})
    assert "".join(piece.text for piece in pieces("One.", [odd])) == "One."


def test_of_claims_on_the_same_words_the_worst_verdict_marks_them() -> None:
    told = [claim("One.", "One."), claim("One.", "One.", Verdict.CONTRADICTED, index=1)]
    (piece,) = pieces("One.", told)
    assert (piece.verdict, piece.ends) == (Verdict.CONTRADICTED, (1, 2))


def test_a_group_stands_out_only_if_chance_does_not_explain_it() -> None:
    def run(blocked_of_small: int) -> list[str]:
        overview = Overview(worst=0)
        for number in range(40):
            overview.add(
                result("a", Decision.BLOCK if number < blocked_of_small else Decision.RELEASE, model="small")
            )
            overview.add(result("b", Decision.BLOCK if number < 10 else Decision.RELEASE, model="large"))
        return [line for line in standing_out(overview) if "small" in line]

    assert run(12) == []
    assert run(30) == ["Generator model small has more answers withheld than the rest: 75.0 % of 40."]


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    at = datetime(2026, 11, 24, tzinfo=UTC)
    pages: Mapping[str, Path] = {name: tmp_path / name for name in ("a", "b")}
    for path in pages.values():
        write_report(run_of(*example()), path, written=at)
    assert pages["a"].read_bytes() == pages["b"].read_bytes()
    assert b"2026-11-24 00:00 UTC" in pages["a"].read_bytes()


def test_the_example_of_the_page_has_a_report(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    figures = write_report(StoredResults(root / "examples" / "results.jsonl"), tmp_path / "report.html")
    assert (figures["results"], figures["errors"]) == (14, 0)
    assert figures["labelled"]["wrong"]["release"]["count"] == 0
