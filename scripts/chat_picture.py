"""Draws docs/chat-service.png: asks examples/chat_service four questions in Chromium and takes a picture.

.venv/bin/python scripts/chat_picture.py
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from playwright.async_api import async_playwright, expect

ROOT = Path(__file__).parents[1]
PORT = 8731
QUESTIONS = (
    "What does the Pro plan cost?",
    "How long does a refund take?",
    "How do I reach support?",
    "Are my files safe with you?",
)


async def main() -> None:
    """Serve, ask, draw."""
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.chat_service", "--port", str(PORT)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert service.stdout is not None  # noqa: S101 - a pipe was asked for
        await service.stdout.readline()
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = await browser.new_page(viewport={"width": 1120, "height": 1010}, device_scale_factor=1.2)
            await page.goto(f"http://127.0.0.1:{PORT}/")
            for number, question in enumerate(QUESTIONS):
                await page.get_by_role("button", name=question).click()
                await expect(page.locator(".status").nth(number)).to_be_visible(timeout=60_000)
            await page.mouse.move(0, 0)
            await page.wait_for_timeout(500)  # until what faded in is there
            await page.screenshot(path=ROOT / "docs" / "chat-service.png", full_page=True)
            await browser.close()
    finally:
        service.terminate()
        await service.wait()


if __name__ == "__main__":
    asyncio.run(main())
