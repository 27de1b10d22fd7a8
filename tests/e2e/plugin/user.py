"""A user of the real client who has memkit, and what can be seen of their memory."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from memkit import paths
from memkit.environment import environment_directory
from memkit.files import PRIVATE_DIRECTORY, PRIVATE_FILE
from memkit.hook.entries import note_own
from memkit.ipc.launch import waiting_names
from tests.builders import entries
from tests.e2e.client import REPOSITORY, ClaudeHome, read_transcript
from tests.e2e.terminal import InteractiveSession
from tests.e2e.waiting import wait_until
from tests.messages_api import Request

REMEMBERED_SECONDS = 120.0
"""How long a worker may take on a busy machine."""


class MemkitUser:
    """A user whose client loads the plugin from `plugin` and whose memkit runs in this Python.

    `home` is the user; everything that takes a `project` means `home.project` if there is none.
    """

    def __init__(self, home: ClaudeHome, plugin: Path, models: Path) -> None:
        self.home = home
        self.plugin = plugin
        home.plugins = [plugin]
        home.memkit_home.mkdir(mode=PRIVATE_DIRECTORY)
        # Not variables: in a session they could be a repository's, so memkit heeds none.
        settings = home.memkit_home / "config.toml"
        settings.touch(PRIVATE_FILE)
        settings.write_text("[service]\nidle_minutes = 0.02\n")
        (home.memkit_home / "models").symlink_to(models)
        self.link_environment()

    def link_environment(self) -> None:
        """Let the environment of these tests be the one that memkit made; remove the link to undo it."""
        self.environment.parent.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
        self.environment.symlink_to(sys.prefix)

    @property
    def environment(self) -> Path:
        """Where memkit's own Python environment belongs."""
        return Path(environment_directory(str(self.home.memkit_home), str(self.plugin)))

    def run(self, *arguments: str, project: Path | None = None, given: str = "") -> str:
        """What `memkit …` prints in a terminal, with `given` on stdin. Raises `AssertionError` if it fails."""
        done = subprocess.run(
            [self.plugin / "bin" / "memkit", *arguments], cwd=project or self.home.project,
            env=self.home.environment, input=given, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"memkit {' '.join(arguments)} failed:\n{done.stderr}"
        return done.stdout

    def service(self) -> dict[str, Any]:
        """What the service says of itself; without `pid` if there is none."""
        status: dict[str, Any] = json.loads(self.run("service", "status", "--json"))
        return status

    def wait_until_alone(self) -> None:
        """Wait until the service has ended, its idle time being short, and no process is left."""
        wait_until(lambda: not self.home.processes(), REMEMBERED_SECONDS, self.complaint)

    def search(self, query: str, project: Path | None = None) -> list[dict[str, Any]]:
        """The results of `memkit search`, best first."""
        results: list[dict[str, Any]]
        results = json.loads(self.run("search", "--json", query, project=project))["results"]
        return results

    def memory(self, project: Path | None = None) -> str:
        """All day files of the project, oldest first."""
        directory = (project or self.home.project) / paths.MEMORY_DIRECTORY
        return "".join(file.read_text() for file in sorted(directory.glob("*.md")))

    def prompts(self, project: Path | None = None) -> list[str]:
        """The remembered prompts, as the headings of the turns show them, in order."""
        memory = entries(self.memory(project))
        return re.findall(r"^### \d\d:\d\d (.*) <!-- turn:\w+(?: branch:\S+)? -->$", memory, re.M)

    def plant_yesterday(self, answer: str) -> date:
        """Let the project have a turn of yesterday that this home remembered, with this answer; the day."""
        day = date.today() - timedelta(days=1)
        directory = self.home.project / paths.MEMORY_DIRECTORY
        directory.mkdir(parents=True)
        text = (
            f"# {day}\n\n"
            "## 09:15 Earlier work <!-- session:0d9b6f1e-3c55-4a43-9d35-51a4e7a2f8c6 -->\n\n"
            "### 09:15 What did we settle on? <!-- turn:5eed5eed -->\n"
            f"**Asked** What did we settle on?\n**Answered** {answer}\n"
        )
        note_own(paths.Home(str(self.home.memkit_home)), str(self.home.project), "", text)
        (directory / f"{day}.md").write_text(text)
        return day

    def ask(self, session: InteractiveSession, prompt: str, answer: str) -> None:
        """Have `prompt` answered in the terminal, and wait until the hooks of the turn are done.

        A prompt that is submitted while they still run is queued, and older clients repeat it.
        """
        turns = self._ended_turns()
        session.submit(prompt)
        session.wait_for(answer)
        wait_until(lambda: self._ended_turns() > turns)

    def _ended_turns(self) -> int:
        return sum(entry.get("subtype") == "turn_duration" for entry in self._entries())

    def transcripts_hold(self, said: str) -> bool:
        """Whether the client has written `said` to a transcript; it does so a little later."""
        return any(said in str(entry) for entry in self._entries())

    def _entries(self) -> Iterator[dict[str, Any]]:
        for file in self.home.directory.glob(".claude/projects/*/*.jsonl"):
            yield from read_transcript(file)

    def workers(self) -> list[str]:
        """The command lines of the live workers."""
        commands = (process.command for process in self.home.processes())
        return [command for command in commands if command.endswith("bin/memkit work")]

    def wait_until_remembered(self) -> None:
        """Wait until nothing is left to do and the workers are gone."""
        home = paths.Home(str(self.home.memkit_home))
        wait_until(lambda: not waiting_names(home) and not self.workers(), REMEMBERED_SECONDS, self.complaint)

    def complaint(self) -> str:
        """What memkit has to say of itself, for the message of a failed test."""
        logs = sorted(self.home.memkit_home.glob("log/*.log"))
        parts = [f"{log.name}:\n{log.read_text()}" for log in logs]
        return "\n".join(["memkit was not done.", f"workers: {self.workers()}", *parts])


def answers_so_far(request: Request) -> int:
    """How often the model has spoken in the conversation that `request` continues."""
    return sum(message["role"] == "assistant" for message in request.messages)


def printed_json(shown: str) -> dict[str, Any]:
    """The JSON that a command of a tool printed, below a line that tells why it took long."""
    found: dict[str, Any] = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])
    return found


def copy_plugin(destination: Path) -> Path:
    """Copy the plugin as a release has it, uncommitted work included."""
    runpy.run_path(str(REPOSITORY / "tools" / "release"))["copy_plugin"](str(destination))
    return destination


def git(directory: Path, *arguments: str) -> None:
    """Run git in `directory` as somebody."""
    identity = ["-c", "user.name=Tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)
