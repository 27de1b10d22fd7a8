"""Topics and the graph: what a person sees, does with the pointer and the keyboard, and sees appear."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from memkit.llm.ledger import Call, Ledger
from tests.page.browser import Opener, settle
from tests.page.server import PageServer

PANEL = "aside.graph-panel"


def rows(page: Page, title: str) -> list[str]:
    """The labels of a group in the panel."""
    part = page.locator(PANEL).locator("section").filter(has=page.locator(".graph-group", has_text=title))
    return part.locator(".graph-row").all_inner_texts()


def find_node(page: Page, x: float = 0.5, y: float = 0.5) -> tuple[float, float]:
    """Move the pointer from a place of the map to the right and down until it is over a node."""
    box = page.locator("canvas").bounding_box()
    for step in range(0, 40_000, 6):
        place = (box["x"] + (x * box["width"] + step) % box["width"], box["y"] + y * box["height"] + step // box["width"] * 6)
        page.mouse.move(*place)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => done(0)))")
        if "is-over" in (page.locator("canvas").get_attribute("class") or ""):
            return place
    raise AssertionError("there is no node")


def test_topics_are_listed_opened_and_shown_on_the_map(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/topics")
    with served.client() as client:
        topics = client.get("/topics").json()["topics"]
    expect(page.locator(".topic-row")).to_have_count(len(topics))
    expect(page.locator(".topic-row").first).to_contain_text(topics[0]["label"])
    page.get_by_label("Order").select_option("By name")
    named = page.locator(".topic-row .row-title").all_inner_texts()
    assert named == sorted(named, key=str.casefold)
    page.locator(".topic-row", has_text="invoices").first.click()
    expect(page.locator("h1")).to_contain_text("invoices")
    settle(page)
    expect(page.locator(".topic-parts")).to_contain_text("Are the invoice totals safe with floats?")
    expect(page.locator(".topic-parts")).to_contain_text("src/billing/export.py")
    page.get_by_role("link", name="Show in the graph").click()
    settle(page)
    assert re.search(r"around=topic%3A", page.url)
    expect(page.get_by_role("application")).to_be_visible()
    expect(page.locator(PANEL)).to_contain_text("invoices")


def test_the_pointer_highlights_and_chooses(open_page: Opener) -> None:
    page = open_page("#/graph")
    place = find_node(page)
    page.mouse.click(*place)
    settle(page)
    heading = page.locator(f"{PANEL} h2:not(.graph-group)")
    expect(heading).to_be_visible()
    before = page.url
    page.mouse.dblclick(*place)
    page.wait_for_url(re.compile(r"#/(topics|turn|session|\?file)"))
    assert page.url != before


def test_the_keyboard_chooses_and_opens(open_page: Opener) -> None:
    page = open_page("#/graph")
    canvas = page.get_by_role("application")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    heading = page.locator(f"{PANEL} h2:not(.graph-group)")
    expect(heading).to_be_visible()
    first = heading.inner_text()
    expect(page.locator("[aria-live=polite]")).to_contain_text(first)
    page.keyboard.press("ArrowDown")
    expect(heading).not_to_have_text(first)
    page.keyboard.press("Escape")
    expect(heading).to_have_count(0)
    page.keyboard.press("ArrowLeft")
    expect(heading).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("application")).to_have_count(0)


def test_the_panel_walks_along_the_connections(open_page: Opener) -> None:
    page = open_page("#/graph?all=1")
    page.locator(".graph-row", has_text="gateway").first.click()
    settle(page)
    assert any("port" in one for one in rows(page, "Entries"))
    assert "deploy/gateway.yaml" in " ".join(rows(page, "Files")) or rows(page, "Entries")
    page.locator(PANEL).locator(".graph-row", has_text="Which port").first.click()
    settle(page)
    expect(page.locator(PANEL)).to_contain_text("7443")
    page.locator(PANEL).get_by_role("link", name="Show what is around").click()
    settle(page)
    assert "around=entry%3A" in page.url
    page.locator(PANEL).get_by_role("link", name="Open").click()
    settle(page)
    expect(page.locator("main")).to_contain_text("Which port does the staging gateway listen on?")


def test_the_whole_map_and_the_list_have_the_same_nodes(open_page: Opener, served: PageServer) -> None:
    page = open_page("#/graph")
    page.get_by_role("button", name="Whole map").click()
    settle(page)
    with served.client() as client:
        nodes = client.get("/graph", params={"limit": 2000}).json()["nodes"]
    expect(page.locator(".title-aside")).to_contain_text(f"{len(nodes)} nodes")
    page.get_by_role("button", name="List").click()
    settle(page)
    assert "all=1" in page.url
    others = [one for one in nodes if one["kind"] != "topic"]
    expect(page.locator(".graph-list-row")).to_have_count(len(others))
    page.locator(".graph-list-row", has_text="Handle webhooks in a queue").click()
    expect(page.locator("main")).to_contain_text("a worker handles it")


def test_the_map_moves_under_the_pointer_and_by_its_buttons(open_page: Opener) -> None:
    page = open_page("#/graph")
    box = page.locator("canvas").bounding_box()
    assert box is not None

    def picture() -> bytes:
        page.mouse.move(1, 1)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")
        return page.screenshot(clip={**box, "width": box["width"] - 60})  # without the buttons

    seen = [picture()]
    page.mouse.move(box["x"] + 12, box["y"] + box["height"] - 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + box["height"] - 90, steps=5)
    page.mouse.up()
    seen.append(picture())
    page.mouse.move(box["x"] + 60, box["y"] + 60)
    page.mouse.wheel(0, -300)
    seen.append(picture())
    page.get_by_role("button", name="Zoom out").click()
    seen.append(picture())
    assert len(set(seen)) == len(seen)
    page.get_by_role("button", name="Show everything").click()
    assert picture() == seen[0]
    place = find_node(page)
    page.mouse.down()
    page.mouse.move(place[0] + 60, place[1] + 50, steps=6)
    page.mouse.up()
    assert picture() not in seen


def test_new_entries_appear_while_the_map_is_open(open_page: Opener, own_story: PageServer) -> None:
    page = open_page("#/graph?all=1&as=list", server=own_story)
    before = page.locator(".graph-list-row").count()
    event = {"session": "run-1", "time": "2026-11-21T10:00:00Z"}
    with own_story.client() as client:
        for role, text in (("user", "Which color has the bike shed?"), ("assistant", "It is green.")):
            client.post("/events", json={**event, "role": role, "text": text}).raise_for_status()
    expect(page.locator(".graph-list-row", has_text="bike shed")).to_have_count(1, timeout=30_000)
    assert page.locator(".graph-list-row").count() > before


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
