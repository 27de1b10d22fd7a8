"""The client in a terminal: an interactive session under a tmux server of its own."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.e2e.waiting import wait_until

COLUMNS, LINES = 160, 50
PROMPT = "❯"
"""What the client shows where it takes input."""


class InteractiveSession:
    """One interactive session; a context manager that ends it.

    The screen is compared without its white space,
    because the client breaks lines.
    """

    def __init__(
        self, command: Sequence[str], *, session_id: str, environment: Mapping[str, str], cwd: Path,
        socket: Path,
    ) -> None:  # fmt: skip
        tmux = shutil.which("tmux")
        if tmux is None:
            raise RuntimeError("The interactive e2e tests need tmux.")
        self.session_id = session_id
        self._environment = environment
        self._tmux = [tmux, "-S", str(socket), "-f", "/dev/null"]
        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        # The window outlives the client, so that a failure can show what was on the screen.
        keep = ["set-option", "-g", "remain-on-exit", "on", ";"]
        self._run("start-server", ";", *keep, "new-session", "-d", *size, "-c", str(cwd), *command)

    def __enter__(self) -> InteractiveSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def screen(self) -> str:
        """What the terminal shows now."""
        return self._run("capture-pane", "-p").rstrip()

    @property
    def has_ended(self) -> bool:
        """Whether the client's process is gone."""
        return self._run("display-message", "-p", "#{pane_dead}").strip() == "1"

    @property
    def pid(self) -> int:
        """The client's process."""
        return int(self._run("display-message", "-p", "#{pane_pid}"))

    def wait_for(self, text: str, timeout: float = 120.0) -> None:
        """Wait until the screen shows `text`; fail with the screen after `timeout` seconds."""
        self._wait(lambda: _squeezed(text) in _squeezed(self.screen), f"{text!r}", timeout)

    def wait_for_input(self, timeout: float = 120.0) -> None:
        """Wait until the client shows its empty input line."""

        def shown() -> bool:
            return any(line.strip() == PROMPT for line in self.screen.splitlines())

        self._wait(shown, "the input line", timeout)

    def type(self, text: str) -> None:
        """Type `text` and wait until the input line shows it."""
        self._run("send-keys", "-l", "--", text)

        def shown() -> bool:
            return _squeezed(text) in _squeezed(self.screen.rpartition(PROMPT)[2])

        self._wait(shown, f"the typed {text!r}", 120.0)

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names, e.g. `Enter`, `Escape`, `C-c`."""
        self._run("send-keys", *keys)

    def submit(self, prompt: str) -> None:
        """Type `prompt` and press Enter."""
        self.type(prompt)
        self.press("Enter")

    def exit(self, timeout: float = 120.0) -> None:
        """Leave with `/exit` and wait until the client is gone."""
        self.submit("/exit")
        self._wait(lambda: self.has_ended, "the end of the session", timeout)

    def close(self) -> None:
        """Stop the terminal, and the client with it if it still runs."""
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)

    def _wait(self, condition: Callable[[], bool], what: str, timeout: float) -> None:
        wait_until(condition, timeout, lambda: f"The screen did not show {what}:\n{self.screen}\n")

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], env=self._environment, capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"tmux {arguments[0]} failed: {done.stderr.strip()}")
        return done.stdout


def _squeezed(text: str) -> str:
    return "".join(text.split())
