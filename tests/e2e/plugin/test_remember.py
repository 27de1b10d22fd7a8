"""What a session leaves in the memory, and what the next one is told."""

from __future__ import annotations

import re
import stat
import threading
from datetime import date
from pathlib import Path

import pytest

from memkit.paths import MEMORY_DIRECTORY, OPENCLAW_DAYS
from tests.e2e.plugin.user import MemkitUser, answers_so_far
from tests.e2e.waiting import wait_until
from tests.messages_api import Conversation, MessagesApi, Reply, Request, text, tool

FACT = "The staging gateway listens on 7443, because the ingress has 443."


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def private_tree(directory: Path) -> dict[str, str]:
    """What below `directory` others may look at: nothing, hopefully."""
    return {
        str(path.relative_to(directory)): oct(mode(path))
        for path in directory.rglob("*")
        if not path.is_symlink() and mode(path) & 0o077
    }


@pytest.mark.essential
def test_session_becomes_memory(api: MessagesApi, user: MemkitUser) -> None:
    project = user.home.project
    (project / "gateway.yaml").write_text("port: 443\n")
    edit = {"file_path": str(project / "gateway.yaml"), "old_string": "443", "new_string": "7443"}
    api.script = Conversation(
        {
            "staging gateway": [
                [text("Let me look."), tool("Bash", command="cat gateway.yaml", description="Show")],
                [tool("Read", file_path=str(project / "gateway.yaml"))],
                [tool("Edit", **edit)],
                [tool("Write", file_path=str(project / "notes.md"), content="Ports\n")],
                [text(FACT)],
            ]
        }
    )

    result = user.home.run_prompt(
        "Which port should the staging gateway use?", "--allowedTools", "Bash,Edit,Write"
    )
    user.wait_until_remembered()

    assert (project / "gateway.yaml").read_text() == "port: 7443\n"
    (day,) = (project / MEMORY_DIRECTORY).iterdir()
    session = result["session_id"]
    found = re.fullmatch(
        rf"""# {day.stem}

- (\d\d:\d\d) \[Which port should the staging gateway use\?\]\(#\d{{4}}-which-port-should-the-staging-gateway-use\) · 1 turn → {FACT} <!-- overview:[0-9a-f]{{8}} turns:[0-9a-f]{{8}} -->

## \1 Which port should the staging gateway use\? <!-- session:{session}(?: extract:[0-9a-f]{{8}})? turn:([0-9a-f]{{8}}) -->
\*\*Did\*\* Bash `cat gateway.yaml` → port: 443 · Edit gateway.yaml · Write notes.md

\*\*Answered\*\* {FACT}
""",
        day.read_text(),
    )
    assert found, day.read_text()
    assert (project / ".memkit" / ".gitignore").read_text() == "*\n!/team/\n!/team/**\n"
    assert mode(project / ".memkit") == mode(user.home.memkit_home) == 0o700
    assert private_tree(project / ".memkit") == private_tree(user.home.memkit_home) == {}
    assert [*user.home.memkit_home.glob("spool/*/*")] == []
    (hit,) = user.search("Which port does the staging gateway use?")
    assert FACT in hit["content"]
    assert (hit["session"], hit["turns"]) == (session, [found[2]])
    assert FACT in user.run("search", "staging gateway port")
    user.wait_until_alone()


@pytest.mark.essential
def test_next_session_is_told(api: MessagesApi, user: MemkitUser) -> None:
    api.script = Conversation({"gateway": [[text(FACT)]]})
    user.run("config", "set", "recall.session_start", "both")
    user.home.run_prompt("Which port should the gateway use?")
    user.wait_until_remembered()
    assert "it is empty so far" in api.model_calls[0].system

    user.home.run_prompt("Hello.")
    (call,) = [call for call in api.model_calls if "Hello." in call.last_user_text]
    assert f"Which port should the gateway use? -> {FACT}" in call.system
    assert "memkit holds what was said" not in call.text


def test_prompt_hint_once_there_is_history(api: MessagesApi, user: MemkitUser) -> None:
    day = user.plant_yesterday("Ports are given out by the platform team.")
    user.run("config", "set", "service.enabled", "false")  # it might be ready for the prompt
    user.home.run_prompt("Hello.")
    (call,) = api.model_calls
    assert f"since {day}" in call.system
    assert f"memkit holds what was said and done in this project since {day}" in call.system


def test_subagent_belongs_to_the_turn_that_started_it(api: MessagesApi, user: MemkitUser) -> None:
    (user.home.project / "gateway.yaml").write_text("port: 7443\n")
    ask = {"description": "Find the port", "subagent_type": "general-purpose"}
    look = tool("Bash", command="cat gateway.yaml", description="Show")

    def script(request: Request) -> Reply:
        answered = answers_so_far(request)
        if request.from_subagent:
            return [text("The file says 7443.")] if answered else [look]
        if answered:
            return [text(FACT)]
        name = "Agent" if "Agent" in request.tool_names else "Task"
        return [tool(name, prompt="Find the gateway's port.", run_in_background=False, **ask)]

    api.script = script
    user.home.run_prompt("Which port is it?", "--allowedTools", "Bash,Agent,Task")
    user.wait_until_remembered()

    assert user.prompts() == ["Which port is it?"]
    assert "↳ Bash `cat gateway.yaml` → port: 7443" in user.memory()
    assert "`Find the port` → The file says 7443." in user.memory(), user.memory()
    assert f"**Answered** {FACT}" in user.memory()


@pytest.mark.essential
def test_interactive_session(api: MessagesApi, user: MemkitUser) -> None:
    answers = {"first": [[text("One.")]], "second": [[text("Two.")]]}
    api.script = Conversation(answers, otherwise="Understood.")
    with user.home.start_interactive() as session:
        user.ask(session, "The first question", "One.")
        for command in ("echo one", "echo two"):
            session.press("!")
            user.ask(session, command, "Understood.")
            session.press("C-l")
        user.ask(session, "The second question", "Two.")
        session.exit()
    user.wait_until_remembered()
    assert user.prompts() == ["The first question", "! echo one", "! echo two", "The second question"]
    for answer in ("One.", "Two."):
        assert f"**Answered** {answer}" in user.memory()
        assert user.search(answer)
    assert "· 4 turns" in user.memory()
    memory = user.memory()
    user.run("import")
    # The service may have noted meanwhile that the session has ended.
    assert re.sub(r" extract:\w+", "", user.memory()) == re.sub(r" extract:\w+", "", memory)
    assert user.memory().count(f"session:{session.session_id}") == 1
    user.wait_until_alone()


def test_an_interrupted_turn_and_a_prompt_typed_while_one_runs(api: MessagesApi, user: MemkitUser) -> None:
    waiting = "import time; time.sleep(600)"
    wait = tool("Bash", command=f"python3 -c '{waiting}'", description="Wait")
    api.script = Conversation({"Wait": [[text("Waiting."), wait]], "instead": [[text("Done.")]]})
    released = threading.Event()

    def script(request: Request) -> Reply:
        if "And then the second" in request.text:
            return [text("The second is done.")]
        if request.messages[-1]["role"] == "user" and "looked" in request.last_user_text:
            return [text("The first is done.")]
        released.wait(timeout=60)
        return [tool("Bash", command="echo looked", description="Look")]

    with user.home.start_interactive("--allowedTools", "Bash") as session:
        session.submit("Wait for the deployment")
        wait_until(lambda: [p for p in user.home.processes() if waiting in p.command])
        session.press("Escape")
        session.wait_for("Interrupted")
        user.ask(session, "Look at the log instead", "Done.")
        api.script = script
        session.submit("Do the first thing")
        api.wait_for(lambda request: "Do the first thing" in request.last_user_text)
        session.submit("And then the second")
        wait_until(lambda: user.transcripts_hold("And then the second"))
        released.set()
        session.wait_for("The second is done.")
        session.exit()
    user.wait_until_remembered()
    memory = user.memory()
    assert user.prompts()[:2] == ["Wait for the deployment", "Look at the log instead"]
    assert "Bash `python3 -c" in memory
    assert "[Request interrupted" not in memory
    # Whether the second prompt joins the running turn or begins its own is the client's choice.
    for line in ("Do the first thing", "And then the second", "The second is done."):
        assert len(re.findall(rf"^(?:\*\*\w+\*\* )?{line}$", memory, re.M)) == 1, memory


def test_clear_and_compact(api: MessagesApi, user: MemkitUser) -> None:
    topics = ("one", "two", "three", "four")
    answers = {f"Topic {topic}": [[text(f"Answer {topic}.")]] for topic in topics}
    api.script = Conversation(answers, otherwise="<summary>They talked.</summary>")
    with user.home.start_interactive() as session:
        for topic in ("one", "two"):  # older clients compact no less
            user.ask(session, f"Topic {topic}", f"Answer {topic}.")
        session.submit("/compact")
        session.wait_for("Compacted")
        user.ask(session, "Topic three", "Answer three.")
        session.submit("/clear")
        wait_until(lambda: "Answer three." not in session.screen)
        user.ask(session, "Topic four", "Answer four.")
        session.exit()
    user.wait_until_remembered()
    # What a hook prints before the compaction would be an instruction for the summary.
    compaction = next(r for r in api.requests if "detailed summary" in r.last_user_text)
    assert "Additional Instructions:" not in compaction.last_user_text
    prompts = user.prompts()
    prompts.remove("Claude Code's own summary of the session so far")
    assert prompts == [f"Topic {topic}" for topic in topics]
    memory = user.memory()
    assert [memory.count(f"**Answered** Answer {topic}.") for topic in topics] == [1] * 4
    assert len(re.findall("session:", memory)) == 2
    assert memory.count("They talked") == 1  # the summary, which is kept with the session
    for injected in ("/compact", "/clear", "This session is being continued"):
        assert injected not in memory


def test_new_days_can_go_to_openclaws_folder(api: MessagesApi, user: MemkitUser) -> None:
    """A session becomes sections of the file that OpenClaw writes, too. The next session is told so."""
    api.script = Conversation({"staging gateway": [[text(FACT)]], "Anything else": [[text("No.")]]})
    folder = user.home.project / OPENCLAW_DAYS
    folder.mkdir()
    theirs = f"# {date.today()}\n\n- A line of OpenClaw.\n"
    (folder / f"{date.today()}.md").write_text(theirs)
    user.run("projects", "folder", OPENCLAW_DAYS)

    result = user.home.run_prompt("Which port should the staging gateway use?")
    user.wait_until_remembered()
    (day,) = folder.glob("*.md")
    with day.open("a") as file:
        file.write("\n- A later line of OpenClaw.\n")
    user.home.run_prompt("Anything else?")
    user.wait_until_remembered()

    written = day.read_text()
    assert written.startswith(theirs) and written.endswith("\n- A later line of OpenClaw.\n")
    assert written.count(f"session:{result['session_id']}") == 1 and written.count("turn:") == 2
    assert not [*(user.home.project / MEMORY_DIRECTORY).glob("*.md")]
    (hit,) = user.search("Which port does the staging gateway use?")
    assert hit["source"] == f"{OPENCLAW_DAYS}/{day.name}"
    told = "\n".join(str(request.body) for request in api.requests)
    assert "memkit remembers what was tried" in told and "later line of OpenClaw" not in told


@pytest.mark.essential
def test_the_skill_permits_one_note_and_nothing_else(api: MessagesApi, user: MemkitUser) -> None:
    """Also not for a user who runs it in a repository that would like to write elsewhere."""
    other = user.home.project.parent / "other"
    other.mkdir()
    allowed = ["memkit remember 'Alex'\\''s gateway: \"7443\" & more.'"]
    refused = [
        f"memkit remember --project {other} 'x'", f"memkit remember --project={other} 'x'",
        f"memkit remember 'x' --project '{other}'", "memkit remember --user 'x'",
        "memkit remember 'x' --user", "memkit remember 'x' --tag 'y'",
        f"MEMKIT_HOME={other} memkit remember 'x'", "CLAUDECODE= memkit remember 'x'",
        "memkit remember 'x' && memkit remember 'y'", "memkit remember 'x' > 'y'",
        f"cd {other} && memkit remember 'x'",
    ]  # fmt: skip
    commands = [*allowed, *refused]
    shown: list[str] = []

    def script(request: Request) -> Reply:
        step = answers_so_far(request)
        shown.append(request.last_user_text)
        return [tool("Bash", command=commands[step])] if step < len(commands) else [text("Noted.")]

    api.script = script
    result = user.home.run_prompt("/memkit:remember the port")
    assert [one["tool_input"]["command"] for one in result["permission_denials"]] == refused
    user.wait_until_remembered()
    assert "Alex's gateway" in user.memory()
    # The same, where the user themselves allows all of memkit: it refuses what leaves the project.
    commands = refused[:5]
    shown.clear()
    user.home.run_prompt("/memkit:remember the port", "--permission-mode", "bypassPermissions")
    assert sum("can use only its own project's memory" in one for one in shown) == len(commands)
    assert not list(other.rglob("*.md"))
    assert not list(user.home.memkit_home.glob("memory/*.md"))
