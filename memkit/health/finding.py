"""What a check finds, and what it looks at."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Literal

from memkit import config
from memkit.errors import ConfigError
from memkit.paths import Home
from memkit.project import Project
from memkit.settings import Settings

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

    `settings` are those in force, or the defaults if they cannot be read for the reason in `problem`;
    `refused` is what the project's file may not set.
    """

    home: Home
    project: Project
    now: float
    settings: Settings
    problem: ConfigError | None = None
    refused: tuple[str, ...] = ()


def open_subject(home: Home, project: Project) -> Subject:
    """A home and a project with their settings; what is wrong with these is no error here."""
    try:
        loaded = config.load(home, project)
    except ConfigError as error:
        logger.info("examined with the default settings: %s", error)
        return Subject(home, project, time.time(), Settings(), error)
    return Subject(home, project, time.time(), loaded.settings, None, tuple(loaded.refused))
