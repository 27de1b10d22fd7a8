"""Check settings, Python, packages, whether there is only one version of memkit, and the service."""

from __future__ import annotations

import difflib
import importlib.metadata
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import memkit
from memkit import environment
from memkit.agents.claude_code.installation import installed_plugins, plugin_version
from memkit.doctor import FIX, Finding, Subject, make_finding, split_advice
from memkit.environment import extras
from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from memkit.ipc.launch import REPOSITORY
from memkit.paths import Home
from memkit.processes import find_program, no_window
from memkit.settings.validate import UnknownSettingError, every_key, name_of
from memkit.state import release

OLDEST_PYTHON = (3, 9)
"""The minimum version for the hooks."""

ASK_SECONDS = 10.0

_ASK_VERSION = "import sys; print(*sys.version_info[:2])"


def check_settings(subject: Subject) -> Iterator[Finding]:
    """Check the user's settings file and the environment variables."""
    problem = subject.problem
    if isinstance(problem, UnknownSettingError):
        what, _ = split_advice(problem)
        name = re.sub(r"^.*unknown setting ", "", what)
        near = difflib.get_close_matches(name, map(name_of, every_key()), n=1)
        advice = f"rename it to {near[0]}, or take it out" if near else "take it out"
        yield make_finding("unknown-setting", what=what, advice=advice)
    elif problem is not None:
        yield make_finding("broken-settings", what=problem, file=subject.home.config_file)


def check_project_settings(subject: Subject) -> Iterator[Finding]:
    """Check the project's settings file."""
    for line in subject.refused:
        yield make_finding("refused-setting", what=line)


def check_packages(subject: Subject) -> Iterator[Finding]:
    """Check for missing packages in the current Python environment."""
    missing = sorted(name for name in _required() if not any(importlib.metadata.distributions(name=name)))
    if not missing:
        return
    fix = f"run `{environment.install_command(*missing)}`"
    if environment.is_own(subject.home.root):
        old, new = shlex.quote(sys.prefix), shlex.quote(f"{sys.prefix}.old")
        fix = f"run `mv {old} {new}`; the next memkit command rebuilds it"
    yield make_finding("packages-missing", environment=sys.prefix, names=", ".join(missing), fix=fix)


def check_extras(subject: Subject) -> Iterator[Finding]:
    """Check that memkit's own environment has the extras that the user wants."""
    if not environment.is_own(subject.home.root):
        return
    missing = extras.missing(subject.home.root)
    if missing:
        options = " ".join(f"--with {extra}" for extra in missing)
        yield make_finding("extras-missing", names=", ".join(missing), options=options)


def _required() -> Iterator[str]:
    try:
        declared = environment.declared_requirements(REPOSITORY, "project", "dependencies")
    except FileNotFoundError:  # installed as a package
        declared = importlib.metadata.requires("memkit-memory") or []
    for requirement in declared:
        if ";" not in requirement:
            yield re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]


def check_hook_python(subject: Subject) -> Iterator[Finding]:
    """Check the `python3` with which Claude Code runs the hooks."""
    python = find_program("python3")
    if python is None:
        fix = "install Python 3.9 or newer as `python3`"
        if sys.platform == "win32":
            fix += ", from the Microsoft Store or as a copy of python.exe in its own directory"
        yield make_finding("python-missing", fix=fix)
        return
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-c", _ASK_VERSION], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=ASK_SECONDS, check=True, **no_window(),
        )
        version = tuple(map(int, done.stdout.split()))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        yield make_finding("python-broken", python=python, error=error)
        return
    if version < OLDEST_PYTHON:
        yield make_finding("python-old", python=python, version=".".join(map(str, version)))


def check_versions(subject: Subject) -> Iterator[Finding]:
    """Check that plugin, package, and command have the same version."""
    found = _installations()
    if len(set(found.values())) > 1:
        shown = ", ".join(f"{version} in {place}" for place, version in sorted(found.items()))
        yield make_finding("versions-differ", versions=shown)


def _installations() -> dict[str, str]:
    found = {str(Path(memkit.__file__).parent): memkit.__version__}
    scripts = (os.path.join(place, "memkit") for place in os.get_exec_path())
    programs = {Path(script).resolve() for script in scripts if os.access(script, os.X_OK)}
    # A program in the `bin` directory of a plugin; others would have to be run to learn their version.
    plugins = {program.parent.parent for program in programs}
    for directory in {Path(REPOSITORY), *plugins, *installed_plugins()}:
        version = plugin_version(directory)
        if version:
            found[str(directory)] = version
    for distribution in importlib.metadata.distributions(name="memkit-memory"):
        found[str(distribution.locate_file(""))] = distribution.version
    return found


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
