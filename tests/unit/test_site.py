"""The site of docs/ (``make docs``) builds strictly, has all pages, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml
from markdown_it import MarkdownIt
from playwright.async_api import async_playwright, expect

import guardrail.client
import guardrail.evals
import guardrail.judges
import guardrail.testing
from scripts.docs_site import NAMED, public_names, with_links_of_the_site

expect.set_options(timeout=120_000)  # no machine is this slow

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


class _EnvLoader(yaml.SafeLoader):
    """Of mkdocs.yml, which has tags of its own."""


_EnvLoader.add_multi_constructor("!", lambda _loader, _suffix, _node: None)
_EnvLoader.add_multi_constructor("tag:yaml.org,2002:python/", lambda _loader, _suffix, _node: None)


def build(folder: Path, spoil: str = "") -> subprocess.CompletedProcess[str]:
    """``make docs`` in ``folder``; ``spoil`` is added to a page."""
    pages = folder / "build" / "pages"
    subprocess.run([sys.executable, "-m", "scripts.docs_site", str(pages)], cwd=ROOT, check=True)
    if spoil:
        with (pages / "evaluate.md").open("a", encoding="utf-8") as page:
            page.write(spoil)
    shutil.copy(ROOT / "mkdocs.yml", folder)
    shutil.copytree(ROOT / "scripts" / "docs_templates", folder / "scripts" / "docs_templates")
    # No way to the network: whatever would be fetched fails.
    blocked = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9")
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=folder, env=os.environ | blocked, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


class _Loads(HTMLParser):
    """What a page loads or leads to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif value and name == "href" and tag == "a":
                self.links.append(value)
            elif value and name in {"src", "href", "srcset", "data", "poster"}:
                self.loaded.append(value)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Loads]:
    return {path.resolve(): _Loads(path) for path in site.rglob("*.html")}


def test_every_page_of_the_documentation_is_on_the_site(pages: dict[Path, _Loads], site: Path) -> None:
    wanted = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    wanted |= {Path(page).with_suffix(".html") for page in NAMED.values()}
    wanted = {path.with_name("index.html") if path.name == "README.html" else path for path in wanted}
    assert {site.resolve() / path for path in wanted} <= pages.keys()


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    # A loader that makes nothing of tags but None.
    config = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _EnvLoader)  # noqa: S506
    named = set(_leaves(config["nav"]))
    assert named >= {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} | set(NAMED.values())


def _leaves(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for item in nav:
            yield from _leaves(item)
    elif isinstance(nav, dict):
        for below in nav.values():
            yield from _leaves(below)


def test_pages_load_only_what_is_on_the_site(pages: dict[Path, _Loads], site: Path) -> None:
    for path, page in pages.items():
        for address in page.loaded:
            if path.name == "404.html" or address.startswith("data:"):
                continue
            assert "//" not in address, f"{path.name} loads {address}"
            assert (path.parent / re.split("[?#]", address)[0]).resolve().is_file(), f"{path.name}: {address}"
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(([^)]*)\)|@import ([^;]*);", style.read_text(encoding="utf-8")):
            assert "//" not in "".join(address).split(",")[0].replace("data:", "", 1)


def test_links_lead_to_pages_and_headings(pages: dict[Path, _Loads]) -> None:
    """Beyond what the builder checks: also what is made of docstrings."""
    broken = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link) or path.name == "404.html":
                continue
            name, _, anchor = link.partition("#")
            target = (path.parent / name.split("?")[0]).resolve() if name else path
            target = target / "index.html" if target.is_dir() else target
            found = pages.get(target)
            wrong_anchor = anchor and found is not None and anchor not in found.ids
            if not target.is_file() or (wrong_anchor and not anchor.startswith("__")):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_the_site_shows_what_a_forge_shows(site: Path) -> None:
    """Its Markdown is another one: a list right after a paragraph, say, would be no list."""
    forge = MarkdownIt("commonmark").enable("table")
    for path in DOCS.rglob("*.md"):
        name = path.relative_to(DOCS).with_suffix(".html")
        name = name.with_name("index.html") if path.name == "README.md" else name
        article = re.search(r"<article.*?</article>", (site / name).read_text("utf-8"), re.DOTALL)
        assert article is not None
        there = forge.render(path.read_text("utf-8"))
        for tag in ("li", "pre", "tr", "td", "h2", "h3", "strong", "em", "img"):
            shown, meant = (len(re.findall(rf"<{tag}[ >]", html)) for html in (article[0], there))
            assert shown == meant, f"{name}: {shown} times <{tag}>, on a forge {meant}"


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    done = build(tmp_path, "\n[x](nowhere.md) [x](quickstart.md#nowhere)\n")
    assert done.returncode != 0
    for told in ("page does not exist", "anchor does not exist"):
        assert told in done.stdout + done.stderr


@pytest.mark.parametrize(
    "module", [guardrail, guardrail.client, guardrail.judges, guardrail.evals, guardrail.testing]
)
def test_the_reference_has_every_public_name(module: object, pages: dict[Path, _Loads], site: Path) -> None:
    name = module.__name__  # type: ignore[attr-defined]
    shown = pages[(site / "api" / f"{name.removeprefix('guardrail.')}.html").resolve()].ids
    assert {f"{name}.{each}" for each in public_names(name)} <= shown


def test_links_out_of_docs_lead_to_pages_of_the_site() -> None:
    text = "[a](../README.md#try-it) `[b](../x.md)` [c](benchmarks.md) [d](https://example.com)"
    assert with_links_of_the_site("docs/evaluate.md", text) == (
        "[a](overview.md#try-it) `[b](../x.md)` [c](benchmarks.md) [d](https://example.com)",
        ["README.md", "docs/benchmarks.md"],
    )


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The site as ``make docs-serve`` serves it."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


async def test_a_browser_shows_and_searches_it_and_asks_nobody_else(browser_path: str, site: Path) -> None:
    flags = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync")
    with served(site) as address:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=browser_path, args=flags)
            try:
                page = await browser.new_page()
                asked: list[str] = []
                page.on("request", lambda request: asked.append(request.url))
                for name in ("index.html", "security.html", "api/guardrail.html"):
                    await page.goto(address + name)
                    await expect(page.locator("article h1")).to_be_visible()
                await page.keyboard.press("Control+k")
                # Typed before the field is there, a "p" would turn to the page before.
                await page.get_by_role("combobox", name="Search").fill("supply chain")
                await expect(page.get_by_role("option", name="Questions of a reviewer")).to_be_visible()
                size = "document.documentElement.scrollWidth <= window.innerWidth"
                for width in (400, 1400):
                    await page.set_viewport_size({"width": width, "height": 800})
                    assert await page.evaluate(size), f"at {width} pixels it has to be moved sideways"
            finally:
                await browser.close()
        assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
