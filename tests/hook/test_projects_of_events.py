"""To which project an event belongs, and what was checked out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from memkit.capture.capture import Capture, project_of_event
from memkit.paths import Home
from memkit.projects.git_files import head
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.builders import Lines
from tests.hook.conftest import Stage

SCRIPTS = {"session_start": "SessionStart", "prompt_submit": "UserPromptSubmit", "stop": "Stop"}


def test_a_session_in_the_user_s_home_writes_nothing_there(stage: Stage) -> None:
    user = stage.root / "user"
    user.mkdir()
    transcript = Path(stage.event("Stop")["transcript_path"])
    transcript.write_text(Lines().prompt("Hello?", "p").answer("Hi.").text)
    for script, name in SCRIPTS.items():
        event = stage.event(name, cwd=str(user), prompt="Hello?", prompt_id="p", last_assistant_message="Hi.")
        assert stage.run(script, event, environment={"HOME": str(user)}).status == 0
    records = stage.spooled()
    (kept,) = {record["project"] for record in records}
    assert Path(kept).parent == stage.home / "projects"
    home = Home(str(stage.home))
    assert [record["event"] for record in records] == ["SessionStart", "Stop"]
    for record in records:
        Capture(home, Settings()).handle(record, project_of_event(record, home), record["time"] + 60)
    assert "**Answered** Hi." in next(Path(Project(kept).memory).glob("*.md")).read_text()
    assert list(user.iterdir()) == []
    assert stage.errors() == ""


def test_a_linked_directory_s_events_go_to_the_other(stage: Stage) -> None:
    projects = stage.home / "projects"
    projects.mkdir(parents=True)
    other = stage.root / "other"
    other.mkdir()
    registry = {"version": 1, "links": {str(stage.project): str(other)}, "names": {}, "moves": {}}
    (projects / "registry.json").write_text(json.dumps(registry))
    stage.run("stop", stage.event("Stop", last_assistant_message="Hi."))
    (record,) = stage.spooled()
    assert (record["project"], record["cwd"]) == (str(other), str(stage.project))


def test_what_was_checked_out_when_a_turn_ended(stage: Stage) -> None:
    git = ["git", "-C", str(stage.project), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    stage.run("session_start", stage.event("SessionStart"))
    stage.run("stop", stage.event("Stop", last_assistant_message="Hi.", prompt_id="p"))
    by_event = {record["event"]: record for record in stage.spooled()}
    assert "commit" not in by_event["SessionStart"]
    assert by_event["Stop"]["commit"] == head(str(stage.project)).commit
    assert len(by_event["Stop"]["commit"]) == 12
