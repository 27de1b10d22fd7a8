"""Hostile text in a memory is shown as text: nothing runs, nothing is loaded, nothing leads away."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest
from playwright.sync_api import Page

from memkit.paths import Home
from tests.ci import first
from tests.page.browser import Opener, settle, visit
from tests.page.hostile import EVIL, PAYLOADS, make_hostile
from tests.page.server import PageServer

SCHEMES = ("", "http", "https", "mailto")
RESOURCES = {"document", "script", "stylesheet", "fetch"}


@pytest.fixture(scope="module")
def hostile(model_home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    """The server of a memory that is full of payloads, also in the metadata of notes."""
    page = make_hostile(tmp_path_factory.mktemp("hostile").resolve(), model_home.models)
    with PageServer(page) as server:
        with server.client() as client:
            for one in PAYLOADS:
                body = {"text": f"Metadata of {one}"[:200], "tags": [one[:60]], "metadata": {one: [one, {"x": one}]}}
                client.post("/memory/store", json=body)  # some are refused, as the one with control characters
        yield server


def check(page: Page) -> None:
    """The page has only elements of its own, and no address that runs."""
    assert page.evaluate("document.scripts.length") == 1
    strange = page.evaluate(
        """[...document.querySelectorAll("body *")].filter((one) =>
            /^(script|iframe|object|embed|base|meta|link|style|audio|video|source|template|math|img)$/i
                .test(one.localName) || [...one.attributes].some((each) => /^on|^srcdoc$/i.test(each.name)))
            .map((one) => one.outerHTML.slice(0, 200))"""
    )
    assert not strange, strange
    for href in page.evaluate("[...document.querySelectorAll('[href]')].map((one) => one.getAttribute('href'))"):
        assert urlsplit(href).scheme in SCHEMES or href.startswith("data:image/svg+xml"), href
    for target in page.evaluate("[...document.links].filter((one) => one.host !== location.host).map((one) => one.rel)"):
        assert "noopener" in target and "noreferrer" in target


@pytest.fixture
def watched(open_page: Opener) -> Iterator[Opener]:
    """Opens views, and fails also if one of them asks for anything but the page's files and answers."""
    open_page.may_load = RESOURCES
    yield open_page


def test_every_list_shows_it_as_text(watched: Opener, hostile: PageServer) -> None:
    for path in ("#/", "#/topics", "#/files", "#/health", "#/search?q=gateway", "#/search?q=alert"):
        page = watched(path, server=hostile)
        check(page)
        page.context.close()


def test_every_session_and_its_originals(watched: Opener, hostile: PageServer) -> None:
    with hostile.client() as client:
        found = client.get("/sessions", params={"limit": 100}).json()["sessions"]
    assert len(found) >= len(PAYLOADS) // 5
    page = watched("#/", server=hostile)
    for one in first(4, found):
        visit(page, f"{hostile.address}#/session/{one['session']}")
        originals = page.get_by_role("button", name="Original exchange")
        originals.first.wait_for()
        for _ in range(originals.count()):
            originals.first.click()
        settle(page)
        for each in page.locator("details > summary").all():
            each.click()
        check(page)


def test_notes_topics_and_nodes(watched: Opener, hostile: PageServer) -> None:
    with hostile.client() as client:
        topics = client.get("/topics").json()["topics"]
        results = client.get("/memory/search", params={"query": "note metadata gateway", "limit": 50}).json()["results"]
    assert any("<svg" in one["label"] for one in topics)
    page = watched("#/", server=hostile)
    for one in first(5, topics):
        visit(page, f"{hostile.address}#/topics/{one['id']}")
        check(page)
        visit(page, f"{hostile.address}#/graph?around=topic:{one['id']}")
        check(page)
    for one in first(5, results):
        visit(page, f"{hostile.address}#/entry/{one['id']}")
        check(page)


def test_forgetting_and_remembering(watched: Opener, hostile: PageServer) -> None:
    page = watched("#/search?q=gateway", server=hostile)
    for payload in first(3, PAYLOADS):
        page.keyboard.press("n")
        dialog = page.locator("dialog")
        dialog.locator("textarea").fill(f"{payload} by hand"[:300])
        dialog.get_by_role("button", name="Remember").click()
        dialog.wait_for(state="detached")
        check(page)
    visit(page, f"{hostile.address}#/search?q=by+hand")
    check(page)


@pytest.mark.parametrize("payload", PAYLOADS[::6])
def test_addresses_and_questions(watched: Opener, hostile: PageServer, payload: str) -> None:
    watched.allowed += ["404 (Not Found)", "422 ("]
    encoded = quote(payload, safe="")
    page = watched(f"#/search?q={encoded}", server=hostile)
    for path in ("session/", "turn/", "entry/", "topics/", "file/", "graph?around=", "", "?day=", "?file="):
        visit(page, f"{hostile.address}#/{path}{encoded}")
        check(page)
    assert EVIL not in urlsplit(page.url).netloc
