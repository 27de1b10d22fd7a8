"""Pointers at the moment of action, in the requests of the real client to the model."""

from __future__ import annotations

import json

import pytest

from memkit.hook.entries import note_own
from memkit.journal.extracts import extract_line
from memkit.paths import MEMORY_DIRECTORY, Home
from tests.e2e.plugin.user import MemkitUser, answers_so_far
from tests.e2e.waiting import wait_until
from tests.messages_api import Block, MessagesApi, Reply, Request, text, tool

ERROR = "ValueError: the ledger has no column named region"
FAILING = "python3 -c 'raise ValueError(\"the ledger has no column named region\")'"
DAY = f"""# 2026-01-05

## 09:00 Ledger <!-- session:0d9b6f1e-3c55-4a43-9d35-51a4e7a2f8c6 extract:5eed0001 -->

{extract_line("Decided: the gateway waits 600 s, not 300 s.", ["5eed0001"])}

### 09:00 Please fix the report <!-- turn:5eed0001 -->
**Did**

- Bash `{FAILING}` → failed: {ERROR}
- Bash `bin/migrate --region` → 1 column added
- Edit gateway.yaml
- Bash `{FAILING}` → 3 rows

**Answered** The report failed because the ledger table had no column region; a migration adds it now.
"""


def prepare(user: MemkitUser) -> None:
    """Let the project remember that day, and a live service hold it."""
    # These tests stop it themselves; on a busy machine it would exit between two steps.
    (user.home.memkit_home / "config.toml").write_text("[service]\nidle_minutes = 10\n")
    directory = user.home.project / MEMORY_DIRECTORY
    directory.mkdir(parents=True)
    (directory / "2026-01-05.md").write_text(DAY)
    note_own(Home(str(user.home.memkit_home)), str(user.home.project), "", DAY)
    (user.home.project / "gateway.yaml").write_text("wait: 600\n")


def warm(user: MemkitUser) -> None:
    user.run("service", "start")
    wait_until(lambda: user.search("the ledger report") and user.service().get("projects"), 120, user.complaint)


def session(api: MessagesApi, user: MemkitUser, steps: list[Block]) -> list[Request]:
    """A session in which the model makes these calls one by one; what it was asked."""
    before = len(api.model_calls)

    def script(request: Request) -> Reply:
        step = answers_so_far(request)
        if request.from_subagent:
            return [text("Found it.")]
        return [steps[step]] if step < len(steps) else [text("Done.")]

    api.script = script
    warm(user)
    user.home.run_prompt("Go on please.", "--allowedTools", "Bash Edit Read Agent")
    return api.model_calls[before:]


@pytest.mark.essential
def test_pointers_after_a_failure_and_before_an_edit(api: MessagesApi, user: MemkitUser) -> None:
    prepare(user)
    fail = tool("Bash", command=FAILING, description="Report")
    edited = user.home.project / "gateway.yaml"
    path = str(edited)
    steps = [
        fail, tool("Bash", command=FAILING, description="Report"), tool("Read", file_path=path),
        tool("Edit", file_path=path, old_string="600", new_string="700"),
        tool("Edit", file_path=path, old_string="700", new_string="800"),
    ]  # fmt: skip

    def told() -> bool:
        edited.write_text("wait: 600\n")
        calls = [call.text for call in session(api, user, steps)]
        failures = [call.count("it passed after `bin/migrate --region`, then Edit gateway.yaml") for call in calls]
        edits = [call.count("“Decided: the gateway waits 600 s") for call in calls]
        assert max(failures + edits) <= 1  # never twice in a session
        return (failures, edits) == ([0, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 1])

    # A busy machine may be later than the deadline of a hook; then the next moment shows it, or none does.
    wait_until(told, 120, user.complaint)
    assert edited.read_text() != "wait: 600\n"  # it was allowed as before
    kinds = json.loads(user.run("status", "--json"))["pointers"]["kinds"]
    assert {"failure", "edit"} <= set(kinds)
    user.run("service", "stop")


def test_a_sub_agent_gets_the_guide_and_pointers_for_its_task(api: MessagesApi, user: MemkitUser) -> None:
    prepare(user)
    task = "Find out why the ledger report failed with no column named region."
    agent = tool("Agent", description="Look", prompt=task, subagent_type="general-purpose", run_in_background=False)

    def told() -> list[Request] | None:
        calls = session(api, user, [agent])
        agents = [call for call in calls if call.from_subagent]
        return calls if any("Earlier work on this, quoted:\n- 2026-01-05" in call.text for call in agents) else None

    calls = wait_until(told, 120, user.complaint)
    (first, *_) = [call for call in calls if call.from_subagent]
    assert "`memkit search WORDS` lists entries on a subject or an error" in first.text
    others = [call for call in calls if not call.from_subagent]
    assert not any("lists entries on a subject or an error" in call.text for call in others)
    user.wait_until_remembered()
    assert "Found it." in user.memory()  # with the turn that started it
    user.run("service", "stop")


def test_each_kind_can_be_turned_off(api: MessagesApi, user: MemkitUser) -> None:
    prepare(user)
    for name in ("on_failure", "on_edit", "on_agent"):
        user.run("config", "set", f"recall.{name}", "false")
    user.run("config", "set", "recall.session_start", "off")
    path = str(user.home.project / "gateway.yaml")
    agent = tool("Agent", description="Look", prompt="the ledger report", subagent_type="general-purpose", run_in_background=False)
    steps = [
        tool("Bash", command=FAILING, description="Report"),
        tool("Read", file_path=path),
        tool("Edit", file_path=path, old_string="600", new_string="700"),
        agent,
    ]
    calls = session(api, user, steps)
    assert any(call.from_subagent for call in calls)
    assert not any("Earlier work" in call.text or "memkit keeps a memory" in call.text for call in calls)
    user.run("service", "stop")
