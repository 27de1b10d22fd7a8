"""Find out, from files alone, whether the user's own Claude Code can ask a model.

A key in a shell proves nothing: it may be meant for something else. What counts is what Claude Code itself
keeps: its login, its key, or the way to a model in the user's own settings.

Standard library only, Python 3.9 syntax. Starts no process and sends nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Any

from memkit.files import read_head
from memkit.processes import find_program
from memkit.projects.trust import user_settings
from memkit.state import parse_json

DEFAULT_TOKENS = 60_000
"""The default of `summarize.daily_tokens`, which a hook announces before the settings are published."""

_USER_PROGRAMS = (".claude/local/claude", ".local/bin/claude")
_SYSTEM_PROGRAMS = ("/usr/local/bin/claude", "/opt/homebrew/bin/claude")

_MOST_BYTES = 64 * 1024 * 1024
"""`.claude.json` holds a history too, and may have megabytes."""

_SCOPE = "user:inference"
"""The scope that a login needs."""

_CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLOUD = re.compile(r"CLAUDE_CODE_USE_(BEDROCK|VERTEX|FOUNDRY|MANTLE|ANTHROPIC_AWS)")
_ADDRESS = re.compile(r"ANTHROPIC_(?:[A-Z]+_)?BASE_URL")
_PUBLIC = "https://api.anthropic.com"
_YES = ("1", "true", "yes", "on")

_OF_SHELL = ("ANTHROPIC_", "CLAUDE_CODE_")
"""Beginnings of the variables that would replace the login."""

# Names in a JSON file: a quotation mark inside text has a backslash before it.
_KEY = re.compile(rb'"primaryApiKey"\s*:\s*"[^"]')
_ACCOUNT = re.compile(rb'"oauthAccount"\s*:\s*\{\s*"')


def find_claude(environ: Mapping[str, str]) -> str | None:
    """Return the path of `claude`, from the PATH or where its installers put it, or None."""
    found = find_program("claude", path=environ.get("PATH", os.defpath))
    if found:
        return found
    home = environ.get("HOME", "")
    own = [os.path.join(home, name) for name in _USER_PROGRAMS] if home else []
    return next((path for path in (*own, *_SYSTEM_PROGRAMS) if os.access(path, os.X_OK)), None)


def why_unusable(environ: Mapping[str, str] = os.environ) -> str:
    """Return why Claude Code cannot ask a model here, or "" if it can."""
    if find_claude(environ) is None:
        return "the program `claude` is not found"
    if is_logged_in(environ):
        return ""
    has_key = any(environ.get(name) for name in _CREDENTIALS)
    aside = " (a key in the shell does not count: it may be meant for something else)" if has_key else ""
    return f"Claude Code is not logged in{aside}"


def without_shell_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return `environ` without what Claude Code would use instead of its login: keys, addresses, clouds."""
    return {name: value for name, value in environ.items() if not name.startswith(_OF_SHELL)}


def is_logged_in(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether Claude Code has a login, or the user's own settings for it name a key or a cloud."""
    return bool(way_in(environ))


def way_in(environ: Mapping[str, str] = os.environ) -> str:
    """Return with what Claude Code asks a model, in words, or "" if it cannot."""
    home = environ.get("HOME") or os.path.expanduser("~")
    given = environ.get("CLAUDE_CONFIG_DIR")
    directory = given or os.path.join(home, ".claude")
    login = _object(os.path.join(directory, ".credentials.json")).get("claudeAiOauth")
    if isinstance(login, dict) and login.get("accessToken") and _SCOPE in str(login.get("scopes")):
        return "its login"
    settings = user_settings(environ)
    if settings.get("apiKeyHelper"):
        return "a key in its settings"
    variables = settings.get("env")
    if isinstance(variables, dict) and any(map(_names_a_way, variables, variables.values())):
        return "a key or cloud in its settings"
    state = _read(os.path.join(given or home, ".claude.json"))
    if _KEY.search(state):
        return "its own key"
    # On a Mac the secret is in the keychain, and this mark goes with it when the user logs out.
    return "its login" if sys.platform == "darwin" and _ACCOUNT.search(state) else ""


def sends_elsewhere(raw: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether a session sends its text to another place than Claude Code would in the background.

    `raw` is the session's own environment, `environ` holds the variables of the user. A gateway or cloud that
    the user's settings for Claude Code do not name is known to the session alone.
    """
    names = [name for name in raw if _ADDRESS.fullmatch(name) or _CLOUD.fullmatch(name)]
    own = user_settings(environ).get("env") if names else {}
    own = own if isinstance(own, dict) else {}
    return any(_place(raw[name]) != _place(own.get(name, "")) for name in names)


def _place(value: object) -> str:
    text = str(value).rstrip("/")
    return "" if text == _PUBLIC else text


def _names_a_way(name: str, value: object) -> bool:
    text = str(value).strip()
    return bool(text) and (
        name in _CREDENTIALS or (bool(_CLOUD.fullmatch(name)) and text.lower() in _YES)
    )


def _object(path: str) -> dict[str, Any]:
    try:
        value = parse_json(_read(path) or b"null")
    except ValueError:  # being written, or damaged: Claude Code would not read it either
        return {}
    return value if isinstance(value, dict) else {}


def _read(path: str) -> bytes:
    try:
        return read_head(os.path.realpath(path), _MOST_BYTES)  # settings may be a link to dotfiles
    except OSError:
        return b""
