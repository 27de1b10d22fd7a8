"""Captures the sessions of other agents as they happen, of those that the setting `capture.agents` names.

Nobody tells memkit when a turn of theirs ends. So the service looks at their files once a minute, and reads
those whose time or size has changed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

from memkit.agents.database import stamp_of
from memkit.agents.registry import OTHERS, Agent
from memkit.agents.sources import is_likely_project, project_of, sources_of
from memkit.capture.capture import Capture, CaptureOutcome
from memkit.conversation.turn import Turn
from memkit.errors import MemkitError
from memkit.files import make_private_directory
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.service.writer import Writer
from memkit.settings.load import Settings
from memkit.state import read_state_or_none, write_state

logger = logging.getLogger(__name__)

VERSION = 1
"""The format version of `run/NAME.captured`."""

ROUND_SECONDS = 60.0

SLACK_SECONDS = 3600.0
"""A database has the time of a session's last prompt, not that of its last answer."""


class AgentWatch:
    """Looks at the files of agents once a minute, in a thread of its own.

    `run/NAME.captured` has when the user said yes to an agent, and up to when its turns were captured. So a
    new service captures what came while none was running, and only turns that finished after the yes.
    """

    def __init__(self, home: Home, settings_of: Callable[[Project], Settings], writer: Writer) -> None:
        self._home = home
        self._settings_of = settings_of
        self._writer = writer
        self._seen: dict[str, tuple[int, int]] = {}
        self._stopping = threading.Event()
        self.stop = self._stopping.set
        self.changed = float("-inf")
        """When a change was last found (`time.monotonic`)."""

    def start(self) -> None:
        """Look now and every minute, until `stop` is called."""
        threading.Thread(target=self._run, name="agents", daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.look()
            except CancelledError:  # the writer is stopping
                return
            except Exception as error:  # the next look tries again
                logger.warning("looking at agents: %s", error, exc_info=not isinstance(error, MemkitError))
            self._stopping.wait(ROUND_SECONDS)

    def look(self) -> None:
        """Capture what has changed. Raise `MemkitError`, `OSError`."""
        names = self._settings_of(Project(self._home.root, self._home)).capture.agents
        for agent in OTHERS:
            mark = Path(self._home.run, f"{agent.name}.captured")
            now = time.time_ns() - 10**9  # the times of files are coarse
            known = read_state_or_none(mark, VERSION, lambda it: (int(it["yes"]), int(it["captured"])))
            if agent.name in names:
                yes, before = known or [stamp_of(self._home.config_file)[0] or now] * 2
                since = min(now, before)
                is_whole = self._look_at(agent, since, yes)
                if is_whole or known is None:
                    make_private_directory(self._home.run)
                    write_state(mark, VERSION, {"yes": yes, "captured": now if is_whole else since})
            elif mark.exists():  # after another yes, nothing from the time between counts
                mark.unlink()
                self._seen.clear()

    def _look_at(self, agent: Agent, since: int, yes: int) -> bool:
        """Return whether something has changed since then (in nanoseconds), and all of it is captured."""
        was_changed, is_whole = False, True
        for file in agent.files():
            stamp, before = stamp_of(file), self._seen.get(file)
            goes_on = False
            if stamp != before and (before is not None or stamp[0] >= since):
                was_changed, self.changed = True, time.monotonic()
                for path in agent.sessions_in(Path(file), since / 1e9 - SLACK_SECONDS):
                    goes_on |= self._capture(path, yes).goes_on
            if not goes_on:  # else look again, also if nothing more is written
                self._seen[file] = stamp
            is_whole &= not goes_on
        return was_changed and is_whole

    def _capture(self, path: Path, yes: int) -> CaptureOutcome:
        """Capture a session after the events that wait, and index what came of it."""
        task = self._writer.capture.submit(str(path), lambda: self._follow(path, yes), time.monotonic())
        outcome: CaptureOutcome = task.result()
        for root in outcome.projects if outcome.written else ():
            self._writer.index(root)
        return outcome

    def _follow(self, path: Path, yes: int) -> CaptureOutcome:
        def is_wanted(turn: Turn) -> bool:
            return turn.finished is not None and turn.finished.timestamp() >= yes / 1e9

        try:
            (source,) = sources_of([path])
            project = project_of(source.cwd, self._home)
            if project is None or project.is_off:
                return CaptureOutcome()
            if not is_likely_project(project, self._home):
                project = Project.kept(project.root, self._home)
            capture = Capture(self._home, self._settings_of(project))
            return capture.import_file(path, project, is_wanted, now=time.time())
        except Exception as error:  # go on with the others; the mark stays, so a restart tries again
            logger.warning("cannot capture %s: %s", path, error, exc_info=not isinstance(error, MemkitError))
            return CaptureOutcome(goes_on=True)
