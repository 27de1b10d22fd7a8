"""A story in a memory, the real `memkit serve --open` on it, and Chromium. All tests here carry the marker `e2e`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from memkit.paths import Home
from tests.ci import IN_CI
from tests.page.browser import OPTIONS, Opener
from tests.page.home import PageHome, make_story
from tests.page.server import PageServer

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless Chromium with a new profile. Without one a test is skipped, but in CI it fails."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        if IN_CI:
            pytest.fail("the tests of the page need Chromium")
        pytest.skip("needs Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def story(model_home: Home, tmp_path_factory: pytest.TempPathFactory) -> PageHome:
    """The memory that all tests share that change nothing in it."""
    return make_story(tmp_path_factory.mktemp("story").resolve(), model_home.models)


@pytest.fixture(scope="session")
def served(story: PageHome) -> Iterator[PageServer]:
    """The server of `story`."""
    with PageServer(story) as server:
        yield server


@pytest.fixture(scope="session")
def spare(model_home: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[PageHome, Path, Path]:
    """A second memory, its place, and a copy of it: to make one takes longer than most tests."""
    place = tmp_path_factory.mktemp("spare").resolve()
    made = make_story(place / "used", model_home.models)
    shutil.copytree(place / "used", place / "kept", symlinks=True)
    return made, place / "used", place / "kept"


@pytest.fixture
def own_story(spare: tuple[PageHome, Path, Path]) -> Iterator[PageServer]:
    """The server of a memory that a test may change. Each has the same place: the index depends on it."""
    home, used, kept = spare
    shutil.rmtree(used)
    shutil.copytree(kept, used, symlinks=True)
    with PageServer(home) as server:
        yield server


@pytest.fixture
def open_page(chromium: Browser, request: pytest.FixtureRequest) -> Iterator[Opener]:
    """Opens views: `open_page("#/topics", dark=True)`. The test fails if one of them reports a problem."""
    opener = Opener(chromium, lambda: request.getfixturevalue("served"))
    yield opener
    opener.close()
