"""All checks, all fixes, and the findings that the next session reports."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from memkit.capture.sessions import LiveSessions
from memkit.doctor import Finding, Subject, capture, index, installation, make_finding, model, open_subject
from memkit.doctor import home as home_checks
from memkit.errors import MemkitError
from memkit.hook.notices import Notice, publish
from memkit.index import known_projects
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import one_line

logger = logging.getLogger(__name__)


class Check(NamedTuple):
    """One check, of the whole home or `of_project`.

    An `hourly` check is cheap: the service runs it every hour. It takes no lock, reads little, and asks no
    other process. A `deep` one reads all of the memory, which takes long if that is large.
    """

    run: Callable[[Subject], Iterable[Finding]]
    of_project: bool = False
    hourly: bool = False
    deep: bool = False


CHECKS = (
    Check(installation.check_settings, hourly=True),
    Check(installation.check_project_settings, of_project=True, hourly=True),
    Check(installation.check_packages, hourly=True),
    Check(installation.check_extras, hourly=True),
    Check(installation.check_hook_python),
    Check(installation.check_versions, hourly=True),
    Check(home_checks.check_writing, hourly=True),
    Check(home_checks.check_memory, of_project=True, hourly=True),
    Check(home_checks.check_conflicts, of_project=True),
    Check(home_checks.check_team, of_project=True),
    Check(home_checks.check_git, of_project=True, hourly=True),
    Check(home_checks.check_registry, hourly=True),
    Check(home_checks.check_sync, hourly=True),
    Check(home_checks.check_permissions, hourly=True),
    Check(home_checks.check_clock, hourly=True),
    Check(installation.check_service),
    Check(installation.check_listening, hourly=True),
    Check(capture.check_hooks, of_project=True, hourly=True),
    Check(capture.check_hook_log, hourly=True),
    Check(capture.check_failed_events, hourly=True),
    Check(capture.check_waiting_events),
    Check(capture.check_transcripts, hourly=True),
    Check(capture.check_archive, hourly=True),
    Check(capture.check_archive_files, deep=True),
    Check(capture.check_lost_turns, of_project=True, deep=True),
    Check(capture.check_forgetting, hourly=True),
    Check(model.check_weights, hourly=True),
    Check(model.check_hashes),
    Check(model.check_provider, hourly=True),
    Check(model.check_provider_answers),
    Check(model.check_summarizer, hourly=True),
    Check(model.check_background_keys, hourly=True),
    Check(model.check_summarizer_answers, hourly=True),
    Check(model.check_model_ends, hourly=True),
    Check(model.check_ledger, hourly=True),
    Check(model.check_budget),
    Check(model.check_given_up, hourly=True),
    Check(index.check_snapshot, of_project=True),
    Check(index.check_edits, of_project=True),
    Check(index.check_chunks, of_project=True, deep=True),
    Check(index.check_server, of_project=True),
)
"""In the order in which findings of the same level are printed."""

SHALLOW = tuple(check for check in CHECKS if not check.deep)
"""The checks whose time does not follow the size of the memory."""

FIXES: dict[Callable[[Subject], str], set[str]] = {
    home_checks.fix_permissions: {"open-to-others"},
    installation.stop_service: {"service-hung", "service-version"},
    model.fix_weights: {"weights-missing", "weights-refused"},
    capture.handle_events: {"event-failed", "worker-killed", "events-waiting"},
    capture.fix_archive: {"archive-gap"},
    capture.write_lost_turns: {"turns-missing"},
    index.rebuild: {"index-differs"},
    index.update: {"snapshot-damaged", "not-indexed", "not-embedded"},
}
"""The codes that each fix fixes, in the order in which the fixes run. A fix returns a line on what it did."""


def examine(
    subject: Subject,
    checks: Sequence[Check] = CHECKS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Finding]:
    """Run the checks. Return each finding once, errors first. A check that fails is a finding, too.

    `progress` gets the number of checks that are done, and of all.
    """
    if not os.path.isdir(subject.home.root):
        return [make_finding("no-home", path=subject.home.root)]
    found: list[Finding] = []
    skipped = 0
    for number, check in enumerate(checks):
        progress(number, len(checks))
        try:
            for finding in check.run(subject):
                found.append(finding)
        except Exception as error:  # a failed check must not hide the findings of the others
            if error is subject.problem:  # it needs the settings
                skipped += 1
                continue
            name = check.run.__name__.removeprefix("check_").replace("_", " ")
            logger.warning("the check of %s failed", name, exc_info=error)
            reason = one_line(str(error)) or type(error).__name__
            found.append(make_finding("check-failed", name=name, error=reason))
    if skipped:
        found.append(make_finding("checks-left-out", count=skipped))
    order = ("error", "warning", "note")
    return sorted(dict.fromkeys(found), key=lambda finding: order.index(finding.level))


class FixResult(NamedTuple):
    """The result of one fix, or the reason why it failed."""

    message: str
    failed: bool


def apply_fixes(subject: Subject, findings: Iterable[Finding]) -> Iterator[FixResult]:
    """Fix the fixable findings, each fix once. Yield the result of each fix when it ends."""
    fixable = {finding.code for finding in findings if finding.fixable}
    for fix, codes in FIXES.items():
        if fixable.isdisjoint(codes):
            continue
        try:
            yield FixResult(fix(subject), failed=False)
        except (MemkitError, OSError) as error:
            logger.warning("%s failed: %s", fix.__name__, error)
            yield FixResult(one_line(str(error)), failed=True)


def notify_next_session(home: Home) -> int:
    """Run the hourly checks of a home and its projects, so that the next session reports errors and warnings.

    Return the number of findings that no session has reported yet. Raise `OSError`.
    """
    return publish(home, list(_notices(home)))


def _notices(home: Home) -> Iterator[Notice]:
    of_home = [check for check in CHECKS if check.hourly and not check.of_project]
    subject = open_subject(home, Project(home.root, home))
    model.retry_download(subject)
    yield from _as_notices(examine(subject, of_home), "")
    of_project = [check for check in CHECKS if check.hourly and check.of_project]
    roots = {project.root for project in known_projects(home)}
    for root in sorted(roots | {session.root for session in LiveSessions(home)}):
        yield from _as_notices(examine(open_subject(home, Project.at_root(root, home)), of_project), root)


def _as_notices(findings: list[Finding], root: str) -> Iterator[Notice]:
    for finding in findings:
        if finding.level != "note":
            line = f"memkit: {finding.what} ({finding.meaning}). To fix it: {finding.fix}"
            yield Notice(finding.code, line, root)
