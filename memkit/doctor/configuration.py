"""Whether the settings can be read."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from memkit.doctor.finding import Finding, Subject
from memkit.settings.load import every_key
from memkit.settings.validate import UnknownSettingError, name_of

_IGNORED = "hooks go on spooling, but nothing is taken in, indexed or found until it is mended"


def check_settings(subject: Subject) -> Iterator[Finding]:
    """The user's file, and the variables."""
    problem = subject.problem
    if isinstance(problem, UnknownSettingError):
        what = str(problem).partition("; ")[0]
        yield Finding("unknown-setting", "error", what, _IGNORED, _advice(what))
    elif problem is not None:
        fix = f"mend it in {subject.home.config_file}, or set the variable that it names anew"
        yield Finding("broken-settings", "error", str(problem), _IGNORED, fix)


def check_project_settings(subject: Subject) -> Iterator[Finding]:
    """The project's own file."""
    for line in subject.refused:
        yield Finding(
            "refused-setting",
            "warning",
            line,
            "memkit ignores this setting and uses the rest of the file",
            "remove it from that file",
        )


def _advice(what: str) -> str:
    """What to do about an unknown setting: the nearest that there is, or to remove it."""
    name = re.sub(r"^.*unknown setting ", "", what)
    known = [name_of(key) for key in every_key()]
    near = difflib.get_close_matches(name, known, n=1)
    meant = f"rename it to {near[0]}, or remove it" if near else "remove it"
    return f"{meant}; `memkit config list` shows the settings there are"
