"""Find what was decided, in this project and in others, and see that memkit is healthy."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.memory import day
from tests.page.browser import Opener, settle
from tests.page.home import PageHome
from tests.page.server import PageServer


def add_day(page: PageHome, project: str, date: str, question: str, answer: str, session: str) -> None:
    """Write a day of a project of the same memory home, and index it."""
    folder = page.root / project / ".memkit" / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{date}.md").write_text(day(date, (question, answer), session=session))
    page.memkit("index", "--project", str(page.root / project))


def test_results_show_the_answer_and_fold_equal_titles(open_page: Opener, own_story: PageServer) -> None:
    for number in range(3):
        answer = f"Decided: The zeppelin goes by version 1.{number}. More was said about the weather."
        add_day(own_story.page, "shop", f"2026-11-2{number + 1}", "How do we release the zeppelin?", answer, f"5e55010{number}")
    page = open_page("#/search?q=release zeppelin", server=own_story)
    found = page.locator(".results > ol > .found", has_text="How do we release the zeppelin?")
    expect(found).to_have_count(1)
    expect(found.locator(".found-excerpt")).to_contain_text("version 1.2")
    fold = found.get_by_role("button", name="2 earlier")
    fold.click()
    expect(found.locator(".folded .found-excerpt").nth(1)).to_contain_text("version 1.0")
    fold.click()
    expect(found.locator(".folded")).to_have_count(0)


def test_no_count_of_results_stays_above_an_error(open_page: Opener, own_story: PageServer) -> None:
    open_page.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    page = open_page("#/search?q=zeppelin", server=own_story)
    expect(page.locator(".title-aside")).to_contain_text("0 results")
    own_story.stop()
    page.get_by_role("searchbox").fill("gateway")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.locator(".title-aside")).to_have_count(0)


def test_other_projects_are_read_and_not_changed(open_page: Opener, own_story: PageServer) -> None:
    open_page.allowed.append("404 (Not Found)")  # a project without topics
    add_day(own_story.page, "shipping", "2026-11-21", "Which carrier takes the zeppelin?", "Bring takes it.", "5e55000a")
    page = open_page("#/search?q=zeppelin", server=own_story)
    page.get_by_role("link", name="Search all projects").click()
    result = page.locator(".found", has_text="Which carrier takes the zeppelin?")
    expect(result.locator(".found-project")).to_have_text("shipping")
    result.get_by_role("link").first.click()
    expect(page.locator("article")).to_contain_text("Bring takes it.")
    assert "in=shipping" in page.url
    expect(page.get_by_role("button", name="Forget")).to_have_count(0)
    expect(page.get_by_role("button", name="Remember")).to_have_count(0)
    page.locator("article [data-row]").first.focus()
    page.keyboard.press("x")
    expect(page.locator(".said")).to_contain_text("only reads other projects")
    expect(page.get_by_role("dialog")).to_have_count(0)
    choose(page, "shipping")
    for view, own in (("files", "No file was edited yet."), ("topics", "only reads other projects"), ("health", "Sessions1")):
        page.get_by_role("link", name=re.compile(view, re.IGNORECASE)).click()
        expect(page.locator("main")).to_contain_text(own)
        expect(page.get_by_role("button", name=re.compile("Compute|Fix|Summarize"))).to_have_count(0)
    choose(page, "All projects")
    expect(page.locator("main")).to_contain_text("Costsof all projects")
    page.get_by_role("link", name=re.compile("files", re.IGNORECASE)).click()
    page.locator("main").get_by_role("link", name="shipping").click()
    expect(page.locator("main")).to_contain_text("No file was edited yet.")
    page.reload()
    expect(page.get_by_label("Project")).to_have_value("shipping")
    choose(page, "All projects")
    rows = page.locator("main [data-row]")
    expect(rows.first).to_contain_text("shipping")
    expect(page.locator("main [data-row]", has_text="shop").first).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator("h2", has_text="shop")).to_be_visible()
    choose(page, "shop")
    expect(page.locator("h1")).to_have_text("Topics")
    assert "in=" not in page.url


def choose(page: Page, project: str) -> None:
    page.get_by_label("Project").select_option(project)
    settle(page)


def test_a_finding_is_fixed_with_a_button(open_page: Opener, own_story: PageServer) -> None:
    Path(own_story.page.home.root, "ledger.jsonl").touch(0o644)
    page = open_page("#/health", server=own_story)
    finding = page.locator(".finding", has_text="other users may read")
    finding.get_by_role("button", name="Fix it").click()
    expect(page.locator(".said")).to_contain_text("to other users")
    expect(finding).to_have_count(0)


def test_questions_about_work_are_answered(open_page: Opener, served: PageServer) -> None:
    day = served.page.journal.days()[-3]
    page = open_page(f"#/search?q=what happened on {day}")
    expect(page.locator("section h2")).to_contain_text(str(int(day[8:])))
    expect(page.locator(".general")).not_to_have_count(0)
    page.locator(".general").first.click()
    settle(page)
    expect(page.locator("article")).not_to_have_count(0)
    page = open_page("#/search?q=what is unsolved")
    expect(page.locator("section h2")).to_have_text("Left open, the newest first")
