"""Notices that a session's start shows the user, each once.

A notice is a small file under `run/notices`. Whoever finds a problem writes it. The hook that shows it
renames it. When the problem is gone the file goes too, so that a new problem is shown again.
"""

from __future__ import annotations

import json
import os
import re
import time
from typing import NamedTuple

from memkit import login
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.paths import OFF_MARKER, TEAM_DIRECTORY, Home
from memkit.projects.project import Project, digest16
from memkit.state import parse_json
from memkit.text import printable, shorten

USD_PER_MILLION = 1.43
"""The price of a million tokens of summaries with Claude Haiku 4.5, read and written."""

MOST_AT_ONCE = 3
"""Further notices wait for the next session."""

LINE_CHARACTERS = 400

OWN = "own "
"""Before the folder of the user's own shares, which no notice counts."""

_WAITING, _SHOWN = ".json", ".said"
_CLOCK = digest16("\0clock-behind"), _SHOWN
"""It comes and goes with each event from the future that waits, so it is shown once only."""

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
    wanted = {digest16(f"{one.root}\0{one.code}"): one for one in reversed(notices)}
    present = _names(home)
    for name, suffix in present:
        if name not in wanted and (name, suffix) != _CLOCK:
            os.unlink(os.path.join(directory, name + suffix))
    shown = {name for name, suffix in present if suffix == _SHOWN}
    new = [name for name in wanted if name not in shown]
    for name in new:
        make_private_directory(directory)
        line = shorten(printable(wanted[name].line, "\ufffd"), LINE_CHARACTERS)
        value = {"root": wanted[name].root, "line": line}
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


def first_notice(home: Home) -> str | None:
    """Return, once for each home, a line that memkit has begun. Raise `OSError`."""
    words = "memkit: recording this project from now on; you can search it in about a minute"
    return words if _is_first(home.run, "first-notice") else None


def team_notice(home: Home, project: Project) -> str | None:
    """Return a line, once, on each clone where people share a memory and, once trusted, on each new author.

    Raise `OSError`.
    """
    from memkit.projects import team_files

    root = project.root
    if team_files.is_trusted(home, root):
        new = not_said_yet(home, root, team_files.people(team_files.read_copied(home, root)))
        return (
            f"memkit: new in this repository's memory, which you trust: {', '.join(new)}. See what they "
            "share in .memkit/team; `memkit projects distrust` ends the trust."
        ) if new else None
    if os.path.exists(_said(home, root)) or not (line := untrusted_team(home, project)):
        return None
    return f"memkit: {line}" if not_said_yet(home, root, [""]) else None


def untrusted_team(home: Home, project: Project) -> str:
    """Return a line that others share a memory in this clone, if the user does not trust it; else ""."""
    names = untrusted_people(home, project.root)
    people = "1 person shares" if len(names) == 1 else f"{len(names)} people share"
    return (
        f"{people} a memory in this repository (.memkit/team), which memkit does not read until you "
        "trust it: read it, then run `memkit projects trust` in a terminal of your own."
    ) if names else ""


def untrusted_people(home: Home, root: str) -> list[str]:
    """Return the folders of the others who share in a clone that the user does not trust yet."""
    if not os.path.isdir(os.path.join(root, TEAM_DIRECTORY)):
        return []
    from memkit.projects import team_files

    if team_files.is_trusted(home, root):
        return []
    return [one for one in team_files.authors(root) if not os.path.exists(_said(home, root, OWN + one))]


def not_said_yet(home: Home, root: str, names: list[str]) -> list[str]:
    """Return those of `names` that are recorded for the first time in this clone. Raise `OSError`."""
    return [one for one in names if _is_first(*os.path.split(_said(home, root, one)))]


def _said(home: Home, root: str, name: str = "") -> str:
    return os.path.join(home.run, "team-said", digest16(f"{root}\0{name}" if name else root))


def summaries_notice(home: Home, published: int) -> str | None:
    """Return the line that a person must see before summaries start on their own, None if none is due.

    `published` is their daily budget, 0 if the user has decided about them, negative if unknown. There is no
    line without a login: then there are no summaries.
    """
    if os.path.exists(home.announced) or not (tokens := _undecided_tokens(home, published)):
        return None
    if login.why_unusable():
        return None
    return (
        "memkit: from now on your own Claude Code summarizes your sessions into the project's memory, with "
        f"{budget_words(tokens)}. To turn this off, type `!memkit config set summarize.provider none` here"
    )


def budget_words(tokens: int) -> str:
    """Return what a daily budget of summaries costs."""
    usd = tokens * USD_PER_MILLION / 1e6
    return f"at most {tokens:,} tokens a day (about ${usd:.2f} with Haiku, or a part of your plan)"


def _undecided_tokens(home: Home, published: int) -> int:
    """Return the budget, or 0 if the user may have decided since it was published."""
    try:
        with open(home.config_file, "rb") as file:
            is_named = b"summarize" in file.read()
        if is_named and (
            published < 0 or os.path.getmtime(home.config_file) > os.path.getmtime(home.hook_settings)
        ):
            return 0
    except FileNotFoundError:
        pass
    except OSError:
        return 0
    return published if published >= 0 else login.DEFAULT_TOKENS


def note_announced(home: Home) -> None:
    """Record durably that the line was shown. Raise `OSError`."""
    make_private_directory(home.summaries)
    write_durably(home.announced, time.strftime("%Y-%m-%dT%H:%M:%S%z\n").encode("ascii"))


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
    from memkit.ipc import spool  # once for each folder

    known = {os.path.basename(str(item.record.get("transcript"))) for item in spool.unfinished(home)}
    known |= _transcripts(home.sessions, ".json") | {own}
    count = len(_transcripts(folder, _TRANSCRIPT) - known)
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
    try:
        found = sorted(os.listdir(_directory(home)))
    except OSError:
        return []
    return [os.path.splitext(name) for name in found if name.endswith((_WAITING, _SHOWN))]
