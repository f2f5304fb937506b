"""A browser to look at the page with."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

CHROMIUM = next(
    filter(
        None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))
    ),
    None,
)
NOTICE = "no Chromium was found: the page was not tried in a browser (apt-get install chromium)"


@contextmanager
def started() -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page, and all that it did."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []  # of the console, or uncaught
        self.asked: list[str] = []  # addresses
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", self._dialog)
        page.on("request", lambda request: self.asked.append(request.url))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _dialog(self, dialog: Any) -> None:
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def watched(browser: Browser, **options: Any) -> Iterator[Watched]:
    """A page in a context of its own."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}} | options)
    context.set_default_timeout(20_000)
    try:
        yield Watched(context.new_page())
    finally:
        context.close()
