"""Decide which environment variables to trust in a Claude Code session.

A repository's `.claude/settings.json` can set variables. They reach each hook, each command that Claude
runs, and their child processes, and look like the user's own. So in a session only a few count, mainly those
that name the user's directories. All others count only in the user's own shell: settings, keys, addresses,
proxies, and certificates. Proxies and certificates come from the user's own Claude Code settings instead.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from memkit.projects.git_files import worktree_root, worktrees_around
from memkit.state import parse_json

_MARKS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""Variables that Claude Code itself sets in a session, whatever the settings say."""

_DIRECTORIES = frozenset(
    """HOME MEMKIT_HOME CLAUDE_CONFIG_DIR TMPDIR TEMP TMP XDG_RUNTIME_DIR
    USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432
    SYSTEMROOT WINDIR COMSPEC ALLUSERSPROFILE PUBLIC""".split()
)
"""Paths. They count if they are absolute and outside the project."""

_PLAIN = frozenset(
    """USER LOGNAME USERNAME USERDOMAIN COMPUTERNAME LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR
    SYSTEMDRIVE HOMEDRIVE HOMEPATH PATHEXT OS NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
    MEMKIT_CHILD MEMKIT_DISABLE""".split()
)

_NETWORK = frozenset(
    "HTTPS_PROXY NO_PROXY SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS".split()
)
"""Proxies and certificates. They count in the user's own Claude Code settings."""

_SHELL_FILES = frozenset(
    "HOME ZDOTDIR BASH_ENV ENV CLAUDE_ENV_FILE SHELL CLAUDE_CODE_SHELL CLAUDE_CODE_SHELL_PREFIX".split()
)
"""Each can make the Bash tool's shell run other code first."""

_SHELL_CODE = frozenset(("PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND"))
_LIBRARIES = frozenset(("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"))
_USUAL_FUNCTIONS = frozenset("which module ml scl switchml _module_raw _moduleraw".split())
"""Functions that systems export, and that do not affect how the shell finds memkit."""

_SETTINGS_BYTES = 1_000_000


def in_session(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process is a hook, or a command that Claude runs."""
    return any(environ.get(name) for name in _MARKS)


def heed_user_only() -> None:
    """In a session, remove from this process all variables that a repository could have set."""
    if in_session():
        kept = of_user(os.environ)
        for name in [name for name in os.environ if name not in kept]:
            del os.environ[name]
        os.environ.update(kept)


def of_user(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a session's `environ` that count; see the module."""
    projects = _projects(environ)
    kept = {}
    for name, value in environ.items():
        upper = name.upper()  # some are also written in lower case; on Windows case does not matter
        if upper in _DIRECTORIES:
            if _is_outside(value, projects):
                kept[name] = value
        elif upper == "PATH":
            parts = [part for part in value.split(os.pathsep) if _is_outside(part, projects)]
            kept[name] = os.pathsep.join(parts)
        elif upper in _PLAIN or upper in _MARKS or upper.startswith("LC_"):
            kept[name] = value
    found = user_settings(kept).get("env")
    for name, value in found.items() if isinstance(found, dict) else ():
        if name.upper() in _NETWORK and isinstance(value, str) and value.isprintable():
            kept[name] = value
    return kept


def user_settings(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the user's own Claude Code settings. `environ` has only variables that count.

    Claude Code itself reports a file that it cannot read; here it counts as empty.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE") or _own_directory()
    directory = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    try:
        with open(os.path.join(directory, "settings.json"), "rb") as file:
            value = parse_json(file.read(_SETTINGS_BYTES))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def shell_is_users(environ: Mapping[str, str]) -> bool:
    """Return whether a shell with a session's raw `environ` runs `memkit` from one of the user's directories.

    Claude Code appends the plugin's `bin` to `PATH`.
    """
    projects = _projects(environ)
    for name, value in environ.items():
        if name in _SHELL_CODE and value:
            return False
        if name.startswith("BASH_FUNC_") and name[10:].rstrip("%()") not in _USUAL_FUNCTIONS:
            return False
        if name in _SHELL_FILES and value and (not _is_outside(value, projects) or re.search("[$`]", value)):
            return False
        if name in _LIBRARIES and not all(_is_outside(p, projects) for p in re.split("[: ]+", value) if p):
            return False
    return not any(
        part.startswith("~")  # bash itself expands it
        or (not _is_outside(part, projects) and os.path.lexists(os.path.join(part, "memkit")))
        for part in environ.get("PATH", "").split(os.pathsep)
    )


def _projects(environ: Mapping[str, str]) -> list[str]:
    given = [environ.get("CLAUDE_PROJECT_DIR") or os.curdir, os.curdir]
    try:
        real = {os.path.realpath(directory) for directory in given}
    except OSError:  # the working directory is gone
        real = set()
    found = {worktree_root(directory) or directory for directory in real}
    # A linked worktree is outside the main one, and a submodule is inside another repository.
    found.update(worktree for directory in real for worktree in worktrees_around(directory))
    own = _own_directory()
    return [directory for directory in found if not _is_inside(own, directory)]


def _own_directory() -> str:
    """Return the user's home directory as the system knows it, whatever `HOME` says."""
    if sys.platform != "win32":
        import pwd

        try:
            return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:  # no such user, as in some containers
            pass
    return os.path.realpath(os.path.expanduser("~"))


def _is_outside(path: str, projects: list[str]) -> bool:
    if not os.path.isabs(path) or _is_of_a_process(path):
        return False
    real = os.path.realpath(path)
    return not any(_is_inside(real, project) for project in projects)


def _is_of_a_process(path: str) -> bool:
    """Return whether `path` depends on the process: `/proc/self/cwd/..` is next to any repository."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    named = parts if ".." in parts else parts[:1]
    return sys.platform != "win32" and ("proc" in named or "dev" in named)


def _is_inside(path: str, directory: str) -> bool:
    path, directory = path.casefold(), directory.casefold().rstrip(os.sep)
    return path == directory or path.startswith(directory + os.sep)
