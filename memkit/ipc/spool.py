"""The spool: one durable file for each hook event, without conversation text, in Maildir discipline.

Write a file to `tmp/`, sync it, and rename it into `new/`. A worker claims it by renaming it into
`claimed/`, and deletes it when its effect is durable. Names sort by time. After a kill at any instant, an
event is either still in the spool or done.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any, NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory, rename_over, sync_directory
from memkit.paths import Home
from memkit.state import parse_json

SCHEMA = 1
"""Version of the file format. A worker rejects files of a newer one."""

MAX_ATTEMPTS = 5
"""After this many failures an event moves to `failed/`."""

FIRST_RETRY_SECONDS = 30.0
"""Delay after the first failure; it doubles with each further one."""

LONGEST_RETRY_SECONDS = FIRST_RETRY_SECONDS * 2**MAX_ATTEMPTS
"""No delay is longer. A later time comes from a wrong clock; ignore it."""

LEFTOVER_SECONDS = 3600.0
"""After this long, no hook is still writing a file in `tmp/`."""

_FOLDERS = ("tmp", "new", "claimed", "failed")


class Item(NamedTuple):
    """One claimed event: its file name and what the hook wrote."""

    name: str
    record: dict[str, Any]


def put(home: Home, record: dict[str, Any]) -> str:
    """Store `record` durably and return its file name. Raise `OSError`."""
    _make_folders(home)
    event = "".join(letter for letter in str(record.get("event", "")) if letter.isalnum())
    name = "{:020d}-{}-{}-{}.json".format(
        time.time_ns(), os.getpid(), os.urandom(4).hex(), event or "unknown"
    )
    _write(home, "new", name, dict(record, schema=SCHEMA))
    return name


def waiting(home: Home) -> list[str]:
    """Return the names of the events in `new/`, oldest first."""
    return _names(home, "new")


def claimed(home: Home) -> list[str]:
    """Return the names of the events that a worker is handling, or was when it was killed."""
    return _names(home, "claimed")


def work(home: Home) -> list[str]:
    """Return the names of the events that wait or are claimed, oldest first."""
    # A worker moves events between the two, so the second listing alone could miss one, and the third, too.
    return sorted({*waiting(home), *claimed(home), *waiting(home)})


def failed(home: Home) -> list[Item]:
    """Return the failed events, oldest first; most have an `error`."""
    return _items(home, "failed")


def unfinished(home: Home) -> list[Item]:
    """Return the events that wait or are claimed, oldest first; an unreadable one has an `error`."""
    # In this order, because a worker moves events from `new/`.
    found = {item.name: item for item in _items(home, "new") + _items(home, "claimed")}
    return [found[name] for name in sorted(found)]


def recover(home: Home) -> int:
    """Put back what a killed worker had claimed; return how many. The caller holds the capture lock."""
    _remove_leftovers(home)
    names = claimed(home)
    for name in names:
        path = _path(home, "claimed", name)
        # The worker was killed while it put the event back or gave it up.
        if any(os.path.exists(_path(home, folder, name)) for folder in ("new", "failed")):
            os.unlink(path)
        else:
            os.rename(path, _path(home, "new", name))
    return len(names)


def claim(home: Home, name: str, now: float) -> Item | None:
    """Claim the event `name`; return None if it is gone, not due, or unreadable (then move it to `failed/`).

    `now` is in seconds since the epoch.
    """
    _make_folders(home)  # a copied home may lack empty folders
    path = _path(home, "claimed", name)
    try:
        os.rename(_path(home, "new", name), path)
    except FileNotFoundError:
        return None
    try:
        item = Item(name, _read(path))
        is_due = not 0 < not_before(item.record) - now <= LONGEST_RETRY_SECONDS
    except (OSError, ValueError, TypeError):  # keep it unchanged, for somebody to look at
        os.rename(path, _path(home, "failed", name))
        return None
    schema = item.record.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        give_up(home, item, f"written by a newer memkit (schema {schema!r})")
        return None
    if not is_due:
        put_back(home, item)
        return None
    return item


def done(home: Home, item: Item) -> None:
    """Delete an event whose effect is durable."""
    os.unlink(_path(home, "claimed", item.name))


def put_back(home: Home, item: Item) -> None:
    """Return a claimed event unchanged."""
    os.rename(_path(home, "claimed", item.name), _path(home, "new", item.name))


def retry_later(home: Home, item: Item, error: str, now: float) -> bool:
    """Record a failure and return the event for a later attempt; return False after the last attempt."""
    attempts = item.record.get("attempts", 0)
    attempts = attempts + 1 if isinstance(attempts, int) else 1
    record = dict(item.record, attempts=attempts, error=error)
    if attempts >= MAX_ATTEMPTS:
        give_up(home, Item(item.name, record), error)
        return False
    record["not_before"] = now + FIRST_RETRY_SECONDS * 2 ** (attempts - 1)
    _write(home, "new", item.name, record)
    os.unlink(_path(home, "claimed", item.name))
    return True


def give_up(home: Home, item: Item, error: str) -> None:
    """Move a claimed event to `failed/` with the reason."""
    _write(home, "failed", item.name, dict(item.record, error=error))
    os.unlink(_path(home, "claimed", item.name))


def retry_failed(home: Home, since: float = 0.0) -> int:
    """Put failed events since `since` (epoch seconds) back with no attempts counted; return how many."""
    count = 0
    for name, record in failed(home):
        if "event" in record and time_of(record) >= since:
            for field in ("attempts", "not_before", "error"):
                record.pop(field, None)
            # Change it in place, then move it, so that a worker never sees it in two folders.
            _write(home, "failed", name, record)
            os.rename(_path(home, "failed", name), _path(home, "new", name))
            count += 1
    return count


def not_before(record: dict[str, Any]) -> float:
    """Return when to try again, in epoch seconds; 0 for at once. Raise `ValueError` or `TypeError`."""
    return float(record.get("not_before", 0))


def time_of(record: dict[str, Any]) -> float:
    """Return when the event happened, in seconds since the epoch; 0 if unknown."""
    found = record.get("time")
    return float(found) if isinstance(found, (int, float)) else 0.0


def time_in(name: str) -> float:
    """Return when the event of that name was spooled, in seconds since the epoch; infinity if unknown."""
    digits = name.partition("-")[0]
    return int(digits) / 1e9 if digits.isdigit() else float("inf")


def _make_folders(home: Home) -> None:
    for folder in _FOLDERS:
        make_private_directory(os.path.join(home.spool, folder))


def _write(home: Home, folder: str, name: str, record: dict[str, Any]) -> None:
    temporary = _path(home, "tmp", name)
    # A process that was killed here may have left a part of the same event.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(record).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        rename_over(temporary, _path(home, folder, name))
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_directory(os.path.join(home.spool, folder))


def _path(home: Home, folder: str, name: str) -> str:
    return os.path.join(home.spool, folder, name)


def _names(home: Home, folder: str) -> list[str]:
    try:
        names = os.listdir(os.path.join(home.spool, folder))
    except FileNotFoundError:
        return []
    return sorted(name for name in names if name.endswith(".json"))


def _items(home: Home, folder: str) -> list[Item]:
    items = []
    for name in _names(home, folder):
        try:
            items.append(Item(name, _read(_path(home, folder, name))))
        except FileNotFoundError:  # done since the listing
            continue
        except (OSError, ValueError) as error:
            items.append(Item(name, {"error": f"unreadable: {error}"}))
    return items


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        record = parse_json(file.read())
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return record


def _remove_leftovers(home: Home) -> None:
    for name in _names(home, "tmp"):
        with contextlib.suppress(FileNotFoundError):  # finished since the listing
            if time.time() - os.path.getmtime(_path(home, "tmp", name)) > LEFTOVER_SECONDS:
                os.unlink(_path(home, "tmp", name))
