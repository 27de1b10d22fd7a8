"""What a check finds, and what it looks at."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Literal

from memkit.errors import ConfigError
from memkit.hook.project import Project
from memkit.paths import Home
from memkit.settings import Settings, load

logger = logging.getLogger(__name__)

Level = Literal["error", "warning", "note"]
"""An error loses memory or keeps it from being found; a warning will, or makes it worse; a note does not."""

MEND = "`memkit doctor --fix`"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    `code` names the fault for programs. `what` says in one line what it is, `meaning` what follows from it,
    `fix` what mends it, with the command. `fixable` says that `registry.mend` does so and can do no harm.
    """

    code: str
    level: Level
    what: str
    meaning: str
    fix: str = MEND
    fixable: bool = False


@dataclass(frozen=True, slots=True)
class Subject:
    """What is examined: a memory home and a project, at `now` (seconds since the epoch).

    `refused` is what the project's file may not set. If the settings cannot be read, `problem` says why.
    """

    home: Home
    project: Project
    now: float
    loaded: Settings | None
    problem: ConfigError | None = None
    refused: tuple[str, ...] = ()


    @property
    def settings(self) -> Settings:
        """The settings in force.

        Raises `ConfigError` if they cannot be read: a check or fix with the default ones would look at
        another index, and write or delete there what the user's settings forbid.
        """
        if self.loaded is None:
            raise self.problem or ConfigError("the settings cannot be read")
        return self.loaded


def open_subject(home: Home, project: Project) -> Subject:
    """A home and a project with their settings; what is wrong with these is no error here."""
    try:
        loaded = load.load(home, project)
    except ConfigError as error:
        logger.info("examined without settings: %s", error)
        return Subject(home, project, time.time(), None, error)
    return Subject(home, project, time.time(), loaded.settings, None, tuple(loaded.refused))
