"""What memkit takes from the environment of a Claude Code session.

A repository's `.claude/settings.json` can set variables. They reach each hook, each command that Claude
runs, and everything these start; nothing tells them from the user's own. So in a session only a known few
count: those that say where the user's things are, and the keys of providers. All others, `MEMKIT_*` settings
among them, count only in the user's own shell.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from memkit.hook.git import worktree_root, worktrees_around

WITHHELD = "http://withheld.invalid"
"""Stands for the address of a provider, so that nothing is sent to another one either."""

_MARKS = ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""What the client itself sets in a session, whatever the settings say."""

_PLACES = frozenset(
    """HOME MEMKIT_HOME CLAUDE_CONFIG_DIR TMPDIR TEMP TMP XDG_RUNTIME_DIR
    USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES PROGRAMFILES(X86) PROGRAMW6432
    SYSTEMROOT WINDIR COMSPEC ALLUSERSPROFILE PUBLIC""".split()
)
"""Paths. They count if they are absolute and lead out of the project."""

_PLAIN = frozenset(
    """USER LOGNAME USERNAME USERDOMAIN COMPUTERNAME LANG LANGUAGE TZ TERM COLUMNS LINES NO_COLOR
    SYSTEMDRIVE HOMEDRIVE HOMEPATH PATHEXT OS NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE
    HTTPS_PROXY NO_PROXY HF_HUB_OFFLINE MEMKIT_CHILD MEMKIT_DISABLE
    ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN CLAUDE_CODE_OAUTH_TOKEN OPENAI_API_KEY GEMINI_API_KEY
    GOOGLE_API_KEY VOYAGE_API_KEY""".split()
)
_PLAIN_BEGINNINGS = ("LC_", "CLAUDE_CODE_USE_", "CLAUDE_CODE_SKIP_")

_ADDRESSES = {
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "GOOGLE_GEMINI_BASE_URL": "https://generativelanguage.googleapis.com",
}
"""Variables that say where a provider is, and its public address."""


_SHELL_FILES = frozenset(
    "HOME ZDOTDIR BASH_ENV ENV CLAUDE_ENV_FILE SHELL CLAUDE_CODE_SHELL CLAUDE_CODE_SHELL_PREFIX".split()
)
"""Each leads to something that the Bash tool's shell runs first."""

_SHELL_CODE = frozenset(("PS4", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND"))
_LIBRARIES = frozenset(("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"))
_USUAL_FUNCTIONS = frozenset("which module ml scl switchml _module_raw _moduleraw".split())
"""Functions that systems export, and that nothing calls on the way to memkit."""


def in_session(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process belongs to a Claude Code session: a hook, or a command that Claude runs."""
    return any(environ.get(name) for name in _MARKS)


def heed_user_only() -> None:
    """In a session, remove from this process's environment what a repository could have set."""
    if in_session():
        kept = of_user(os.environ)
        for name in [name for name in os.environ if name not in kept]:
            del os.environ[name]
        os.environ.update(kept)


def shell_is_users(environ: Mapping[str, str]) -> bool:
    """Whether a shell with a session's raw `environ` runs `memkit` from a place that is the user's.

    The client puts the plugin's `bin` behind what is in `PATH`.
    """
    projects = _projects(environ)
    for name, value in environ.items():
        if name in _SHELL_CODE and value:
            return False
        if name.startswith("BASH_FUNC_") and name[10:].rstrip("%()") not in _USUAL_FUNCTIONS:
            return False
        if name in _SHELL_FILES and value and not _is_plain_path(value, projects):
            return False
        if name in _LIBRARIES and not all(_leads_out(p, projects) for p in re.split("[: ]+", value) if p):
            return False
    return not any(
        part.startswith("~")  # bash itself expands it
        or (not _leads_out(part, projects) and os.path.lexists(os.path.join(part, "memkit")))
        for part in environ.get("PATH", "").split(os.pathsep)
    )


def _is_plain_path(value: str, projects: list[str]) -> bool:
    return _leads_out(value, projects) and not re.search(r"[$`]", value)


def of_user(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a session's `environ` that counts."""
    projects = _projects(environ)
    kept = {}
    for name, value in environ.items():
        upper = name.upper()  # some are also written small, and on Windows case does not matter
        if upper in _PLACES:
            if _leads_out(value, projects):
                kept[name] = value
        elif upper == "PATH":
            parts = [part for part in value.split(os.pathsep) if _leads_out(part, projects)]
            kept[name] = os.pathsep.join(parts)
        elif upper in _PLAIN or upper in _MARKS or upper.startswith(_PLAIN_BEGINNINGS):
            kept[name] = value
        elif value and upper in _ADDRESSES and value.rstrip("/") != _ADDRESSES[upper]:
            kept[name] = WITHHELD
    return kept


def _projects(environ: Mapping[str, str]) -> list[str]:
    """The real paths of the directories that a repository fills."""
    given = [environ.get("CLAUDE_PROJECT_DIR") or os.curdir, os.curdir]
    try:
        real = {os.path.realpath(directory) for directory in given}
    except OSError:  # the working directory is gone
        real = set()
    found = {worktree_root(directory) or directory for directory in real}
    # A linked worktree lies elsewhere than the main one, and a submodule in another repository.
    found.update(worktree for directory in real for worktree in worktrees_around(directory))
    own = _own_directory()
    return [directory for directory in found if not _is_inside(own, directory)]


def _own_directory() -> str:
    """The user's home directory as the system knows it, whatever `HOME` says."""
    if sys.platform != "win32":
        import pwd

        try:
            return os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
        except KeyError:  # a user without an entry, as in some containers
            pass
    return os.path.realpath(os.path.expanduser("~"))


def _leads_out(path: str, projects: list[str]) -> bool:
    if not os.path.isabs(path) or _is_of_a_process(path):
        return False
    real = os.path.realpath(path)
    return not any(_is_inside(real, project) for project in projects)


def _is_of_a_process(path: str) -> bool:
    """Whether `path` goes through what differs by process: `/proc/self/cwd/..` is near any repository."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    named = parts if ".." in parts else parts[:1]
    return sys.platform != "win32" and ("proc" in named or "dev" in named)


def _is_inside(path: str, directory: str) -> bool:
    path, directory = path.casefold(), directory.casefold().rstrip(os.sep)
    return path == directory or path.startswith(directory + os.sep)
