"""Has the next session told, once, of what a person should do something about."""

from __future__ import annotations

from collections.abc import Iterator

from memkit.capture.live_sessions import LiveSessions
from memkit.doctor.checks import CHECKS, examine
from memkit.doctor.finding import Finding, open_subject
from memkit.hook.notices import Notice, publish
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.paths import Home


def notify_next_session(home: Home) -> int:
    """Make the cheap checks of a home and its projects; how many findings are still to be said.

    Raises `OSError`.
    """
    return publish(home, list(_notices(home)))


def _notices(home: Home) -> Iterator[Notice]:
    cheap = [check for check in CHECKS if check.is_cheap]
    of_home = [check for check in cheap if not check.of_project]
    yield from _as_notices(examine(open_subject(home, Project(home.root)), of_home), "")
    of_project = [check for check in cheap if check.of_project]
    roots = {project.root for project in known_projects(home)}
    for root in sorted(roots | {session.root for session in LiveSessions(home)}):
        yield from _as_notices(examine(open_subject(home, Project.at_root(root, home)), of_project), root)


def _as_notices(findings: list[Finding], root: str) -> Iterator[Notice]:
    for finding in findings:
        if finding.level != "note":
            line = f"memkit: {finding.what} ({finding.meaning}). To mend it: {finding.fix}"
            yield Notice(finding.code, line, root)
