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
from collections.abc import Iterator
from typing import Any, NamedTuple

from memkit.files import PRIVATE_FILE, make_private_directory, rename_over, sync_directory
from memkit.paths import Home
from memkit.state import parse_json

SCHEMA = 1
"""Version of the files' format. A worker refuses files of a newer one."""

MAX_ATTEMPTS = 5
"""After so many failures an event is moved to `failed/`."""

FIRST_RETRY_SECONDS = 30.0
"""Back-off after the first failure; it doubles with each further one."""

LONGEST_RETRY_SECONDS = FIRST_RETRY_SECONDS * 2**MAX_ATTEMPTS
"""No back-off is this long. A later time comes from a clock that was wrong, and is not waited for."""

LEFTOVER_SECONDS = 3600.0
"""After so long a file in `tmp/` has nobody who still writes it."""

PROMPT_EVENT = "UserPromptSubmit"
"""Waits for the turn it begins, so by itself it is no work."""

_FOLDERS = ("tmp", "new", "claimed", "failed")


class Item(NamedTuple):
    """One claimed event: the name of its file and what the hook wrote."""

    name: str
    record: dict[str, Any]


def put(home: Home, record: dict[str, Any]) -> str:
    """Store `record` durably and return its file name. Raises `OSError`."""
    _make_folders(home)
    event = "".join(letter for letter in str(record.get("event", "")) if letter.isalnum())
    name = "{:020d}-{}-{}-{}.json".format(
        time.time_ns(), os.getpid(), os.urandom(4).hex(), event or "unknown"
    )
    _write(home, "new", name, dict(record, schema=SCHEMA))
    return name


def _make_folders(home: Home) -> None:
    for folder in _FOLDERS:
        make_private_directory(os.path.join(home.spool, folder))


def _write(home: Home, folder: str, name: str, record: dict[str, Any]) -> None:
    temporary = _path(home, "tmp", name)
    # A process killed here before may have left a part of the same event.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(record).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())
        rename_over(temporary, _path(home, folder, name))
    except BaseException:
        _remove(temporary)
        raise
    sync_directory(os.path.join(home.spool, folder))


def _path(home: Home, folder: str, name: str) -> str:
    return os.path.join(home.spool, folder, name)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _names(home: Home, folder: str) -> list[str]:
    try:
        return sorted(
            n for n in os.listdir(os.path.join(home.spool, folder)) if n.endswith(".json")
        )
    except FileNotFoundError:
        return []


def waiting(home: Home) -> list[str]:
    """Names of the events in `new/`, oldest first."""
    return _names(home, "new")


def failed(home: Home) -> list[Item]:
    """The events given up, oldest first, each with its `error`."""
    return _items(home, "failed")


def unfinished(home: Home) -> list[Item]:
    """The events that wait or are being worked on, oldest first; one that cannot be read has an `error`."""
    return sorted(_items(home, "claimed") + _items(home, "new"), key=lambda item: item.name)


def claimed(home: Home) -> list[str]:
    """Names of the events that a worker has in hand, or had when it was killed."""
    return _names(home, "claimed")


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


TEXT_FIELDS = ("prompt", "message", "error")
"""Of a record: what was said, and what went wrong with it."""


FORGOTTEN = "what was said is forgotten"
"""In place of the error of an event whose words were taken out."""


def stored(home: Home) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Every file of the spool, with its record; None for one that holds none."""
    for folder in _FOLDERS:
        for name in _names(home, folder):
            path = _path(home, folder, name)
            try:
                yield path, _read(path)
            except FileNotFoundError:  # taken in since the listing
                continue
            except (OSError, ValueError):
                yield path, None


def replace(home: Home, path: str, record: dict[str, Any]) -> None:
    """Replace a record that `stored` named. The caller holds the index lock. Raises `OSError`."""
    folder, name = os.path.split(os.path.relpath(path, home.spool))
    _write(home, folder, name, record)


def forget(home: Home, path: str, record: dict[str, Any]) -> None:
    """Take what was said out of a record that `stored` named; the event itself stays.

    The caller holds the index lock. Raises `OSError`.
    """
    kept = {name: value for name, value in record.items() if name not in TEXT_FIELDS}
    if "error" in record:
        kept["error"] = FORGOTTEN
    replace(home, path, kept)


def remove_unreadable(home: Home, names: list[str]) -> None:
    """Remove files that hold no record, but one of `names`. Raises `OSError`."""
    wanted = [name.encode("utf-8", "surrogateescape") for name in names]
    for path, record in stored(home):
        if record is not None:
            continue
        with open(path, "rb") as file:
            data = file.read()
        if any(name in data for name in wanted):
            _remove(path)


def _read(path: str) -> dict[str, Any]:
    """The record in a file; raises `OSError`, or `ValueError` if there is none in it."""
    with open(path, encoding="utf-8") as file:
        record = parse_json(file.read())
    if not isinstance(record, dict):
        raise ValueError("not a JSON object")
    return record


def has_work(home: Home) -> bool:
    """Whether a worker would find something to do in the spool."""
    return bool(work(home))


def work(home: Home) -> list[str]:
    """Names of the events a worker would handle, oldest first: all but prompts that await their turn."""
    suffix = f"-{PROMPT_EVENT}.json"
    new = [name for name in waiting(home) if not name.endswith(suffix)]
    return sorted(claimed(home) + new)


def recover(home: Home) -> int:
    """Put back what a killed worker had claimed; return how many.

    Only the process that holds the index lock may call this: then no other worker is alive.
    """
    _remove_leftovers(home)
    names = _names(home, "claimed")
    for name in names:
        claimed = _path(home, "claimed", name)
        # Killed while putting it back, or giving it up, itself.
        if any(os.path.exists(_path(home, folder, name)) for folder in ("new", "failed")):
            os.unlink(claimed)
        else:
            os.rename(claimed, _path(home, "new", name))
    return len(names)


def _remove_leftovers(home: Home) -> None:
    """Delete what hooks that were killed left half-written; a live one needs no hour."""
    for name in _names(home, "tmp"):
        try:
            if time.time() - os.path.getmtime(_path(home, "tmp", name)) > LEFTOVER_SECONDS:
                _remove(_path(home, "tmp", name))
        except FileNotFoundError:  # finished since the listing
            pass


def claim(home: Home, name: str, now: float) -> Item | None:
    """Take the event `name`; None if it is gone, not due yet, or unreadable (then it goes to `failed/`).

    `now` is in seconds since the epoch.
    """
    _make_folders(home)  # what copied the home may have left out empty ones
    claimed = _path(home, "claimed", name)
    try:
        os.rename(_path(home, "new", name), claimed)
    except FileNotFoundError:
        return None
    try:
        item = Item(name, _read(claimed))
        is_due = not 0 < not_before(item.record) - now <= LONGEST_RETRY_SECONDS
    except (OSError, ValueError, TypeError):  # moved as it is: somebody may still make sense of it
        os.rename(claimed, _path(home, "failed", name))
        return None
    if not _is_known_schema(item.record):
        schema = item.record.get("schema")
        give_up(home, item, f"written by a newer memkit (schema {schema!r})")
        return None
    if not is_due:
        put_back(home, item)
        return None
    return item


def not_before(record: dict[str, Any]) -> float:
    """When the event may be tried again, in seconds since the epoch; 0 if it may at once.

    Raises `ValueError` or `TypeError` if the record says no time.
    """
    return float(record.get("not_before", 0))


def time_of(record: dict[str, Any]) -> float:
    """When the event happened, in seconds since the epoch; 0 if it does not say."""
    time_of_event = record.get("time")
    return float(time_of_event) if isinstance(time_of_event, (int, float)) else 0.0


def _is_known_schema(record: dict[str, Any]) -> bool:
    schema = record.get("schema")
    return isinstance(schema, int) and schema <= SCHEMA


def time_in(name: str) -> float:
    """When the event of that name was spooled, in seconds since the epoch; infinite if it does not say."""
    digits = name.partition("-")[0]
    return int(digits) / 1e9 if digits.isdigit() else float("inf")


def done(home: Home, item: Item) -> None:
    """Forget an event whose effect is durable."""
    os.unlink(_path(home, "claimed", item.name))


def put_back(home: Home, item: Item) -> None:
    """Return a claimed event unchanged."""
    os.rename(_path(home, "claimed", item.name), _path(home, "new", item.name))


def retry_later(home: Home, item: Item, error: str, now: float) -> bool:
    """Note a failure and return the event for a later try; False if it was given up instead."""
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
    """Put given-up events back with a clean count of attempts; return how many.

    Those that happened before `since`, in seconds since the epoch, are left.
    """
    items = [
        item for item in failed(home) if "event" in item.record and time_of(item.record) >= since
    ]
    for item in items:
        kept = {
            k: v for k, v in item.record.items() if k not in ("attempts", "not_before", "error")
        }
        # In place and then moved, so that it is never in two places for a worker at the same time.
        _write(home, "failed", item.name, kept)
        os.rename(_path(home, "failed", item.name), _path(home, "new", item.name))
    return len(items)
