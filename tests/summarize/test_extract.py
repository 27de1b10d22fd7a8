"""Extracts: what turns give without a model, and when it is written."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memkit.capture.sessions import LiveSessions
from memkit.capture.summary_queue import SummaryQueue
from memkit.conversation.turn import ToolCall
from memkit.journal.decisions import accepts, decisions
from memkit.journal.extracts import is_unedited
from memkit.journal.sentences import last_question, plan, says_nothing
from memkit.journal.sessions import open_lines
from memkit.journal.tool_lines import MAX_TOOLS, Call
from memkit.privacy.redact import redact
from memkit.privacy.tombstones import Forgotten, Tombstones
from memkit.summarize.bullets import MAX_TURNS
from memkit.summarize.extract import MOST_LINES, make_extract
from memkit.summarize.turns import ExtractTurn
from tests.summarize.stage import SESSION, START, SummaryStage, bullet, bullet_for_each, summary


def turn(prompt: str = "", answer: str = "", *calls: Call, name: str = "t1", title: str = "") -> ExtractTurn:
    return ExtractTurn(name, title or prompt, prompt, answer, calls)


def bash(command: str, outcome: str = "", *, failed: bool = False) -> Call:
    return Call("Bash", command, outcome, failed)


def lines_of(*turns: ExtractTurn, is_followed: bool = True) -> list[str]:
    """The lines of an extract without their anchors."""
    made = make_extract(turns, redact, is_followed=is_followed)
    assert all(is_unedited(line) for line in made.lines)
    assert len(made.lines) <= MOST_LINES
    return [line.partition(" <!--")[0].removeprefix("- ") for line in made.lines]


def test_files_come_with_the_most_edited_first() -> None:
    one = turn("x", "", Call("Edit", "a.py", "", False), Call("Read", "c.py", "", False))
    two = turn(
        "y", "", Call("Edit", "b.py", "", False), Call("Write", "b.py", "", False),
        Call("Edit", "d.py", "String to replace not found", True), Call("Edit", "e.py", "no result", False),
        name="t2",
    )  # fmt: skip
    assert lines_of(one, two) == ["Edited: b.py ×2, a.py"]
    refused = "The user doesn't want to proceed with this tool use."
    calls = [bash("ls /none", "ls: no such file", failed=True), bash("rm -r build", refused, failed=True)]
    calls += [bash("memkit search port", "[from the memory]", failed=True)] * 2
    assert lines_of(turn("x", "", *calls)) == []
    praise = "🎉 **SUCCESS! All 12 tests pass!** 🚀\n\nPerfect! Everything is production ready."
    assert lines_of(turn("Run the tests", praise), is_followed=False) == []


def test_a_failed_command_says_what_followed() -> None:
    fail = "Traceback\nE   assert 1 == 2\nFAILED test_a.py"
    passed = lines_of(turn("x", "", bash("pytest -q", fail, failed=True), bash("cd /x && pytest -q", "3 passed")))
    assert passed == ["Failed: `pytest -q`: E assert 1 == 2; then it passed"]
    again = [bash("make", "make: *** [all] Error 2", failed=True)] * 2
    assert lines_of(turn("x", "", *again)) == ["Failed: `make` 2 times: make: *** [all] Error 2; still failing"]
    assert lines_of(turn("x", "", again[0])) == ["Failed: `make`: make: *** [all] Error 2; not run again"]
    # The exit code of a pipe is that of its end, so only its words count.
    piped = [bash("pytest -q", fail, failed=True), bash("pytest -q 2>&1 | tail -1", "2 passed")]
    assert lines_of(turn("x", "", *piped))[0].endswith("; later it said: 2 passed")
    counted = [bash("npm t | tail -1", "1 failed, 2 passed"), bash("npm t | tail -1", "3 passed, 0 failed")]
    assert lines_of(turn("x", "", *counted)) == ["Failed: `npm t`: 1 failed, 2 passed; later it said: 3 passed, 0 failed"]
    assert lines_of(turn("x", "", bash("git log -1", "Fix 3 errors"))) == []
    hooks = [bash('git commit -m "A"', "error: lint", failed=True), bash('git commit --no-verify -m "A"', "")]
    assert lines_of(turn("x", "", *hooks)) == [
        'Failed: `git commit -m "A"`: error: lint; then `git commit --no-verify -m "A"` passed',
        "Committed: A",
    ]


@pytest.mark.parametrize(("command", "outcome", "line"), [
    ('git add . && git commit -m "Move the port\n\nMore."', "", "Committed: Move the port"),
    ("git commit -am 'Move it'", "[main 77c1e09] Move it\n 1 file changed", "Committed: Move it"),
    ("git commit -m \"$(cat <<'EOF'\nMove the port\n\nWhy.\nEOF\n)\"", "", "Committed: Move the port"),
    ("git -C /x commit --amend --no-edit", "[main 77c1e09] Old words", "Committed: Old words"),
    (
        'gh pr create --title "Move it" --body "x"', "https://github.com/a/b/pull/17",
        "Pull request: Move it https://github.com/a/b/pull/17",
    ),
    ("gh pr merge 17 --squash", "", "Pull request: 17 merged"),
    ('git commit -m "A"', "nothing to commit, working tree clean", ""),
    ("cat > run.sh <<'EOF'\ngit commit -m 'In a script'\nEOF", "", ""),
    ("rtk git add . && git commit -m x", "[a/b 77c1e09] Move it …", "Committed: Move it …"),
    ('git commit -m "Say \\"no\\""', "", 'Committed: Say "no"'),
    ("git commit -m \"$(cat <<'EOF'", "", ""),
    ("git log --grep commit -m", "", ""),
    ("echo git commit -m 'x'", "", ""),
])  # fmt: skip
def test_commits_and_pull_requests(command: str, outcome: str, line: str) -> None:
    assert lines_of(turn("x", "", bash(command, outcome))) == [line] * bool(line)


def test_wording_of_decisions() -> None:
    for sentence in (
        "Let's use 7443 instead of 443.", "We decided to keep the old format.", "Go with SQLite for now.",
        "From now on every change needs a test.", "Can you use httpx instead of requests?", "Use bun for everything.",
        "Wir nehmen Postgres.", "On garde le port 443.", "Vamos con SQLite.",
    ):  # fmt: skip
        assert decisions(f"Hm, there is a gateway problem. {sentence} It has to be quick.") == [sentence]
    for sentence in (
        "It returns null instead of the list.", "Should we go with SQLite?", "I'm not sure if we should switch to Postgres.",
        "What happens if we use SQLite instead of Postgres?", "```\nlet's use it in code\n```",
        "> let's use a quotation here", "Let's keep going after our goals.", "Please run the tests of the gateway.",
    ):  # fmt: skip
        assert decisions(sentence) == []


def test_an_accepted_proposal_is_a_decision_of_two_turns() -> None:
    answer = "Both work. I suggest to move the **staging** gateway to 7443. 🎯 Shall I do that?"
    before = turn("Which port for it?", answer, name="t1")
    made = make_extract([before, turn("Yes, please.", "Done.", name="t2")], redact, is_followed=True)
    (line,) = made.lines
    assert line.startswith("- Decided: Move the staging gateway to 7443. <!--")
    assert " turns:t1,t2 " in line
    assert lines_of(before, turn("Yes, but first explain the port.", name="t2")) == []
    assert accepts("ok, go ahead!")
    assert not accepts("yes " * 500)


@pytest.mark.parametrize("part", [" | tail -5 2>&1", " | tail", " 2>&1", " 2>/dev/null | grep x"])
def test_a_command_with_many_filters_takes_linear_time(part: str) -> None:
    filtered = bash("make" + part * 40, "Error 2", failed=True)
    assert lines_of(turn("Build it.", "", filtered)) == ["Failed: `make`: Error 2; not run again"]
    piped = bash("make" + part * 40 + " | sh", "Error 2", failed=True)
    (line,) = lines_of(turn("Build it.", "", piped))
    assert line.startswith("Failed: `make") and "…" in line


def test_the_last_question_is_open_unless_others_follow() -> None:
    asks = turn("Move the gateway", "Staging is done. Should the production gateway move, too?")
    assert lines_of(asks, is_followed=False) == ["Open: Should the production gateway move, too?"]
    assert lines_of(asks, is_followed=True) == []
    assert lines_of(turn("Why is the port taken?"), is_followed=False) == ["Open: Why is the port taken?"]
    assert last_question("It is done. Is there anything else I can help with?") == ""
    assert last_question("Why is the port taken? Because nginx has it. I moved nginx. It works. Tests pass. OK now it runs.") == ""


@pytest.mark.parametrize(("answer", "left"), [
    ("Done in a.py.\n\n**Still open:** the alerts of staging.", "the alerts of staging."),
    ("All pass. Not done yet: the old rows.", "the old rows."), ("Flag added.\n\nTODO: document the flag", "document the flag"),
    ("Next steps:\n1. Rotate the key.\n2. Tell Anna.", "Rotate the key."), ("- Open: the port of production", "the port of production"),
    ("It works. The support of YAML anchors remains.", "The support of YAML anchors remains."),
    ("Done. The retry is not tested yet.", "The retry is not tested yet."), ("Left to do\n- [ ] Rotate the key", "Rotate the key"),
    ("No linting issues remain.", ""), ("Nothing is left to do.", ""), ("Still open: nothing.", ""), ("The remaining files are local.", ""),
    ("Next step: rotate the key. I did it. It took a minute. All runs. Anna knows. The key is new. It is safe. Bye.", ""),
])  # fmt: skip
def test_what_an_answer_leaves_to_do_is_open(answer: str, left: str) -> None:
    assert lines_of(turn("Do it", answer), is_followed=False) == [f"Open: {left}"] * bool(left)
    assert lines_of(turn("Do it", answer), turn("Do that, too", "Done."), is_followed=False) == []
    assert lines_of(turn("Open: who has the key", "Noted."), is_followed=False) == ["Open: who has the key"]


def test_what_the_user_plans_to_do_is_open() -> None:
    before = turn("Deploy", "It failed.")
    for said in ("I'll ask Jonas who uses it.", "leave it, I’ll look with Priya on Monday", "Ich frage Jonas."):
        assert lines_of(before, turn(said, "All right."), is_followed=False) == [f"Open: {said}"]
        assert lines_of(before, turn(said, "All right."), is_followed=True) == []
    for said in ("I'll ask again?", "fix it", "I look at the logs", "I will not ask Jonas", "they'll look at it"):
        assert plan(said) == ""


def test_a_title_that_says_nothing_is_replaced() -> None:
    for title in (
        "yes.", "go on", "ok, continue please", "/compact", "1", "(no text)", "[Image #1]", "ja bitte", "👍",
        "Traceback (most recent call last):", "2026-11-20 14:02:11 INFO started", "npm ERR! code 1",
    ):  # fmt: skip
        assert says_nothing(title)
        turns = [turn(said, title=said) for said in (title, "sure", "Move the gateway", "Next one")]
        assert make_extract(turns, redact, is_followed=True).title == "Move the gateway"
    for title in ("deploy", "Fix the tests", "修复网关的端口", "why is CI red?", "Rebase on main"):
        turns = [turn(said, title=said) for said in (title, "Move the gateway")]
        assert make_extract(turns, redact, is_followed=True).title == ""


@pytest.mark.parametrize(("branch", "calls", "title"), [
    ("a/gateway-port", [], "fix the tests (gateway-port)"),
    ("main", [], ""),
    ("a/gateway-port", [bash("git commit -m 'Move the gateway'", "[a 77c1e09] Raise its cache limit")], "Raise its cache limit"),
])  # fmt: skip
def test_a_title_without_a_subject_gets_one(branch: str, calls: list[Call], title: str) -> None:
    turns = [replace(turn("fix the tests", "", *calls, title="fix the tests"), branch=branch)]
    assert make_extract(turns, redact, is_followed=True).title == title


def test_a_line_rests_on_the_turns_that_it_names_only_and_hides_secrets() -> None:
    # Otherwise a file's name would outlive its forgotten turn.
    turns = [turn("x", "", Call("Edit", f"f{n}.py", "", False), name=f"t{n}") for n in range(MAX_TURNS + 3)]
    (line,) = make_extract(turns, redact, is_followed=True).lines
    assert f"and {MAX_TURNS - 6} more" in line
    assert line.count(",t") == MAX_TURNS - 1
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    calls = [bash(f"curl -H 'x: {key}' https://x.example", f"error: {key}", failed=True)] * 2
    made = make_extract([turn(f"Let's use {key} instead.", "", *calls)], redact, is_followed=True)
    assert made.lines
    assert not any(key in line for line in made.lines)
    assert any("[redacted:" in line for line in made.lines)


hostile = st.lists(
    st.sampled_from(
        ["Let's use ", "\n", "<!-- turn:x -->", "<!-- grip:a turns:b by:extract -->", "## ", "### x", "```", "`", "?", "—",
         "- ", "instead", "\r", "\x1b[31m", "<b>", "git commit -m \"", "|", "&&", " ", "a" * 90, "\u2028", "🎉", "**Did**"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(hostile, hostile, hostile, hostile)
def test_foreign_text_forges_no_structure(prompt: str, answer: str, command: str, outcome: str) -> None:
    calls = [bash(command, outcome, failed=True), bash(command, outcome), Call("Edit", outcome, "", False)]
    turns = [turn(prompt, answer, *calls), turn("yes", answer, *calls, name="t2")]
    made = make_extract(turns, redact, is_followed=False)
    for line in made.lines:
        assert "\n" not in line
        assert line.count("<!--") == 1
        assert re.search(r"<!-- grip:[0-9a-f]{8} turns:[t12,]+ by:extract -->$", line)
        assert is_unedited(line)
    assert make_extract(turns, redact, is_followed=False) == made


# What is written, and when


@pytest.fixture
def stage(tmp_path: Path) -> SummaryStage:
    return SummaryStage(tmp_path, provider="none")


def add(stage: SummaryStage, minutes: float, prompt: str, answer: str, *calls: ToolCall, **more: Any) -> None:
    stage.add_turn(minutes, prompt, answer, calls=calls, **more)



THANKS = ("Thanks", "You are welcome.")
"""A turn without calls: a single turn gets no extract."""


def edit(path: str) -> ToolCall:
    return ToolCall("Edit", {"file_path": path}, "done")


def shown(stage: SummaryStage) -> list[str]:
    return [line.partition(" <!--")[0] for line in stage.bullets]


def test_a_live_session_gets_extracts_when_it_ends_and_no_call_is_made(stage: SummaryStage) -> None:
    commit = ToolCall("Bash", {"command": 'git commit -m "Move the gateway\n\nto 7443"'}, "")
    path = f"{stage.project.root}/deploy/gateway.yaml"
    LiveSessions(stage.home).begin(SESSION, stage.project.root, 1)
    add(stage, 0, "yes.", "Done.", edit(path), edit(path), name="00000001")
    add(stage, 2, "Let's use 7443 for the gateway instead.", "Done.", commit, name="00000002")
    assert stage.run(10).extracts == 0  # more may come
    assert SummaryQueue(stage.home)
    LiveSessions(stage.home).end(SESSION)
    report = stage.run(11)
    assert (report.extracts, report.segments, report.calls) == (1, 0, 0)
    assert report.projects == {stage.project.root}
    assert shown(stage) == [
        "- Decided: Let's use 7443 for the gateway instead.", "- Edited: deploy/gateway.yaml ×2",
        "- Committed: Move the gateway",
    ]  # fmt: skip
    assert "## 09:00 Let's use 7443 for the gateway instead. <!-- session:fd0aee29 extract:00000002 title:" in stage.text
    before = stage.text
    assert not SummaryQueue(stage.home)
    assert stage.run(12).extracts == 0
    assert stage.text == before
    assert not stage.provider.tasks


def test_later_turns_of_a_session_get_an_extract_of_their_own(stage: SummaryStage) -> None:
    add(stage, 0, "Fix the tests", "Done.", edit("/a/one.py"), name="00000001")
    add(stage, 1, *THANKS, name="0000000f")
    assert stage.run(2).extracts == 1
    add(stage, 90, "Fix the docs", "Done.", edit("/a/two.md"), name="00000002")
    add(stage, 91, *THANKS, name="ffffffff")
    assert stage.run(92).extracts == 1
    assert shown(stage) == ["- Edited: /a/one.py", "- Edited: /a/two.md"]
    assert not SummaryQueue(stage.home)


def test_a_model_replaces_extracts_later(stage: SummaryStage) -> None:
    add(stage, 0, "yes.", "Done.", edit("/a/one.py"), name="00000001")
    add(stage, 1, "Fix the tests of the gateway", "Done.", edit("/a/one.py"), name="00000002")
    stage.run(2)
    assert "Fix the tests of the gateway <!-- session:" in stage.text
    stage.change(provider="anthropic")
    assert stage.run(3).segments == 0  # no one asked to spend on what has an extract
    candidates = stage.summarizer.select(stage.project, "2026-11-01")
    stage.provider.answer = bullet_for_each
    report = stage.run(4)
    stage.summarizer.summarize(candidates, report)
    assert report.segments == 1
    assert "by:extract" not in stage.text
    assert "extract:" not in stage.text


@pytest.mark.parametrize(("kind", "numbers", "stays"), [("finding", [2], True), ("open", [1], True), ("open", [2], False)])
def test_an_open_question_stays_until_a_bullet_takes_it_up(
    stage: SummaryStage, kind: str, numbers: list[int], stays: bool
) -> None:
    add(stage, 0, "Move the gateway", "Done.", name="00000001")
    add(stage, 1, "Check it", "It runs. Should the production gateway move, too?", name="00000002")
    stage.run(2)
    assert "- Open: Should the production gateway move, too? <!--" in stage.text
    stage.change(provider="anthropic")
    candidates = stage.summarizer.select(stage.project, "2026-11-01")
    stage.provider.answer = summary(bullet("Port 9999 may move to Zanzibar.", numbers, kind))
    stage.summarizer.summarize(candidates, stage.run(4))
    assert ("by:extract" in stage.text) is stays
    content = stage.journal.day("2026-11-20")
    heading, turns = next((heading, turns) for heading, turns in content.groups() if heading is not None)
    found = [text for _, text in open_lines(content, heading, turns)]
    said = "Port 9999 may move to Zanzibar. (unverified)"
    question = "Should the production gateway move, too?"
    assert found == [said] * (kind == "open") + [question] * stays


def test_imported_sessions_wait_for_the_command(stage: SummaryStage) -> None:
    add(stage, 0, "Fix the tests", "Done.", edit("/a/one.py"), name="00000001", is_live=False)
    add(stage, 1, *THANKS, is_live=False, name="ffffffff")
    report = stage.run(500)
    assert report.extracts == 0
    candidates = stage.summarizer.select(stage.project, "2026-11-01")
    stage.summarizer.extract(stage.project.root, candidates, report)
    stage.summarizer.extract(stage.project.root, candidates, report)
    assert report.extracts == 1
    assert shown(stage) == ["- Edited: /a/one.py"]


@pytest.mark.parametrize("settings", [{"mode": "off"}, {"provider": "anthropic", "wait_minutes": 1440.0}])
def test_no_extract_where_it_is_off_or_a_model_will_come(stage: SummaryStage, settings: dict[str, str]) -> None:
    stage.change(**settings)
    add(stage, 0, "Fix the tests", "Done.", edit("/a/one.py"), name="00000001")
    LiveSessions(stage.home).begin("other", stage.project.root, 1)
    assert stage.run(60).extracts == 0
    assert not stage.bullets


def test_the_archive_adds_what_the_digest_has_no_room_for(stage: SummaryStage) -> None:
    reads = [ToolCall("Read", {"file_path": f"/a/{n}.py"}, "x") for n in range(MAX_TOOLS)]
    add(stage, 0, "Fix the tests", "Done.", *reads, edit("/a/late.py"), name="00000001")
    add(stage, 1, *THANKS, name="ffffffff")
    stage.run(2)
    assert shown(stage) == ["- Edited: /a/late.py"]


def test_what_the_user_removed_from_a_day_does_not_come_back(stage: SummaryStage) -> None:
    calls = [edit("/a/one.py"), edit("/a/private.py")]
    add(stage, 0, "Let's use 7443 instead. Let's use it for Ann instead.", "Done.", *calls, name="00000001")
    add(stage, 1, *THANKS, name="ffffffff")
    path = stage.journal.path("2026-11-20")
    path.write_text(path.read_text().replace(" · Edit /a/private.py", "").replace(" Let's use it for Ann instead.", ""))
    stage.run(1)
    assert shown(stage) == ["- Decided: Let's use 7443 instead.", "- Edited: /a/one.py"]


def test_a_forgotten_line_stays_away(stage: SummaryStage) -> None:
    add(stage, 0, "Let's use 7443 instead.", "Done.", edit("/a/one.py"), name="00000001")
    add(stage, 1, *THANKS, name="ffffffff")
    stage.run(2)
    before = stage.text
    (grip,) = re.findall(r"Edited.* grip:(\w+)", before)
    Tombstones(stage.home).begin(Forgotten(grips=frozenset({grip})))
    path = stage.journal.path("2026-11-20")
    path.write_text(re.sub(r"\n- .*", "", before).replace(" extract:ffffffff", ""))
    SummaryQueue(stage.home).add(stage.project.root, SESSION, ["2026-11-20"], START.timestamp())
    assert stage.run(3).extracts == 1
    assert shown(stage) == ["- Decided: Let's use 7443 instead."]


def test_a_single_turn_says_it_itself(stage: SummaryStage) -> None:
    add(stage, 0, "Fix the tests", "Done.", edit("/a/one.py"), name="00000001")
    stage.run(1)
    assert not stage.bullets
    assert not SummaryQueue(stage.home)


def test_a_killed_writer_leaves_all_or_nothing(stage: SummaryStage, monkeypatch: pytest.MonkeyPatch) -> None:
    add(stage, 0, "Fix the tests", "Done.", edit("/a/one.py"), name="00000001")
    before = stage.text

    def killed(*arguments: object, **named: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("memkit.journal.journal.Journal.summarize", killed)
        with pytest.raises(KeyboardInterrupt):
            stage.run(1)
    assert stage.text == before
    assert SummaryQueue(stage.home)
    assert stage.run(2).extracts == 1
    assert not SummaryQueue(stage.home)
