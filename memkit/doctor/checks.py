"""All checks, and what mends what they find."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from memkit.doctor import (
    configuration,
    hooks,
    indexes,
    installation,
    model,
    places,
    processes,
    summaries,
    transcripts,
    watch_limit,
)
from memkit.doctor.finding import Finding, Subject
from memkit.errors import MemkitError

logger = logging.getLogger(__name__)


class Check(NamedTuple):
    """One check. `of_project` says that it is about the project, not the whole home; `is_cheap`, that the
    service may make it every hour: it takes no lock, asks nobody and reads little; `needs_settings`, that
    it is left out while the settings cannot be read.
    """

    run: Callable[[Subject], Iterable[Finding]]
    of_project: bool = False
    is_cheap: bool = False
    needs_settings: bool = False


CHECKS = (
    Check(configuration.check_settings, is_cheap=True),
    Check(configuration.check_project_settings, of_project=True, is_cheap=True),
    Check(installation.check_packages, is_cheap=True),
    Check(installation.check_hook_python),
    Check(installation.check_versions, is_cheap=True),
    Check(places.check_writing, is_cheap=True),
    Check(places.check_memory, of_project=True, is_cheap=True),
    Check(places.check_git, of_project=True, is_cheap=True, needs_settings=True),
    Check(places.check_registry, is_cheap=True),
    Check(places.check_owner, is_cheap=True),
    Check(places.check_permissions, is_cheap=True),
    Check(places.check_clock, is_cheap=True),
    Check(processes.check_service),
    Check(processes.check_listening, is_cheap=True, needs_settings=True),
    Check(processes.check_left_behind),
    Check(processes.check_locks),
    Check(processes.check_long_lock, is_cheap=True),
    Check(watch_limit.check_watches),
    Check(watch_limit.check_file_system, of_project=True),
    Check(hooks.check_hooks, of_project=True, is_cheap=True),
    Check(hooks.check_hook_log, is_cheap=True),
    Check(hooks.check_failed_events, is_cheap=True),
    Check(hooks.check_waiting_events),
    Check(transcripts.check_transcripts, is_cheap=True),
    Check(transcripts.check_archive, is_cheap=True, needs_settings=True),
    Check(transcripts.check_archive_files),
    Check(transcripts.check_forgetting, is_cheap=True),
    Check(model.check_weights, is_cheap=True, needs_settings=True),
    Check(model.check_hashes, needs_settings=True),
    Check(model.check_provider, is_cheap=True, needs_settings=True),
    Check(model.check_provider_answers, needs_settings=True),
    Check(summaries.check_summarizer, is_cheap=True, needs_settings=True),
    Check(summaries.check_summarizer_answers, is_cheap=True, needs_settings=True),
    Check(summaries.check_budget, needs_settings=True),
    Check(summaries.check_given_up, is_cheap=True),
    Check(indexes.check_snapshot, of_project=True, needs_settings=True),
    Check(indexes.check_store, of_project=True, needs_settings=True),
    Check(indexes.check_edits, of_project=True, needs_settings=True),
    Check(indexes.check_gone_projects),
)
"""In the order in which their findings are told, which is also that in which they are mended."""

_NEED_SETTINGS = frozenset(
    {
        model.mend_weights,
        hooks.retry_events,
        hooks.take_events,
        transcripts.mend_archive,
        indexes.set_index_aside,
        indexes.mend_by_rebuild,
        indexes.mend_by_pass,
    }
)
"""What mends nothing while the settings cannot be read."""

_MENDING: dict[Callable[[Subject], str], tuple[str, ...]] = {
    places.mend_owner: ("wrong-owner",),
    places.mend_permissions: ("open-to-others",),
    processes.stop_service: ("service-hung", "service-version"),
    processes.remove_left_behind: ("service-left-behind",),
    model.mend_weights: ("weights-missing", "weights-refused"),
    hooks.retry_events: ("event-failed",),
    hooks.take_events: ("event-failed", "worker-killed", "events-waiting"),
    transcripts.mend_archive: ("archive-gap",),
    indexes.set_index_aside: ("index-damaged",),
    indexes.mend_by_rebuild: ("index-foreign", "index-dimensions", "index-differs"),
    indexes.mend_by_pass: (
        "snapshot-foreign",
        "snapshot-damaged",
        "snapshot-differs",
        "index-damaged",
        "index-left-open",
        "not-indexed",
        "not-embedded",
    ),
}
"""What mends the findings of which codes, in the order in which it is done."""


def examine(subject: Subject, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """What the checks find, errors first; each finding once. A check that fails is a finding itself."""
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
    possible = [check for check in checks if subject.problem is None or not check.needs_settings]
    found = dict.fromkeys(finding for check in possible for finding in _run(check, subject))
    left_out = len(checks) - len(possible)
    if left_out:
        found[_left_out(left_out)] = None
    order = ("error", "warning", "note")
    return sorted(found, key=lambda finding: order.index(finding.level))


def _left_out(count: int) -> Finding:
    return Finding(
        "checks-left-out",
        "note",
        f"{count} checks were left out, because the settings cannot be read",
        "index, model, archive, and summaries were not looked at, and are not fixed",
        "fix the settings, as said above; then `memkit doctor` again",
    )


def _run(check: Check, subject: Subject) -> Iterator[Finding]:
    try:
        yield from check.run(subject)
    except Exception as error:  # one area's trouble must not hide the others
        name = check.run.__name__.removeprefix("check_").replace("_", " ")
        logger.warning("the check of %s failed", name, exc_info=error)
        yield Finding(
            "check-failed",
            "warning",
            f"the check of {name} failed: {' '.join(str(error).split()) or type(error).__name__}",
            "what it would have found is not known",
            "`memkit logs` has the details",
        )


class Repair(NamedTuple):
    """What one step of mending did, or, if it failed, why."""

    said: str
    failed: bool


def mend(subject: Subject, findings: Iterable[Finding]) -> Iterator[Repair]:
    """Do what mends those findings that are fixable, each step once; yields when each is done."""
    codes = {finding.code for finding in findings if finding.fixable}
    for step, mended in _MENDING.items():
        if codes.isdisjoint(mended):
            continue
        if subject.problem is not None and step in _NEED_SETTINGS:
            said = f"nothing is done for {', '.join(codes & set(mended))}: {subject.problem}"
            yield Repair(" ".join(said.split()), failed=True)
            continue
        try:
            yield Repair(step(subject), failed=False)
        except (MemkitError, OSError) as error:
            logger.warning("%s failed: %s", step.__name__, error)
            yield Repair(" ".join(str(error).split()), failed=True)
