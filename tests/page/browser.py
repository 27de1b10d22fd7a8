"""Pages in Chromium that report every error, and whatever the page may not do."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    ViewportSize,
)

from tests.page.server import PageServer

OPTIONS = [
    "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]
WIDE: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 375, "height": 812}
STORAGE = "memkit.access"


class Opener:
    """Opens views of the page, and collects their problems.

    A problem is an error on the console (also a violation of the CSP), an exception, a dialog of the
    browser, or a request to another host. `allowed` are parts of expected problems. `may_load` are the
    kinds of resources that may be asked for; None for all.
    """

    def __init__(self, chromium: Browser, served: Callable[[], PageServer]) -> None:
        self._chromium = chromium
        self._served = served
        self._contexts: list[BrowserContext] = []
        self.problems: list[str] = []
        self.allowed: list[str] = []
        self.may_load: set[str] | None = None

    def __call__(
        self, path: str = "#/", *, dark: bool = False, phone: bool = False, server: PageServer | None = None,
        with_key: bool = True, bypass_csp: bool = False,
    ) -> Page:  # fmt: skip
        """Open a view in a tab of its own, and wait until its first answers are shown.

        `bypass_csp` is for tools that run in the page; no test of the CSP has it.
        """
        server = server or self._served()
        context = self._chromium.new_context(
            viewport=PHONE if phone else WIDE, color_scheme="dark" if dark else "light",
            reduced_motion="reduce", has_touch=phone, bypass_csp=bypass_csp, locale="en-US",
            timezone_id="UTC",
        )  # fmt: skip
        self._contexts.append(context)
        host = urlsplit(server.address).netloc
        context.on("console", self._note_message)
        context.on("weberror", lambda error: self.problems.append(f"exception: {error.error}"))
        context.on("dialog", self._note_dialog)
        context.on("request", lambda request: self._note_request(request, host))
        if with_key:
            context.add_init_script(
                f"if (origin === {server.address.rstrip('/')!r} && !localStorage.getItem({STORAGE!r})) "
                f"localStorage.setItem({STORAGE!r}, {server.stored_access!r})"
            )
        page = context.new_page()
        page.goto(f"{server.address}{path}")
        settle(page)
        return page

    def close(self) -> None:
        """Close the tabs. Raise `AssertionError` if one has reported a problem."""
        for context in self._contexts:
            context.close()
        found = [one for one in self.problems if not any(part in one for part in self.allowed)]
        assert not found, "\n".join(found)

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type} at {message.location.get('url', '')}: {message.text}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, request: Request, host: str) -> None:
        url = urlsplit(request.url)
        if url.scheme in ("data", "about"):
            return
        if url.netloc != host:
            self.problems.append(f"request to another host: {request.url}")
        if self.may_load is not None and request.resource_type not in self.may_load:
            self.problems.append(f"request for a {request.resource_type}: {request.url}")


def visit(page: Page, address: str) -> None:
    """Load a view from the start, in a tab that has shown another one."""
    page.goto("about:blank")
    page.goto(address)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the view has its heading, and nothing is loading. Changes are reported on an open request."""
    page.wait_for_selector("h1")
    page.wait_for_selector(".loading, [aria-busy=true]", state="detached")
