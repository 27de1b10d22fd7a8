"""What a person should hear of once, at the start of the next session.

A small file each under `run/notices`: who finds something writes it, the hook that says it renames it, and
it goes when what was found is gone, so that its return is said again.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json

MOST_AT_ONCE = 3
"""What is more waits for the session after."""

LINE_CHARACTERS = 400

_WAITING, _SAID = ".json", ".said"


class Notice(NamedTuple):
    """A line for the sessions of the project at `root`, "" for all; `code` names what it is about."""

    code: str
    line: str
    root: str = ""


def publish(home: Home, notices: list[Notice]) -> int:
    """Have these said, each once, and forget all others; returns how many are not said yet.

    Of several of one code and root the first counts. Raises `OSError`.
    """
    directory = _directory(home)
    wanted = {_name(one): one for one in reversed(notices)}
    known = _names(home)
    for name, suffix in known:
        if name not in wanted:
            os.unlink(os.path.join(directory, name + suffix))
    said = {name for name, suffix in known if suffix == _SAID}
    new = [name for name in wanted if name not in said]
    for name in new:
        make_private_directory(directory)
        value = {"root": wanted[name].root, "line": _plain(wanted[name].line)}
        write_durably(os.path.join(directory, name + _WAITING), json.dumps(value).encode("ascii"))
    return len(new)


def take(home: Home, root: str) -> list[str]:
    """The lines to be said at the start of a session of the project at `root`, which then count as said."""
    lines: list[str] = []
    for name, suffix in _names(home):
        path = os.path.join(_directory(home), name)
        if suffix != _WAITING or len(lines) == MOST_AT_ONCE:
            continue
        try:
            with open(path + _WAITING, encoding="ascii") as file:
                value = parse_json(file.read())
            if value["root"] in ("", root):
                os.replace(path + _WAITING, path + _SAID)
                lines.append(str(value["line"]))
        except (OSError, ValueError, KeyError, TypeError):  # another session's, or damaged
            continue
    return lines


def _directory(home: Home) -> str:
    return os.path.join(home.run, "notices")


def _names(home: Home) -> list[tuple[str, str]]:
    """The files that are there, each as its name and suffix."""
    try:
        found = sorted(os.listdir(_directory(home)))
    except OSError:
        return []
    return [os.path.splitext(name) for name in found if name.endswith((_WAITING, _SAID))]


def _name(notice: Notice) -> str:
    import hashlib  # hooks only read

    key = f"{notice.root}\0{notice.code}"
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _plain(line: str) -> str:
    """`line`, which may quote anything, without control characters and cut short."""
    plain = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return plain if len(plain) <= LINE_CHARACTERS else plain[:LINE_CHARACTERS] + " …"
