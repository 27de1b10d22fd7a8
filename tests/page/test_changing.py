"""Remember a note and forget an entry in the page."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.page.browser import Opener, settle
from tests.page.server import PageServer


def test_a_note_is_remembered_and_found(open_page: Opener, own_story: PageServer) -> None:
    page = open_page(server=own_story)
    page.keyboard.press("n")
    dialog = page.get_by_role("dialog", name="Remember")
    expect(dialog.get_by_label("Note")).to_be_focused()
    expect(dialog.get_by_role("button", name="Remember")).to_be_disabled()
    page.keyboard.type("The zeppelin <b>lands</b> at noon.")
    dialog.get_by_label("Tags").fill("travel, #staging")
    dialog.get_by_role("button", name="Remember").click()
    expect(dialog).to_have_count(0)
    page.get_by_role("link", name="Show it").click()
    expect(page.locator("h1")).to_have_text("Note")
    expect(page.locator(".prose")).to_have_text("The zeppelin <b>lands</b> at noon.")
    expect(page.locator(".facts")).to_contain_text("travel")
    page.get_by_role("searchbox").fill("zeppelin")
    expect(page.locator(".found").first).to_contain_text("The zeppelin <b>lands</b> at noon.")
    assert "zeppelin" in own_story.page.journal.text(f"{own_story.page.journal.days()[-1]}.md")


def test_a_decision_is_found_opened_and_forgotten(open_page: Opener, own_story: PageServer) -> None:
    page = open_page(server=own_story)
    page.get_by_role("searchbox").fill("pre-receive hook scans for secrets")
    page.locator(".found").first.get_by_role("link").click()
    turn = page.locator("article", has_text="A secret was committed. What now?")
    turn.get_by_role("button", name="Forget").click()
    dialog = page.get_by_role("dialog", name="Forget for good?")
    expect(dialog).to_contain_text("A secret was committed. What now?")
    expect(dialog).to_contain_text("1 turn")
    expect(dialog).to_contain_text("1 original exchange in the archive")
    dialog.get_by_role("button", name="Keep").click()
    expect(turn).to_be_visible()
    assert "A secret was committed" in everything(own_story)
    turn.get_by_role("button", name="Forget").click()
    dialog.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("status").filter(has_text="Forgotten")).to_be_visible(timeout=60_000)
    expect(turn).to_have_count(0)
    assert "A secret was committed" not in everything(own_story)
    page.get_by_role("searchbox").fill("pre-receive hook scans for secrets")
    settle(page)
    expect(page.locator("main")).not_to_contain_text("A secret was committed")


def test_a_file_leads_to_the_page_once(chromium: Browser, own_story: PageServer) -> None:
    (file,) = Path(own_story.page.environment["MEMKIT_HOME"], "run").glob("open-*.html")
    page = chromium.new_page()
    page.goto(file.as_uri())
    page.wait_for_url(f"{own_story.address}#/")
    expect(page.locator(".row", has_text="note")).to_have_count(3)  # and an outcome
    assert not file.exists()
    page.close()


def test_a_note_is_forgotten(open_page: Opener, own_story: PageServer) -> None:
    page = open_page("#/search?q=accountants are back on Monday", server=own_story)
    page.locator(".found", has_text="accountants are back").get_by_role("link").click()
    expect(page.locator("h1")).to_have_text("Note")
    page.keyboard.press("x")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("1 note")
    dialog.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_role("status").filter(has_text="Forgotten")).to_be_visible(timeout=60_000)
    expect(page.locator("h1")).to_have_text("Search")
    assert "accountants are back" not in everything(own_story)


def test_a_note_that_cannot_be_stored_stays_in_the_dialog(open_page: Opener, own_story: PageServer) -> None:
    open_page.allowed += ["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET"]
    page = open_page(server=own_story)
    own_story.stop()
    page.get_by_role("button", name="Remember").click()
    dialog = page.get_by_role("dialog", name="Remember")
    dialog.get_by_label("Note").fill("The zeppelin lands at noon.")
    dialog.get_by_role("button", name="Remember").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The server does not answer")
    expect(dialog.get_by_label("Note")).to_have_value("The zeppelin lands at noon.")


def test_what_others_add_appears_by_itself(open_page: Opener, own_story: PageServer) -> None:
    page = open_page(server=own_story)
    expect(page.locator(".row", has_text="note")).to_have_count(3)  # and an outcome
    own_story.page.memkit("remember", "The zeppelin lands at noon.")
    expect(page.locator(".row", has_text="note")).to_have_count(4, timeout=60_000)


LOG = "\n".join(f"2026-11-27 08:{n:02d}:02 ERROR probe: checkout failed" for n in range(40))


def test_a_session_reads_like_a_page(open_page: Opener, own_story: PageServer) -> None:
    said = {
        "user": f"The deploy fails, why?\n\n{LOG}\n# Environment\n=====\n\nI restarted the pods twice.",
        "tool": "1 failed, 11 passed",
        "assistant": "The policy allows only one database.",
    }
    with own_story.client() as client:
        for role, text in said.items():
            tool = {"tool": "Bash"} if role == "tool" else {}
            answer = client.post("/events", json={"session": "other", "role": role, "text": text, **tool})
            answer.raise_for_status()
        session = answer.json()["session"]
    page = open_page(server=own_story)
    row = page.locator(".row", has_text="The deploy fails, why?")
    expect(row).to_contain_text("The policy allows only one database.")
    row.click()
    asked = page.locator(".asked")
    expect(asked.locator("pre").first).to_contain_text("08:00:02 ERROR")
    expect(page.locator("article h3, article h4")).to_have_count(0)
    lines = "parseFloat(getComputedStyle(element).height)"
    start = asked.locator("> div")
    assert start.evaluate(f"element => {lines}") <= 4 * 23
    asked.get_by_role("button", name="more", exact=True).click()
    asked.get_by_role("button", name=re.compile("Show [0-9,]+ more characters")).click()
    whole = "08:39:02 ERROR probe: checkout failed\n# Environment\n====="
    expect(asked.locator("pre")).to_have_count(1, timeout=60_000)  # of the digest, there are a begin and an end
    expect(asked.locator("pre")).to_contain_text(whole)
    expect(asked).to_contain_text("I restarted the pods twice.")
    asked.get_by_role("button", name="less").click()
    assert start.evaluate(f"element => {lines}") <= 4 * 23
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy the command to resume").click()
    expect(page.locator(".said")).to_contain_text(f"Copied: memkit resume {session} --go")
    assert page.evaluate("navigator.clipboard.readText()") == f"memkit resume {session} --go --all-projects"


def everything(server: PageServer) -> str:
    return "".join(server.page.journal.text(path.name) for path in server.page.journal.markdown())
