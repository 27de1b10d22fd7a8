"""What each session of a day was about, in one line."""

from __future__ import annotations

import pytest

from memkit.conversation.turn import ToolCall
from memkit.journal.day_file import DayFile
from memkit.journal.extracts import overview_line
from memkit.journal.outcomes import main_commits, outcome
from memkit.journal.sessions import DaySession, main_outcome, open_lines, sessions, stretches
from memkit.journal.tool_lines import tool_line
from memkit.journal.turn_parts import TurnParts

DAY = """# 2026-11-20

## 14:02 Gateway port <!-- session:s1 branch:main extract:t2 -->

- Edited: a.py <!-- grip:aa turns:t1 by:extract -->
- Committed: Move the gateway <!-- grip:ab turns:t2 by:extract -->
- Open: Should production move too? <!-- grip:ac turns:t2 by:extract -->

### 14:02 Which port? <!-- turn:t1 branch:main -->
**Asked** Which port?

### 14:20 Move it <!-- turn:t2 branch:feature/gw -->
**Answered** Great! It moved to 7443. More text.

## 15:00 Note: buy milk <!-- note:n1 -->
buy milk

## 16:00 Fix CI <!-- session:s2 -->

### 16:00 Fix CI <!-- turn:t3 -->
**Asked** Fix CI

**Answered** Perfect! The cache key was wrong. I changed it.

## 17:00 Afterwards <!-- session:s1 -->

### 17:00 Go on <!-- turn:t4 -->
**Asked** Go on
**Interrupted**
"""


def test_a_stretch_has_its_times_turns_and_outcome() -> None:
    found = stretches("2026-11-20", DayFile(DAY))
    assert found[0] == DaySession(
        session="s1", day="2026-11-20", begins="14:02", ends="14:20", title="Gateway port",
        outcome="Committed: Move the gateway · Open: Should production move too?", turns=("t1", "t2"),
        branch="feature/gw", line=3,
    )  # fmt: skip
    assert [one.outcome for one in found[1:]] == ["The cache key was wrong.", "interrupted"]


def test_a_session_joins_its_stretches() -> None:
    first, second = sessions("2026-11-20.local", DayFile(DAY))
    outcome = "Committed: Move the gateway · Open: Should production move too?"
    assert first[2:6] == ("14:02", "17:00", "Gateway port", outcome)
    assert (first.turns, first.line, first.day) == (("t1", "t2", "t4"), 3, "2026-11-20")
    assert second.session == "s2"


def test_the_subject_of_a_commit_stands_in_its_line() -> None:
    command = "cd /shop && git commit -m \"$(cat <<'EOF'\nMove the port\n\nWhy.\nEOF\n)\" && git status"
    line = tool_line(ToolCall("Bash", {"command": command}, "lint ok"), ["/shop"], str)
    assert line == 'Bash `git commit -m "Move the port" && git status` → lint ok'
    assert outcome([_turn("commit", "Done.", line)]) == "Committed: Move the port"


def _turn(prompt: str, answer: str, *tools: str) -> TurnParts:
    return TurnParts(prompt, list(tools), "Answered", answer)


def test_the_outcome_of_several_turns_is_what_holds() -> None:
    """No guess that the next prompt refutes, no failed push, no mere status, and a commit rather than its merge."""
    edit = "Edit src/cache.py"
    guess = _turn("the cache loses keys", "The cache key was cut at 80 characters.", edit)
    found = _turn("no, that's not it", "All tests pass. Removed the second eviction of the cache.", edit)
    push = _turn("push it", "The push was rejected.", "Bash `git push` → failed: rejected")
    commits = "Bash `git commit -m x` → [main 77c1e09] Evict once", "Bash `git merge a` → [main 77c1e10] Merge branch 'a'"
    assert outcome([guess, _turn("ok, thanks!", "You're welcome! Anything else?")]) == outcome([guess])
    assert outcome([guess]) == "The cache key was cut at 80 characters."
    assert outcome([guess, found, push]) == "Removed the second eviction of the cache."
    assert outcome([guess, found, _turn("commit it", "Committed.", *commits)]) == "Committed: Evict once"


def test_the_main_turns_tell_the_outcome() -> None:
    """What was asked first and took most edits comes before a follow-up, and both before a repair."""
    limit = _turn("limit the upload size", "Done. The upload size is limited to 20 MB now.", "Edit src/upload.py ×6")
    name = _turn("show author and license", "Each entry shows its author and its license now.", "Edit src/list.py ×5")
    lint = _turn("fix lint", "All checks pass. Removed an unused import in `src/list.py`.", "Edit src/list.py")
    assert outcome([limit, lint], "limit the upload size") == "The upload size is limited to 20 MB now."
    both = "The upload size is limited to 20 MB now; Each entry shows its author and its license now"
    assert outcome([limit, name, lint]) == both


def test_several_changes_of_several_turns_are_told() -> None:
    answer = "All done:\n1. Added a limit to the upload form\n2. Added a limit to the `sync` job\n3. Updated the manual"
    limit = _turn("limit uploads and syncs", answer, "Edit src/upload.py ×4")
    retry = _turn("retry the release", "The release now retries the notary with:\n- two tries", "Edit release.yml ×3")
    assert outcome([limit, retry]) == (
        "Added a limit to the upload form; Added a limit to the `sync` job; The release now retries the notary"
    )
    gone = _turn("thinking again: no limit", "The upload form has no limit now.", "Edit src/upload.py")
    assert outcome([limit, gone]) == "The upload form has no limit now."



def test_a_lead_tells_more_than_the_list_below_it() -> None:
    answer = "Updated Go from 1.25.5 to 1.25.6 in both files:\n- `mise.toml` - tools\n- `go.mod` - module"
    assert outcome([_turn("update go", answer, "Edit go.mod")]) == "Updated Go from 1.25.5 to 1.25.6 in both files."


def test_the_main_commits_are_shown() -> None:
    subjects = ["feat: show the author", "fix: address review comments", "style: gofmt", "Merge branch 'main'", "docs: the author"]
    assert main_commits(subjects, 2) == ["feat: show the author", "docs: the author"]
    assert main_commits(subjects[1:2] * 2, 2) == subjects[1:2]
    commits = [f"Bash `git commit -m x` → [main 77c1e0{n}] {one}" for n, one in enumerate(subjects[1:3])]
    edit = _turn("show the author", "Each entry shows its author and its license now.", "Edit src/list.py", *commits)
    assert outcome([edit]) == "Each entry shows its author and its license now."
    tried = "Bash `cd /tmp/x && git init && git commit -m initial` → [main 77c1e05] initial cache"
    assert outcome([_turn("try it", "Let me try it.", "Edit src/list.py", tried)]) == "Edited: src/list.py"
    rebased = "Bash `git rebase --continue` → [detached HEAD 77c1e04] feat: an older commit"
    assert outcome([_turn("go on", "Let me continue.", "Edit src/list.py", rebased)]) == "Edited: src/list.py"


COMMITTED = "- Committed: Move the gateway <!-- grip:ab turns:t2 by:extract -->\n"
OPEN = "- Open: Should production move too? <!-- grip:ac turns:t2 by:extract -->\n"
EDITED = "- Edited: a.py <!-- grip:aa turns:t1 by:extract -->"
SIDE = "- Decided: {} <!-- grip:ad turns:t2 by:extract -->\n"
WRITTEN = "\n".join(
    f"- {one} <!-- grip:ae{n} turns:t2 -->"
    for n, one in enumerate(["Outcome: it is 7443.{}", "Decided: 7443 is the port.", "Changed: the ingress."])
)
DOUBTED = WRITTEN.format(" (unverified)").replace("grip:ae0 turns:t2", "grip:ae0 turns:t2 check:unverified")


@pytest.mark.parametrize(("old", "new", "shown"), [
    # An extract of edits alone tells less than the answer.
    (COMMITTED + OPEN, "", "It moved to 7443."),
    # Open work is shown with its mark.
    (OPEN, OPEN.replace("move too? <!-- grip:ac turns:t2", "move too? (unverified) <!-- grip:ac turns:t2 check:unverified"),
     "Committed: Move the gateway · Open: Should production move too? (unverified)"),
    # A side decision is not the outcome, nor is one that repeats the work or is a paragraph.
    (COMMITTED, SIDE.format("Close the gateway on Sundays") + COMMITTED,
     "Decided: Close the gateway on Sundays · Committed: Move the"),
    (COMMITTED, SIDE.format("Buy milk first (Gateway port)") + COMMITTED, "Committed: Move the gateway"),
    (COMMITTED, SIDE.format("Move the gateway") + COMMITTED, "Committed: Move the gateway"),
    (COMMITTED, SIDE.format("Close the gateway on Sundays" + " and holidays" * 9) + COMMITTED, "Committed: Move the gateway"),
    # What a model wrote comes first, unless it is doubtful.
    (EDITED, WRITTEN.format(""), "it is 7443."),
    (EDITED, DOUBTED, "Decided: 7443 is the port."),
])  # fmt: skip
def test_the_outcome_of_a_stretch(old: str, new: str, shown: str) -> None:
    assert old in DAY
    assert stretches("2026-11-20", DayFile(DAY.replace(old, new)))[0].outcome.startswith(shown)


def test_what_is_open_and_what_a_command_showed() -> None:
    day = DAY.replace("I changed it.", "I changed it. Should the old key go?")
    assert stretches("2026-11-20", DayFile(day))[1].outcome == "The cache key was wrong. · Open: Should the old key go?"
    content = DayFile(day.replace("session:s2", "session:s2 extract:t3"))  # that of a single turn has no lines
    assert [text for _, text in open_lines(content, *content.headings()[1])] == ["Should the old key go?"]
    day = "# 2026-11-20\n\n## 16:00 ! df -h / <!-- session:s2 turn:t3 -->\n**Did** Bash `df -h /` → /dev/sda1 98% /\n"
    assert stretches("2026-11-20", DayFile(day))[0].outcome == "/dev/sda1 98% /"


def test_a_list_of_changes_is_joined_without_files_and_reasons() -> None:
    answer = (
        "All tests pass. The changes:\n\n1. **`src/cache.py:12`** — Replaced `lru` with `ttl` so that keys expire.\n"
        "2. `src/api.py` - Updated the cache calls (both of them).\n3. The log is quiet now.\n"
        "4. Added the cache flag `ttl - seconds` for tests."
    )
    turn = _turn("replace the lru cache", answer, "Edit src/cache.py", "Edit src/api.py")
    assert outcome([turn]) == (
        "Replaced `lru` with `ttl`; Updated the cache calls; Added the cache flag `ttl - seconds` for tests"
    )


@pytest.mark.parametrize(("answer", "told"), [
    # The work as a whole tells more than its details, and a change more than what it ended.
    ("I've made cache keys expire.\n\n1. Added `ttl` to `Cache`\n2. Updated `get`", "I've made cache keys expire."),
    ("**Root cause:** The cache was missing a limit.\n\n**Fix:** Added a limit to the cache.", "Added a limit to the cache."),
    ("Before: the cache keys were growing forever.\n\nAfter: the cache keys now expire.", "the cache keys now expire."),
    # A heading or a cell may tell the change, and code stands for what follows its lead.
    ("### 1. Fixed the cache keys\n\nDetails are in the code.", "Fixed the cache keys"),
    ("| File | What |\n|---|---|\n| src/cache.py | Added a limit to the cache |", "Added a limit to the cache"),
    ("Done. The list now names the cache key:\n\n```\na\n```\n\nAnything else?", "The list now names the cache key."),
    ("Changed `Cache.get()` to:\n- Read the key first\n- Return it", "Changed `Cache.get()` to Read the key first"),
    # Of an answer that was cut off, only a change holds; and a number of changes tells none.
    ("The cache keys end in a digest. Let me run the tests:", "Edited: src/cache.py"),
    ("Dropped the digest of cache keys. Let me run the tests:", "Dropped the digest of cache keys."),
    ("I made two changes to `src/cache.py`:\n\n1. The cache key is cut", "The cache key is cut"),
    # A label, a path, and an item before it are not what was changed; a short change with a name is one.
    ("- Cache table (line 9): Changed the type of keys\n- `src/cache.py` - Unit tests", "Changed the type of keys"),
    ("- Verdict: good\n- Small\n\nThe cache key now ends in a date.", "The cache key now ends in a date."),
    ("Created `CACHE.md`. You can fill it later.", "Created `CACHE.md`."),
    ("- Removed (unused):\n- Kept the cache key of `src/cache.py`", "Kept the cache key of `src/cache.py`"),
    # What an edit ends, and what may come, do not hold.
    ("The cache tests are failing because of the key. If the key changes, it was the cache.", "Edited: src/cache.py"),
    # What the user may do now is no change.
    ("Try `cache --clear` to drop the cache keys. Or not.", "Edited: src/cache.py"),
])  # fmt: skip
def test_what_an_answer_tells_of_edits(answer: str, told: str) -> None:
    assert outcome([_turn("the cache keys are wrong", answer, "Edit src/cache.py")]) == told


def test_an_accepted_plan_is_what_was_done() -> None:
    plan = "Implement the following plan:\n\n# Cache keys expire"
    answer = "All done.\n\n- `src/cache.py`: Added a limit to the cache"
    told = "Implemented the plan: Added a limit to the cache"
    assert outcome([_turn(plan, answer, "Edit src/cache.py")]) == told
    whole = "The cache limit has been added.\n\n- `src/cache.py`: Added a limit"
    assert outcome([_turn(plan, whole, "Edit src/cache.py")]) == "The cache limit has been added."
    undone = _turn(plan, "Added a limit to the cache. Let me run the tests:", "Edit src/cache.py")
    assert outcome([undone]) == "Added a limit to the cache."


def test_a_finding_before_edits_does_not_hold() -> None:
    cause = _turn("why do the tests of the cache fail?", "The cache keys end in a digest, so the tests fail.")
    assert outcome([cause, _turn("fix it", "Let me run the tests.", "Edit src/cache.py")]) == "Edited: src/cache.py"
    assert outcome([_turn("look at it", "I'll look at the cache.", "Task `look` → no result")]) == ""


def test_the_commits_of_all_stretches_are_named() -> None:
    first = stretches("2026-11-20", DayFile(DAY))[0]
    later = first._replace(outcome="Committed: Drop port 443; and 2 more", edits=9)
    assert main_outcome([first._replace(outcome="Committed: Move the gateway"), later]) == (
        "Committed: Move the gateway; Drop port 443; and 2 more"
    )
    edited = first._replace(outcome="The gateway port is documented.", edits=9)
    assert main_outcome([edited, first._replace(outcome="Fixed a typo.", edits=1)]) == edited.outcome
    long = edited._replace(outcome="The gateway port is documented" + ", with its reason" * 6)
    other = first._replace(outcome="Moved the port; " + "and what comes with it " * 9, edits=4)
    assert main_outcome([other, long]) == f"{long.outcome} · Moved the port"


def test_an_edited_outcome_of_the_overview_holds() -> None:
    line = overview_line("16:00 [Fix CI](#1600-fix-ci) · 1 turn → The cache key was wrong.", turns="t3")
    for shown, told in ((line, "The cache key was wrong."), (line.replace("was wrong", "had no salt"), "The cache key had no salt.")):
        day = DAY.replace("## 14:02", f"{shown}\n\n## 14:02", 1)
        assert [one.outcome for one in stretches("2026-11-20", DayFile(day))][1] == told
        more = day.replace("## 17:00 Afterwards", "### 16:10 Go on <!-- turn:t5 -->\n**Answered** The key has a date.\n\n## 17:00 x")
        assert [one.outcome for one in stretches("2026-11-20", DayFile(more))][1] == "The key has a date."
