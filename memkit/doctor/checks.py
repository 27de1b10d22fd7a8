"""All checks, all fixes, and the findings that the next session reports."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from memkit.capture.live_sessions import LiveSessions
from memkit.doctor import (
    events,
    index,
    installation,
    model,
    processes,
    transcripts,
    watch_limit,
)
from memkit.doctor import home as home_checks
from memkit.doctor.finding import Finding, Subject, open_subject
from memkit.errors import MemkitError
from memkit.hook.notices import Notice, publish
from memkit.hook.project import Project
from memkit.index import known_projects
from memkit.paths import Home
from memkit.text import one_line

logger = logging.getLogger(__name__)


class Check(NamedTuple):
    """One check, of the whole home or `of_project`.

    An `hourly` check is cheap: the service runs it every hour. It takes no lock, reads little, and asks no
    other process.
    """

    run: Callable[[Subject], Iterable[Finding]]
    of_project: bool = False
    hourly: bool = False


CHECKS = (
    Check(installation.check_settings, hourly=True),
    Check(installation.check_project_settings, of_project=True, hourly=True),
    Check(installation.check_packages, hourly=True),
    Check(installation.check_hook_python),
    Check(installation.check_versions, hourly=True),
    Check(home_checks.check_writing, hourly=True),
    Check(home_checks.check_memory, of_project=True, hourly=True),
    Check(home_checks.check_git, of_project=True, hourly=True),
    Check(home_checks.check_registry, hourly=True),
    Check(home_checks.check_owner, hourly=True),
    Check(home_checks.check_permissions, hourly=True),
    Check(home_checks.check_clock, hourly=True),
    Check(processes.check_service),
    Check(processes.check_listening, hourly=True),
    Check(processes.check_stale_files),
    Check(processes.check_locks),
    Check(processes.check_long_lock, hourly=True),
    Check(watch_limit.check_watches),
    Check(events.check_hooks, of_project=True, hourly=True),
    Check(events.check_hook_log, hourly=True),
    Check(events.check_failed_events, hourly=True),
    Check(events.check_waiting_events),
    Check(transcripts.check_transcripts, hourly=True),
    Check(transcripts.check_archive, hourly=True),
    Check(transcripts.check_archive_files),
    Check(transcripts.check_forgetting, hourly=True),
    Check(model.check_weights, hourly=True),
    Check(model.check_hashes),
    Check(model.check_provider, hourly=True),
    Check(model.check_provider_answers),
    Check(model.check_summarizer, hourly=True),
    Check(model.check_summarizer_answers, hourly=True),
    Check(model.check_budget),
    Check(model.check_given_up, hourly=True),
    Check(index.check_snapshot, of_project=True),
    Check(index.check_store, of_project=True),
    Check(index.check_edits, of_project=True),
    Check(index.check_gone_projects),
)
"""In the order in which findings of the same level are printed."""


class Fix(NamedTuple):
    """A fix for the findings with these codes. `run` returns a line about what it did."""

    run: Callable[[Subject], str]
    codes: frozenset[str]


def _fix(run: Callable[[Subject], str], *codes: str) -> Fix:
    return Fix(run, frozenset(codes))


FIXES = (
    _fix(home_checks.fix_owner, "wrong-owner"),
    _fix(home_checks.fix_permissions, "open-to-others"),
    _fix(processes.stop_service, "service-hung", "service-version"),
    _fix(processes.remove_stale_files, "service-left-behind"),
    _fix(model.fix_weights, "weights-missing", "weights-refused"),
    _fix(events.handle_events, "event-failed", "worker-killed", "events-waiting"),
    _fix(transcripts.fix_archive, "archive-gap"),
    _fix(index.set_index_aside, "index-damaged"),
    _fix(index.rebuild, "index-foreign", "index-dimensions", "index-differs"),
    _fix(index.update, "snapshot-foreign", "snapshot-damaged", "snapshot-differs", "index-damaged",
         "index-left-open", "not-indexed", "not-embedded"),
)  # fmt: skip
"""In the order in which they run."""


def examine(subject: Subject, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """Run the checks. Return each finding once, errors first. A check that fails is a finding, too."""
    if not os.path.isdir(subject.home.root):
        return [
            Finding(
                "no-home",
                "note",
                f"there is no {subject.home.root} yet",
                "nothing has been remembered so far",
                "start a session of Claude Code with the plugin, or `memkit import`",
            )
        ]
    found: dict[Finding, None] = {}
    skipped = 0
    for check in checks:
        try:
            for finding in check.run(subject):
                found[finding] = None
        except Exception as error:  # a failed check must not hide the findings of the others
            if error is subject.problem:  # it needs the settings
                skipped += 1
                continue
            name = check.run.__name__.removeprefix("check_").replace("_", " ")
            logger.warning("the check of %s failed", name, exc_info=error)
            failure = Finding(
                "check-failed",
                "warning",
                f"the check of {name} failed: {one_line(str(error)) or type(error).__name__}",
                "a problem there would not be found",
                "`memkit logs` has the details",
            )
            found[failure] = None
    if skipped:
        finding = Finding(
            "checks-left-out",
            "note",
            f"{skipped} checks were skipped, because the settings cannot be read",
            "index, model, archive, and summaries were not checked, and are not fixed",
            "fix the settings first; then run `memkit doctor` again",
        )
        found[finding] = None
    order = ("error", "warning", "note")
    return sorted(found, key=lambda finding: order.index(finding.level))


class FixResult(NamedTuple):
    """The result of one fix, or the reason why it failed."""

    message: str
    failed: bool


def apply_fixes(subject: Subject, findings: Iterable[Finding]) -> Iterator[FixResult]:
    """Fix the fixable findings, each fix once. Yield the result of each fix when it ends."""
    codes = {finding.code for finding in findings if finding.fixable}
    for fix in FIXES:
        if codes.isdisjoint(fix.codes):
            continue
        try:
            yield FixResult(fix.run(subject), failed=False)
        except (MemkitError, OSError) as error:
            logger.warning("%s failed: %s", fix.run.__name__, error)
            yield FixResult(one_line(str(error)), failed=True)


def notify_next_session(home: Home) -> int:
    """Run the hourly checks of a home and its projects, so that the next session reports errors and warnings.

    Return the number of findings that no session has reported yet. Raise `OSError`.
    """
    return publish(home, list(_notices(home)))


def _notices(home: Home) -> Iterator[Notice]:
    of_home = [check for check in CHECKS if check.hourly and not check.of_project]
    yield from _as_notices(examine(open_subject(home, Project(home.root)), of_home), "")
    of_project = [check for check in CHECKS if check.hourly and check.of_project]
    roots = {project.root for project in known_projects(home)}
    for root in sorted(roots | {session.root for session in LiveSessions(home)}):
        yield from _as_notices(examine(open_subject(home, Project.at_root(root, home)), of_project), root)


def _as_notices(findings: list[Finding], root: str) -> Iterator[Notice]:
    for finding in findings:
        if finding.level != "note":
            line = f"memkit: {finding.what} ({finding.meaning}). To fix it: {finding.fix}"
            yield Notice(finding.code, line, root)
