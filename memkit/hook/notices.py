"""Notices that a session's start shows the user, each once.

A notice is a small file under `run/notices`. Whoever finds a problem writes it. The hook that shows it
renames it. When the problem is gone the file goes too, so that a new problem is shown again.
"""

from __future__ import annotations

import json
import os
import re
from typing import NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.hook.project import Project, digest16
from memkit.paths import OFF_MARKER, Home
from memkit.state import parse_json

MOST_AT_ONCE = 3
"""Further notices wait for the next session."""

LINE_CHARACTERS = 400

_WAITING, _SHOWN = ".json", ".said"
_FOLDER = re.compile(r"^[\w-]{1,200}$", re.ASCII)
_TRANSCRIPT = ".jsonl"


class Notice(NamedTuple):
    """A line for the sessions of the project at `root`, "" for all; `code` identifies its subject."""

    code: str
    line: str
    root: str = ""


def publish(home: Home, notices: list[Notice]) -> int:
    """Let sessions show these notices, each once, and drop all others; return how many are not shown yet.

    Of several with the same code and root, the first counts. Raise `OSError`.
    """
    directory = _directory(home)
    wanted = {_name(one): one for one in reversed(notices)}
    present = _names(home)
    for name, suffix in present:
        if name not in wanted:
            os.unlink(os.path.join(directory, name + suffix))
    shown = {name for name, suffix in present if suffix == _SHOWN}
    new = [name for name in wanted if name not in shown]
    for name in new:
        make_private_directory(directory)
        value = {"root": wanted[name].root, "line": _printable(wanted[name].line)}
        write_durably(os.path.join(directory, name + _WAITING), json.dumps(value).encode("ascii"))
    return len(new)


def take(home: Home, root: str) -> list[str]:
    """Return the lines for a starting session of the project at `root`, and record them as shown."""
    lines: list[str] = []
    for name, suffix in _names(home):
        path = os.path.join(_directory(home), name)
        if suffix != _WAITING or len(lines) == MOST_AT_ONCE:
            continue
        try:
            with open(path + _WAITING, encoding="ascii") as file:
                value = parse_json(file.read())
            if value["root"] in ("", root):
                os.replace(path + _WAITING, path + _SHOWN)
                lines.append(str(value["line"]))
        except (OSError, ValueError, KeyError, TypeError):  # taken by another session, or damaged
            continue
    return lines


def off_notice(home: Home, project: Project) -> str | None:
    """Return, once for each project, a line that memkit is off: a stranger may have added the marker."""
    if not _is_first(os.path.join(home.run, "off-said"), digest16(project.root)):
        return None
    return (
        f"memkit is off in this project because of the file {os.path.join(project.root, OFF_MARKER)}; "
        "it remembers nothing here. Run `memkit on` to turn it on."
    )


def import_notice(home: Home, transcript: str) -> str | None:
    """Return a line on the sessions next to `transcript` that memkit does not know, or None.

    Look once for each of Claude Code's folders; then return None. Raise `OSError`.
    """
    folder, own = os.path.split(transcript)
    name = os.path.basename(folder)
    if not _FOLDER.match(name):  # how Claude Code writes a project's path; it names a file of ours
        return None
    directory = os.path.join(home.run, "import-offered")
    if os.path.exists(os.path.join(directory, name)):
        return None
    count = len(_transcripts(folder, _TRANSCRIPT) - _transcripts(home.sessions, ".json") - {own})
    if not _is_first(directory, name) or not count:
        return None
    earlier = "1 earlier session" if count == 1 else f"{count} earlier sessions"
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    return f"memkit: {earlier} of this project {verb} not in its memory; run `memkit import` to add {them}."


def environment_notice(home: Home) -> str | None:
    """Return a line while memkit's Python environment is missing, once for each reason. Raise `OSError`."""
    from memkit import environment
    from memkit.ipc import launch

    marker = os.path.join(home.run, "environment-notice")
    is_ready = launch.environment_is_ready(home)
    if is_ready and environment.environment_python(home.root, launch.REPOSITORY):
        if os.path.exists(marker):
            os.unlink(marker)
        return None
    failure = environment.last_failure(home.root)
    if failure is None:
        notice = (
            "memkit is building its Python environment in the background (about a minute, once); "
            "it records this session and makes it searchable then."
        )
    else:
        notice = f"memkit could not build its Python environment: {failure.message}"
        if is_ready:
            notice += " It uses the environment from before the update."
    try:
        with open(marker, encoding="utf-8") as file:
            if file.read() == notice:
                return None
    except FileNotFoundError:
        pass
    make_private_directory(home.run)
    with open(marker, "w", encoding="utf-8") as file:
        file.write(notice)
    return notice


def _is_first(directory: str, name: str) -> bool:
    """Create the empty file `name`; return whether it did not exist."""
    make_private_directory(directory)
    try:
        os.close(os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    except FileExistsError:
        return False
    return True


def _transcripts(directory: str, suffix: str) -> set[str]:
    """Return the transcript names of the sessions that have a file with `suffix` in `directory`."""
    try:
        names = os.listdir(directory)
    except OSError:
        return set()
    # Older versions of Claude Code kept the files of sub-agents next to the session's.
    return {
        name[: -len(suffix)] + _TRANSCRIPT
        for name in names
        if name.endswith(suffix) and not name.startswith("agent-")
    }


def _directory(home: Home) -> str:
    return os.path.join(home.run, "notices")


def _names(home: Home) -> list[tuple[str, str]]:
    """Return the files of notices, each as its name and suffix."""
    try:
        found = sorted(os.listdir(_directory(home)))
    except OSError:
        return []
    return [os.path.splitext(name) for name in found if name.endswith((_WAITING, _SHOWN))]


def _name(notice: Notice) -> str:
    return digest16(f"{notice.root}\0{notice.code}")


def _printable(line: str) -> str:
    """Return `line`, which may quote anything, without control characters, shortened."""
    printable = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return printable if len(printable) <= LINE_CHARACTERS else printable[:LINE_CHARACTERS] + " …"
