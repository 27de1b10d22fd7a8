"""What is around every view."""

from __future__ import annotations

import pytest

from tests.page.browser import Opener
from tests.page.home import PageHome
from tests.page.server import PageServer

VIEWS = ("#/", "#/search", "#/topics", "#/graph", "#/health")


def test_the_memory_of_the_story(story: PageHome) -> None:
    days = story.journal.days()
    assert len(days) >= 15
    assert "grip:" in story.journal.text(f"{days[0]}.md")
    assert "supersedes" in story.journal.text("MEMORY.md")
    assert "5000" in story.memkit("search", "batches of rows in a migration").replace(",", "")


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize("phone", (False, True))
def test_every_view_opens(open_page: Opener, path: str, phone: bool) -> None:
    page = open_page(path, phone=phone)
    assert page.locator("h1").count() == 1
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, "the page is wider than its window"


def test_the_link_works_once(open_page: Opener, own_story: PageServer) -> None:
    page = open_page(f"#token={own_story.link.partition('#token=')[2]}", server=own_story, with_key=False)
    assert "token" not in page.url
    assert page.locator("nav").count()
    page.reload()
    assert page.locator("nav").is_visible()
    open_page.allowed.append("403 (Forbidden)")
    other = open_page(f"#token={own_story.link.partition('#token=')[2]}", server=own_story, with_key=False)
    assert "memkit serve --open" in other.inner_text("main")
