"""axe-core finds nothing in any view, light or dark, wide or on a phone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.page.browser import Opener, settle, visit
from tests.page.server import PageServer

AXE = Path(__file__).resolve().parents[2] / "page" / "node_modules" / "axe-core" / "axe.min.js"

VIEWS = (
    "#/", "#/search?q=gateway", "#/search?q=nothing-at-all-xyzzy", "#/topics", "#/files",
    "#/file/deploy%2Fgateway.yaml", "#/graph?around=file%3Adeploy%2Fgateway.yaml", "#/health", "#/no-such-view",
    "#/?in=*", "#/topics?in=*", "#/search?q=gateway&in=*", "#/files?in=*", "#/health?in=*",
)  # fmt: skip


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, installed with the packages of the page."""
    if not AXE.exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is missing"
        subprocess.run(
            [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=AXE.parents[2], check=True, capture_output=True,
        )  # fmt: skip
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core finds, a line each."""
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]} {node['failureSummary'][:200]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("look", ("light", "dark", "phone", "dark phone"))
def test_views(open_page: Opener, served: PageServer, axe: str, look: str) -> None:
    with served.client() as client:
        session = client.get("/sessions").json()["sessions"][0]["session"]
        topic = client.get("/topics").json()["topics"][0]["id"]
    page = open_page("#/", dark="dark" in look, phone="phone" in look, bypass_csp=True)
    found = []
    for path in (*VIEWS, f"#/session/{session}", f"#/topics/{topic}"):
        visit(page, f"{served.address}{path}")
        found += [f"{path} {line}" for line in violations(page, axe)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("dark", (False, True))
def test_dialogs_and_disclosures(open_page: Opener, axe: str, dark: bool) -> None:
    page = open_page("#/search?q=gateway", dark=dark, bypass_csp=True)
    found = violations(page, axe)
    for key in ("n", "?", "w", "x"):
        if key in "wx":
            page.locator("[data-row]").first.focus()
        page.keyboard.press(key)
        settle(page)
        found += [f"after {key}: {line}" for line in violations(page, axe)]
        page.keyboard.press("Escape")
    assert not found, "\n".join(found)
    page = open_page("#/", with_key=False, bypass_csp=True)
    assert violations(page, axe) == []
