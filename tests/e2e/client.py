"""The real Claude Code client, in a home of the test's own.

`install_claude` brings the client; a `ClaudeHome` is a temporary user with an empty home
directory, whose client talks to a `MessagesApi`, runs prompts, holds plugins and writes
transcripts. Nothing of the developer's own environment but `PATH` reaches it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from tests.e2e.processes import Process, kill, processes_with
from tests.e2e.terminal import InteractiveSession
from tests.e2e.waiting import wait_until

PACKAGE = "@anthropic-ai/claude-code"
INSPECTOR = "@modelcontextprotocol/inspector"
REPOSITORY = Path(__file__).resolve().parents[2]
API_KEY = "dummy"
LOGIN = {
    "accessToken": "sk-ant-oat01-test", "refreshToken": "sk-ant-ort01-test", "expiresAt": 9_999_999_999_999,
    "scopes": ["user:inference", "user:profile"], "subscriptionType": "max",
}  # fmt: skip
"""The login of a subscription, as Claude Code stores it."""


def install_claude() -> Path:
    """The client's binary: `MEMKIT_TEST_CLAUDE` if set, else the newest, installed once.

    It is installed into the repository's `.cache/claude-code`; delete that directory for a newer
    one. Raises `RuntimeError` if that cannot be done.
    """
    if given := os.environ.get("MEMKIT_TEST_CLAUDE"):
        return _checked(Path(given))
    directory = REPOSITORY / ".cache" / "claude-code"
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(directory / ".lock"):
        binary = _installed(directory)
        if binary is None:
            # Without the tag, npm chooses an older release to suit the version of Node, which the native
            # binary does not use.
            _npm_install(directory, f"{PACKAGE}@latest")
            binary = _installed(directory)
        if binary is None:
            raise RuntimeError(f"npm installed {PACKAGE} without a binary for this platform.")
        return _checked(binary)


def _installed(directory: Path) -> Path | None:
    # The platform's package holds the native binary; the main package is a launcher that a
    # script of its own must set up first.
    return next(directory.glob(f"node_modules/{PACKAGE}-*/claude"), None)


def install_codex() -> Path:
    """Codex's binary, the newest, installed once like the client."""
    directory = REPOSITORY / ".cache" / "codex"
    directory.mkdir(parents=True, exist_ok=True)
    with FileLock(directory / ".lock"):
        if not (directory / "node_modules").exists():
            _npm_install(directory, "@openai/codex@latest")
    return next(directory.glob("node_modules/@openai/codex-*/vendor/*/bin/codex"))


def install_inspector() -> Path:
    """The MCP Inspector, in the newest version for this Node, installed once like the client."""
    directory = REPOSITORY / ".cache" / "mcp-inspector"
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "node_modules" / ".bin" / "mcp-inspector"
    with FileLock(directory / ".lock"):
        if not program.exists():
            _npm_install(directory, INSPECTOR)
    return program


def _npm_install(directory: Path, package: str) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError(
            f"The e2e tests need npm to install {package}. MEMKIT_TEST_CLAUDE can name Claude Code's binary."
        )
    command = [npm, "install", "--prefix", str(directory), "--ignore-scripts", package]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"npm could not install {package}:\n{done.stdout}{done.stderr}")


def _checked(binary: Path) -> Path:
    try:
        subprocess.run([binary, "--version"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise RuntimeError(f"{binary} is no working Claude Code: {error}") from error
    return binary


class ClaudeHome:
    """A user who has nothing yet but the client; a context manager that leaves nothing behind.

    `environment` is all that the client's processes see, and the directories in `plugins` are
    loaded into each session; a test may change both. `directory` is `HOME`, `memkit_home` is
    `MEMKIT_HOME` (not created), and sessions run in `project` unless told otherwise.
    """

    def __init__(self, claude: Path, api_url: str) -> None:
        self.claude = claude
        # Not under pytest's own directory: the path of a Unix socket has 104 bytes.
        self._root = Path(tempfile.mkdtemp(prefix="mk-")).resolve()
        self.directory = self._root / "home"
        self.memkit_home = self._root / "memkit"
        self.plugins: list[Path] = []
        temporary = self._root / "tmp"
        self.directory.mkdir()
        temporary.mkdir()
        self.environment: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "TZ": "UTC",  # as in all tests: else "today" differs for hours of each day
            "HOME": str(self.directory),
            "TMPDIR": str(temporary),
            "CLAUDE_CODE_TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "ANTHROPIC_BASE_URL": api_url,
            "ANTHROPIC_API_KEY": API_KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1",  # costs a model call
            "CLAUDE_CODE_MAX_RETRIES": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",  # else root may not skip the permission prompts
            "MEMKIT_HOME": str(self.memkit_home),
        }
        self._started: list[subprocess.Popen[bytes]] = []
        self.project = self.new_project("project")

    def __enter__(self) -> ClaudeHome:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what still runs in this home, and remove it."""

        def all_gone() -> bool:
            processes = self.processes()
            for process in processes:
                kill(process)
            return not processes

        wait_until(all_gone)
        for started in self._started:
            started.wait()
        shutil.rmtree(self._root)

    def processes(self) -> list[Process]:
        """The live processes of this home: clients, hooks, tools, and whatever they started."""
        return processes_with(f"MEMKIT_HOME={self.memkit_home}")

    def new_project(self, name: str) -> Path:
        """A new empty directory in which an interactive session starts without a question."""
        project = self._root / name
        project.mkdir()
        file = self.directory / ".claude.json"
        state = json.loads(file.read_text()) if file.exists() else {}
        state["hasCompletedOnboarding"] = True
        state["customApiKeyResponses"] = {"approved": [API_KEY[-20:]], "rejected": []}
        state.setdefault("projects", {})[str(project)] = {"hasTrustDialogAccepted": True}
        file.write_text(json.dumps(state))
        return project

    def redirect_github(self, repository: str, directory: Path) -> None:
        """Let git clone `directory`, a git repository, where it is told to clone
        `repository` (`owner/name`) from GitHub: a plugin installs as users install it.
        """
        lines = [
            f'[url "file://{directory}"]', f"insteadOf = https://github.com/{repository}.git",
            f"insteadOf = git@github.com:{repository}.git", "[safe]", "directory = *",
        ]  # fmt: skip
        (self.directory / ".gitconfig").write_text("\n".join(lines) + "\n")

    def write_settings(self, settings: Mapping[str, Any]) -> None:
        """Replace the user's `settings.json`."""
        file = self.directory / ".claude" / "settings.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(settings))

    def run_prompt(
        self, prompt: str, *arguments: str, cwd: Path | None = None, timeout: float = 240.0
    ) -> dict[str, Any]:
        """One turn with `-p`; the client's JSON result, whatever its exit status.

        The result has `result` (the final answer), `session_id`, `is_error`, `num_turns` and more.
        """
        command = self._prompt_command(prompt, *arguments)
        done = self._run(command, cwd=cwd or self.project, timeout=timeout)
        try:
            result: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            output = done.stdout + done.stderr
            raise AssertionError(f"No result from the client:\n{output}") from None
        return result

    def start_prompt(self, prompt: str, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        """The same turn in the background, in a process group of its own; its output is lost."""
        process = subprocess.Popen(
            self._prompt_command(prompt, *arguments), cwd=cwd or self.project, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._started.append(process)
        return process

    def start_interactive(self, *arguments: str, cwd: Path | None = None) -> InteractiveSession:
        """An interactive session that is ready for input; close it, or use it in a `with`."""
        session_id = str(uuid.uuid4())
        # The newer default, auto mode, asks the maker's own API about each action.
        options = ["--session-id", session_id, "--permission-mode", "default"]
        session = InteractiveSession(
            [str(self.claude), *options, *self._plugin_options(), *arguments], session_id=session_id,
            environment=self.environment, cwd=cwd or self.project,
            socket=self._root / f"tmux-{session_id[:8]}",
        )  # fmt: skip
        session.wait_for_input()
        return session

    def plugin(self, *arguments: str, timeout: float = 240.0, status: int = 0) -> str:
        """`claude plugin …`, e.g. `plugin("validate", path)`: what it printed.

        Raises `AssertionError` if it exits with another status.
        """
        command = [str(self.claude), "plugin", *arguments]
        done = self._run(command, cwd=self.project, timeout=timeout)
        output = done.stdout + done.stderr
        assert done.returncode == status, f"claude plugin {' '.join(arguments)} failed:\n{output}"
        return output

    def servers(self) -> str:
        """What `claude mcp list` prints after it has connected to each server."""
        return self._run([str(self.claude), "mcp", "list"], self.project, 120.0).stdout

    def auth_status(self) -> str:
        """What `claude auth status` prints; it fails if nobody is logged in."""
        return self._run([str(self.claude), "auth", "status"], self.project, 60.0).stdout

    def _plugin_options(self) -> list[str]:
        return [option for path in self.plugins for option in ("--plugin-dir", str(path))]

    def _prompt_command(self, prompt: str, *arguments: str) -> list[str]:
        options = [*self._plugin_options(), "--output-format", "json", *arguments]
        # The prompt goes last, behind a separator: some options take any number of values.
        return [str(self.claude), "-p", *options, "--", prompt]

    def _run(self, command: Sequence[str], cwd: Path, timeout: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=cwd, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=timeout,
        )  # fmt: skip


def read_transcript(file: Path) -> list[dict[str, Any]]:
    """The entries of a transcript; a half-written last line is left out."""
    lines = file.read_text().splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]
