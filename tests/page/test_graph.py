"""Topics, files, and what is around an entry: what a person sees and opens, and sees appear."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import expect

from memkit.llm.ledger import Call, Ledger
from tests.page.browser import Opener, settle
from tests.page.server import PageServer


def test_topics_are_listed_and_opened_with_what_is_around(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/topics")
    with served.client() as client:
        topics = client.get("/topics").json()["topics"]
    expect(page.locator(".topic-row")).to_have_count(len(topics))
    expect(page.locator(".topic-row").first).to_contain_text(topics[0]["label"])
    page.get_by_label("Order").select_option("By name")
    named = page.locator(".topic-row .row-title").all_inner_texts()
    assert named == sorted(named, key=str.casefold)
    page.locator(".topic-row", has_text="invoice").first.click()
    settle(page)
    expect(page.locator(".topic-parts")).to_contain_text("Are the invoice totals safe with floats?")
    expect(page.locator(".topic-parts")).to_contain_text("src/billing/export.py")
    page.get_by_role("link", name="Show what is around").click()
    settle(page)
    assert "around=topic%3A" in page.url
    expect(page.locator(".ring")).to_contain_text("invoice")
    expect(page.locator(".around-lists")).to_contain_text("Are the invoice totals safe with floats?")


def test_files_lead_to_their_history(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/files")
    with served.client() as client:
        found = client.get("/files").json()
    rows = [row for group in found["groups"] for row in group["files"]]
    expect(page.locator(".files-row")).to_have_count(len(rows))
    expect(page.locator(".files-large")).to_have_count(len(found["largest"]))
    assert page.locator(".files-row td a").count() == sum(len(row["weeks"]) for row in rows)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    settle(page)
    assert f"#/file/{quote(rows[0]['path'], safe='')}" in page.url
    expect(page.locator("h1")).to_have_text(rows[0]["path"])
    page.go_back()
    settle(page)
    mark = page.locator(".files-row", has_text="gateway.yaml").locator("td a").first
    mark.click()
    settle(page)
    expect(page.locator(".is-in")).not_to_have_count(0)
    page.locator("a.files-event").first.click()
    settle(page)
    expect(page.locator("main")).to_contain_text("gateway")


def test_the_ring_walks_from_a_file_to_an_entry(open_page: Opener) -> None:
    page = open_page(f"#/graph?around={quote('file:deploy/gateway.yaml')}", phone=True)
    expect(page.locator(".ring-node[aria-current]")).to_contain_text("gateway.yaml")
    page.locator(".ring-entry").first.click()
    settle(page)
    assert "around=entry%3A" in page.url
    expect(page.locator(".ring")).to_contain_text("gateway.yaml")
    page.get_by_role("link", name="Open", exact=True).click()
    settle(page)
    assert "#/turn/" in page.url


def test_new_edits_appear_while_files_are_open(open_page: Opener, own_story: PageServer) -> None:
    page = open_page("#/files", server=own_story)
    expect(page.locator(".files-row", has_text="shed.py")).to_have_count(0)
    turn = "### 10:00 Paint the bike shed <!-- turn:5ed5ed01 -->\n**Asked** Paint the bike shed\n**Did**\n\n- Edit `src/shed.py`\n"
    memory = Path(own_story.page.project.root, ".memkit", "memory")
    memory.joinpath("2026-12-21.md").write_text(f"# 2026-12-21\n\n## 10:00 Paint <!-- session:5e550001 -->\n\n{turn}")
    expect(page.locator(".files-row", has_text="shed.py")).to_have_count(1, timeout=30_000)


def test_health_says_what_the_memory_holds(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/health")
    with served.client() as client:
        counts = client.get("/overview").json()["counts"]
    for name in ("Days", "Sessions", "Turns", "Notes"):
        figure = page.locator(".figure").filter(has=page.get_by_text(name, exact=True))
        expect(figure).to_contain_text(str(counts[name.lower()]))
    expect(page.locator("main")).to_contain_text("No model was asked so far")


def test_costs_are_shown_by_day_and_model(open_page: Opener, own_story: PageServer) -> None:
    ledger, root = Ledger(own_story.page.home), own_story.page.project.root
    for number in range(3):
        time = 1_795_000_000.0 + 86_400 * number
        ledger.record(Call(f"c{number}", time, "summary", "anthropic", "claude-haiku-4-5", root, 5000, 400, 0.007, "ok"))
    page = open_page("#/health", server=own_story, dark=True)
    expect(page.locator("tr", has_text="Anthropic’s API: claude-haiku-4-5")).to_contain_text("15,000")
    expect(page.locator("svg[role=img]")).to_be_visible()
    expect(page.locator(".figure").filter(has_text="In all")).to_contain_text("3 calls")
