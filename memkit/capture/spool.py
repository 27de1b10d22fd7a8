"""The spool: one durable file for each hook event, in Maildir discipline.

A file is written to `tmp/`, synced, and renamed into `new/`; a worker claims it by renaming it into
`claimed/`, and deletes it when its effect is durable. Names sort by time. Whatever is killed at
whatever instant, an event is either still in the spool or done.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional

from memkit.paths import PRIVATE_FILE, Home, make_private_directory, sync_directory

SCHEMA = 1
"""Version of the files' format. A worker refuses files of a newer one."""

MAX_ATTEMPTS = 5
"""After so many failures an event is moved to `failed/`."""

FIRST_RETRY_SECONDS = 30.0
"""Back-off after the first failure; it doubles with each further one."""

PROMPT_EVENT = "UserPromptSubmit"
"""Waits for the turn it begins, so by itself it is no work."""

_FOLDERS = ("tmp", "new", "claimed", "failed")


class Item(NamedTuple):
    """One claimed event: the name of its file and what the hook wrote."""

    name: str
    record: Dict[str, Any]


def put(home: Home, record: Dict[str, Any]) -> str:
    """Store `record` durably and return its file name. Raises `OSError`."""
    for folder in _FOLDERS:
        make_private_directory(os.path.join(home.spool, folder))
    event = "".join(letter for letter in str(record.get("event", "")) if letter.isalnum())
    name = "{:020d}-{}-{}-{}.json".format(
        time.time_ns(), os.getpid(), os.urandom(4).hex(), event or "unknown"
    )
    _write(home, name, dict(record, schema=SCHEMA))
    return name


def _write(home: Home, name: str, record: Dict[str, Any]) -> None:
    temporary = os.path.join(home.spool, "tmp", name)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(record).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, _path(home, "new", name))
    except BaseException:
        os.unlink(temporary)
        raise
    sync_directory(os.path.join(home.spool, "new"))


def _path(home: Home, folder: str, name: str) -> str:
    return os.path.join(home.spool, folder, name)


def _names(home: Home, folder: str) -> List[str]:
    try:
        return sorted(
            n for n in os.listdir(os.path.join(home.spool, folder)) if n.endswith(".json")
        )
    except FileNotFoundError:
        return []


def waiting(home: Home) -> List[str]:
    """Names of the events in `new/`, oldest first."""
    return _names(home, "new")


def failed(home: Home) -> List[Item]:
    """The events given up, oldest first, each with its `error`."""
    items = []
    for name in _names(home, "failed"):
        try:
            with open(_path(home, "failed", name), encoding="utf-8") as file:
                items.append(Item(name, json.load(file)))
        except (OSError, ValueError):
            items.append(Item(name, {"error": "unreadable spool file"}))
    return items


def has_work(home: Home) -> bool:
    """Whether a worker would find something to do in the spool."""
    suffix = "-{}.json".format(PROMPT_EVENT)
    return bool(_names(home, "claimed")) or any(not n.endswith(suffix) for n in waiting(home))


def recover(home: Home) -> int:
    """Put back what a killed worker had claimed; return how many.

    Only the process that holds the index lock may call this: then no other worker is alive.
    """
    names = _names(home, "claimed")
    for name in names:
        claimed = _path(home, "claimed", name)
        if os.path.exists(_path(home, "new", name)):  # killed while putting it back itself
            os.unlink(claimed)
        else:
            os.rename(claimed, _path(home, "new", name))
    return len(names)


def claim(home: Home, name: str, now: float) -> Optional[Item]:
    """Take the event `name`; None if it is gone, not due yet, or unreadable (then it goes to `failed/`).

    `now` is in seconds since the epoch.
    """
    claimed = _path(home, "claimed", name)
    try:
        os.rename(_path(home, "new", name), claimed)
    except FileNotFoundError:
        return None
    try:
        with open(claimed, encoding="utf-8") as file:
            record = json.load(file)
        problem = None if isinstance(record, dict) else "not a JSON object"
    except (OSError, ValueError) as error:
        record, problem = {}, "unreadable: {}".format(error)
    if problem is None and not _is_known_schema(record):
        problem = "written by a newer memkit (schema {!r})".format(record.get("schema"))
    if problem is not None:
        give_up(home, Item(name, record if isinstance(record, dict) else {}), problem)
        return None
    if float(record.get("not_before", 0)) > now:
        put_back(home, Item(name, record))
        return None
    return Item(name, record)


def _is_known_schema(record: Dict[str, Any]) -> bool:
    schema = record.get("schema")
    return isinstance(schema, int) and schema <= SCHEMA


def done(home: Home, item: Item) -> None:
    """Forget an event whose effect is durable."""
    os.unlink(_path(home, "claimed", item.name))


def put_back(home: Home, item: Item) -> None:
    """Return a claimed event unchanged."""
    os.rename(_path(home, "claimed", item.name), _path(home, "new", item.name))


def retry_later(home: Home, item: Item, error: str, now: float) -> bool:
    """Note a failure and return the event for a later try; False if it was given up instead."""
    attempts = int(item.record.get("attempts", 0)) + 1
    record = dict(item.record, attempts=attempts, error=error)
    if attempts >= MAX_ATTEMPTS:
        give_up(home, Item(item.name, record), error)
        return False
    record["not_before"] = now + FIRST_RETRY_SECONDS * 2 ** (attempts - 1)
    _write(home, item.name, record)
    os.unlink(_path(home, "claimed", item.name))
    return True


def give_up(home: Home, item: Item, error: str) -> None:
    """Move a claimed event to `failed/` with the reason."""
    _write(home, item.name, dict(item.record, error=error))
    os.replace(_path(home, "new", item.name), _path(home, "failed", item.name))
    os.unlink(_path(home, "claimed", item.name))


def retry_failed(home: Home) -> int:
    """Put all given-up events back with a clean count of attempts; return how many."""
    items = failed(home)
    for item in items:
        kept = {
            k: v for k, v in item.record.items() if k not in ("attempts", "not_before", "error")
        }
        if "event" in kept:
            _write(home, item.name, kept)
            os.unlink(_path(home, "failed", item.name))
    return len([item for item in items if "event" in item.record])
