"""Find something, open it, read the original: the paths of a person who knows no memkit."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.browser import Opener, settle
from tests.page.server import PageServer


def search(page: Page, words: str) -> None:
    field = page.get_by_role("searchbox", name="Search the memory")
    field.click()
    field.press_sequentially(words)
    page.locator(".found").first.wait_for()
    settle(page)


@pytest.mark.essential
def test_a_decision_is_found_by_typing_and_opened_with_its_original(open_page: Opener) -> None:
    page = open_page()
    search(page, "invoice floats")
    expect(page.locator("h1")).to_have_text("Search")
    first = page.locator(".found").first
    expect(first.locator("mark").first).to_be_visible()
    first.get_by_role("link").click()
    turn = page.locator("article", has_text="Are the invoice totals safe with floats?")
    expect(turn).to_contain_text("rounded half up once, at the end")
    expect(turn.locator("code", has_text="round(2.675, 2)")).to_be_visible()
    turn.get_by_role("button", name="Original exchange").click()
    original = turn.get_by_role("listitem").filter(has_text="You")
    expect(original).to_contain_text("Are the invoice totals safe with floats?")
    call = turn.locator("details.call").first
    call.locator("summary").click()
    expect(call.locator("pre").first).to_contain_text("src/billing/money.py")
    turn.get_by_role("button", name="Show digest").click()
    expect(turn.locator("details.call")).to_have_count(0)


def test_results_follow_each_key_and_the_address(open_page: Opener) -> None:
    page = open_page()
    search(page, "webhooks twice")
    expect(page.locator(".found").first).to_contain_text("receipts")
    assert page.url.endswith("#/search?q=webhooks+twice")
    page.get_by_role("searchbox").fill("passkeys")
    expect(page.locator(".found").first).to_contain_text("asskeys")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Timeline")


def test_why_a_result_was_found(open_page: Opener) -> None:
    page = open_page("#/search?q=second factor login")
    first = page.locator(".found").first
    first.get_by_role("button", name="Why this result").click()
    why = first.locator("dl")
    expect(why).to_contain_text("By words (BM25)#1")
    expect(why).to_contain_text("By meaning (cosine)#")
    expect(why).to_contain_text("factor")


def test_filters_narrow_the_results_and_are_cleared(open_page: Opener) -> None:
    page = open_page("#/search?q=gateway")
    every = page.locator(".found").count()
    page.get_by_label("Kind").select_option("Notes")
    expect(page.locator(".found")).to_have_count(1)
    expect(page.locator(".found")).to_contain_text("Mara owns it")
    assert "kind=note" in page.url
    page.get_by_role("button", name="Clear filters").click()
    expect(page.locator(".found")).to_have_count(every)
    page.get_by_label("From").fill("2027-01-01")
    page.get_by_label("From").press("Tab")
    expect(page.locator(".empty")).to_contain_text("Nothing found for “gateway”")
    page = open_page("#/search?q=zeppelin")
    expect(page.locator(".empty")).to_contain_text("Nothing found for “zeppelin”")
    expect(page.locator(".empty")).to_contain_text("Fewer words")


def test_a_superseded_decision_is_marked(open_page: Opener) -> None:
    page = open_page("#/search?q=which port does the staging gateway listen on&kind=summary")
    found = page.locator(".found", has_text="7443").filter(has=page.locator(".mark"))
    expect(found.first).to_contain_text("Superseded")
    found.first.locator(".row").click()
    expect(page.locator(".bullet.outdated")).to_contain_text("Superseded")


def test_a_citation_jumps_to_its_turn_and_shows_its_proof(open_page: Opener) -> None:
    page = open_page("#/search?q=umlauts in the exported invoices")
    page.locator(".found").first.get_by_role("link").click()
    settle(page)
    bullet = page.locator(".bullet", has_text="byte order mark")
    bullet.get_by_role("button", name="Proof").click()
    expect(bullet.locator("blockquote")).to_contain_text("byte order mark")
    bullet.locator(".cite").click()
    turn = page.locator("article", has_text="The umlauts in the exported invoices are broken in Excel.")
    expect(turn.locator("[data-row]")).to_be_focused()
    expect(turn.locator("table")).to_contain_text("Jörg")


def test_the_files_of_a_turn_lead_to_their_history(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/search?q=502 after a deploy")
    page.locator(".found").first.get_by_role("link").click()
    page.get_by_role("link", name="deploy/gateway.yaml").first.click()
    expect(page.locator("h1")).to_have_text("deploy/gateway.yaml")
    with served.client() as client:
        events = client.get("/files/history", params={"file": "deploy/gateway.yaml"}).json()["events"]
    assert Counter(one["kind"] for one in events) == {"edit": 2, "read": 3, "bullet": 3}
    expect(page.locator("[data-row]")).to_have_count(len(events))


def test_the_calendar(open_page: Opener, served: PageServer) -> None:
    page = open_page()
    day = served.page.journal.days()[-3]
    cell = page.locator(f'[data-day="{day}"]')
    expect(cell).to_have_attribute("aria-label", re.compile(r": \d+ sessions?, \d+ turns?"))
    cell.click()
    expect(page.locator("h2").first).to_contain_text("2026")
    assert page.url.endswith(f"day={day}")
    rows = page.locator("[data-row]")
    rows.first.wait_for()
    rows.first.click()
    settle(page)
    assert day in (page.locator(".facts a").first.get_attribute("href") or "")
    page.go_back()
    expect(page.locator(f'[data-day="{day}"]')).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="All days").click()
    expect(page.locator(".day")).not_to_have_count(1)
    page = open_page("#/?day=2026-11-19")
    page.locator('[data-day="2026-11-19"]').focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator('[data-day="2026-11-12"]')).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator('[data-day="2026-11-13"]')).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h2").first).to_have_text("Friday, November 13, 2026")


def test_everything_works_with_the_keyboard_alone(open_page: Opener) -> None:
    page = open_page()
    page.keyboard.press("/")
    page.keyboard.type("rotate secrets")
    page.locator(".found").first.wait_for()
    settle(page)
    page.keyboard.press("Enter")
    expect(page.locator(".found [data-row]").first).to_be_focused()
    page.keyboard.press("j")
    expect(page.locator(".found [data-row]").nth(1)).to_be_focused()
    page.keyboard.press("w")
    expect(page.locator(".found").nth(1).locator("dl")).to_be_visible()
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    turn = page.locator("article [data-row]:focus")
    turn.wait_for()
    page.keyboard.press("o")
    expect(page.locator("article .exchange")).to_be_visible()
    page.keyboard.press("x")
    expect(page.get_by_role("dialog")).to_contain_text("Forget for good?")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Search")
    expect(page.locator(".found [data-row]").first).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Timeline")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next row")


def test_an_unknown_entry_is_said_plainly(open_page: Opener) -> None:
    open_page.allowed.append("404 (Not Found)")
    page = open_page("#/session/ffffffff")
    expect(page.locator(".empty")).to_contain_text("This is not in the memory.")
    page = open_page("#/nowhere")
    expect(page.locator(".empty")).to_contain_text("There is nothing at this address.")


def test_a_server_that_has_ended_is_said_plainly(open_page: Opener, own_story: PageServer) -> None:
    open_page.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    page = open_page(server=own_story)
    own_story.stop()
    page.get_by_role("searchbox").fill("gateway")
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer")


# What is around every view


@pytest.mark.parametrize("path", ("#/", "#/search", "#/topics", "#/files", "#/health"))
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
    again = page.context.new_page()  # has the key already
    again.goto(own_story.link)
    for tab in (again, page):
        tab.reload()
        expect(tab.locator("nav")).to_be_visible()
    open_page.allowed.append("403 (Forbidden)")
    other = open_page(f"#token={own_story.link.partition('#token=')[2]}", server=own_story, with_key=False)
    assert "memkit serve --open" in other.inner_text("main")


def test_any_number_of_tabs_share_the_key_and_hear_of_changes(open_page: Opener, own_story: PageServer) -> None:
    asked = open_page("#/health", server=own_story, with_key=False)
    expect(asked.locator("h1")).to_have_text("This page needs a new link")
    opened = asked.context.new_page()
    opened.goto(own_story.link)
    for page in (opened, asked):  # both go on to what was asked for
        expect(page.locator("h1")).to_have_text("Costs and health")
    assert opened.url.endswith("#/health")
    tabs = [opened.context.new_page() for _ in range(7)]  # a browser opens six connections to a server
    for tab in tabs:
        tab.goto(f"{own_story.address}#/health")
        expect(notes_of(tab)).to_have_text("2")
    own_story.page.add_note("Mara is on holiday.")
    for tab in (asked, *tabs):
        expect(notes_of(tab)).to_have_text("3")
    for page in (opened, asked):  # the one that listens is among them
        page.close()
    own_story.page.add_note("Mara is back.")
    for tab in tabs:
        expect(notes_of(tab)).to_have_text("4")


def notes_of(page: Page) -> Locator:
    return page.locator(".figure", has_text="Notes").locator("dd .num")


def test_what_another_server_left_in_the_browser_opens_nothing(open_page: Opener, served: PageServer) -> None:
    """A server that had the port before may have stored anything."""
    open_page.allowed.append("401 (Unauthorized)")
    page = open_page(with_key=False)
    for stored in ('{"key": "memkit_key_x", "project": {"name": "x", "root": "/"}}', "1", "{", '{"key": {}}'):
        page.evaluate("(stored) => { localStorage['memkit.access'] = stored; localStorage['memkit.wanted'] = '{}' }", stored)
        page.reload()
        expect(page.locator("h1")).to_have_text("This page needs a new link")
