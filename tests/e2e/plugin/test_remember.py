"""What a session leaves in the memory, and what the next one is told."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

from memkit.paths import MEMORY_DIRECTORY

from ..messages_api import Conversation, Failure, MessagesApi, text, tool
from ..waiting import wait_until
from .user import MemkitUser

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

## (\d\d:\d\d) Which port should the staging gateway use\? <!-- session:{session} -->

### \1 Which port should the staging gateway use\? <!-- turn:([0-9a-f]{{8}}) -->
\*\*Asked\*\* Which port should the staging gateway use\?
\*\*Did\*\* Bash `cat gateway.yaml` → port: 443 · Read gateway.yaml · Edit gateway.yaml · Write notes.md
\*\*Answered\*\* {FACT}
""",
        day.read_text(),
    )
    assert found, day.read_text()
    assert (project / ".memkit" / ".gitignore").read_text() == "*\n"
    assert mode(project / ".memkit") == mode(user.home.memkit_home) == 0o700
    assert private_tree(project / ".memkit") == private_tree(user.home.memkit_home) == {}
    assert [*user.home.memkit_home.glob("spool/*/*")] == []
    (hit,) = user.search("Which port does the staging gateway use?")
    assert FACT in hit["content"]
    assert (hit["session"], hit["turns"]) == (session, [found[2]])
    assert FACT in user.run("search", "staging gateway port")
    assert user.home.processes() == []


def test_next_session_is_told(api: MessagesApi, user: MemkitUser) -> None:
    api.script = Conversation({"gateway": [[text(FACT)]]})
    user.home.run_prompt("Which port should the gateway use?")
    user.wait_until_remembered()
    assert "it is empty so far" in api.model_calls[0].system

    user.home.run_prompt("Hello.")
    (call,) = [call for call in api.model_calls if "Hello." in call.last_user_text]
    assert f"Which port should the gateway use? -> {FACT}" in call.system
    assert "memkit holds what was said" not in call.text


def test_prompt_hint_once_there_is_history(api: MessagesApi, user: MemkitUser) -> None:
    day = user.plant_yesterday("Ports are given out by the platform team.")
    user.home.run_prompt("Hello.")
    (call,) = api.model_calls
    assert "-> Ports are given out by the platform team." in call.system
    assert f"memkit holds what was said and done in this project since {day}" in call.system
