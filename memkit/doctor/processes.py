"""Check the service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import memkit
from memkit.doctor import FIX, Finding, Subject, make_finding
from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.paths import Home
from memkit.state import release

START_SECONDS = 5.0
"""The time from the start of a service to its first answer."""

POLL_SECONDS = 0.1


def check_service(subject: Subject) -> Iterator[Finding]:
    """Check that the service answers and has this version."""
    home = subject.home
    status = _status(home)
    if status is None:
        if launch.service_is_running(home):
            process = stop.process_of(home)
            shown = f", process {process}," if process else ""
            yield make_finding("service-hung", process=shown)
        return
    version = str(status.get("version"))
    if version != memkit.__version__:
        meaning, fix = "commands do not use it", f"run {FIX} or `memkit service restart`"
        if release(version) > release(memkit.__version__):
            meaning = "this older command uses the newer service"
            # Ending the newer service would start the older one instead.
            fix = "run `claude plugin update memkit@memkit`, or `uv tool upgrade memkit-memory`, for this one"
        own = memkit.__version__
        yield make_finding("service-version", version=version, own=own, meaning=meaning, fix=fix)
    for line in status.get("errors", [])[-1:]:
        yield make_finding("service-errors", line=line)


def _status(home: Home) -> dict[str, Any] | None:
    deadline = time.monotonic() + START_SECONDS
    while (seconds := deadline - time.monotonic()) > 0 and launch.service_is_running(home):
        try:
            # A longer wait would make the client ask a late service to end.
            return request(home, "status", {}, min(seconds, 3.0))
        except RequestRefused as refused:
            return {"version": memkit.__version__, "errors": [str(refused)]}
        except ServiceUnavailable as unavailable:
            if unavailable.reason != "late":
                time.sleep(POLL_SECONDS)  # it is starting
    return None


def check_listening(subject: Subject) -> Iterator[Finding]:
    """Check that the last service that was started could listen."""
    problem = stop.problem_of(subject.home)
    if problem and subject.settings.service.enabled:
        yield make_finding("service-unreachable", problem=problem, home=subject.home.root)


def stop_service(subject: Subject) -> str:
    """Stop the service. Raise `MemkitError`."""
    stop.stop(subject.home)
    stop.remove_stale_files(subject.home)
    return "stopped the service; the next hook or search starts a new one"
