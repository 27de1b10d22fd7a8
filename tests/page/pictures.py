"""Draw the manual's pictures of the page, from the story: `python -m tests.page.pictures`.

Run it after a change of how the page looks. Needs Chromium and the model's weights.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.page.browser import OPTIONS, Opener
from tests.page.home import REPOSITORY, make_story
from tests.page.server import PageServer

PICTURES: dict[str, tuple[str, bool, bool]] = {"page-files": ("#/files", False, False)}
"""Views by the name of the picture: address, whether it is dark, and whether it is on a phone."""


def main() -> None:
    """Write the pictures into `docs/`."""
    models = REPOSITORY / ".cache" / "test-home" / "models"
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        with PageServer(make_story(Path(name).resolve(), str(models))) as server:
            opener = Opener(browser, lambda: server)
            for picture, (path, dark, phone) in PICTURES.items():
                page = opener(path, dark=dark, phone=phone)
                page.screenshot(path=REPOSITORY / "docs" / f"{picture}.png")
            opener.close()
        browser.close()


if __name__ == "__main__":
    main()
