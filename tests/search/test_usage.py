"""How often something was searched for, and pointers were given, and followed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from memkit.paths import Home
from memkit.search import usage


def counts(home: Home) -> tuple[int, int]:
    found = usage.usage(home)
    return found.given, found.followed


def test_searches_are_counted_from_a_time_on(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    assert usage.usage(home) == (0, 0, 0, None, {})
    Path(home.log).mkdir()
    lines = [
        {"time": 100.0, "event": "search", "ids": []},
        {"time": 100.0, "event": "pointers", "ids": ["aaaa"]},
        {"time": 200.0, "event": "search", "ids": []},
        {"time": 200.0, "event": "expand", "ids": ["aaaa"]},
        {"time": "200", "event": "search", "ids": []},  # by whom?
    ]
    Path(home.events_file).write_text("".join(json.dumps(line) + "\n" for line in lines))
    usage.note(home, "search")
    found = usage.usage(home)
    assert found == (4, 1, 1, 100.0, {"prompt": (1, 1)})
    assert usage.usage(home, 150.0) == (2, 0, 0, 200.0, {})
    last = json.loads(Path(home.events_file).read_text().splitlines()[-1])
    assert (set(last), last["ids"]) == ({"time", "event", "ids"}, [])


def test_pointers_given_and_followed_are_counted(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    assert counts(home) == (0, 0)
    usage.note(home, "expand", ["aaaa"])  # before: it follows nothing
    usage.note(home, "pointers", ["aaaa1111", "bbbb2222"])
    usage.note(home, "pointers", ["cccc3333"])
    assert counts(home) == (2, 0)
    usage.note(home, "expand", ["bbbb"])
    usage.note(home, "expand", ["bbbb2222ffff"])  # the same once more
    usage.note(home, "expand", ["dddd"])
    assert counts(home) == (2, 1)
    assert os.stat(home.events_file).st_mode & 0o077 == 0
    with open(home.events_file, "ab") as file:  # damaged lines are skipped
        file.write(b'{"event": "poi\n[]\n\xff\xfe\n{"event": "expand", "ids": [1, null, "cccc3333"]}\n')
    assert counts(home) == (2, 2)


def test_a_search_in_the_same_session_follows_pointers(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    usage.note(home, "pointers", ["aaaa"], kind="failure", session="one")
    usage.note(home, "pointers", ["bbbb"], kind="edit", session="two")
    usage.note(home, "search")  # in a terminal
    assert counts(home) == (2, 0)
    usage.note(home, "search", session="one")
    usage.note(home, "search", session="one")
    assert usage.usage(home).kinds == {"edit": (1, 0), "failure": (1, 1)}
    assert '"one"' not in Path(home.events_file).read_text()


def test_a_full_log_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MOST_BYTES", 200)
    home = Home(str(tmp_path))
    for number in range(50):
        usage.note(home, "pointers", [f"{number:08}"])
    assert sum(path.stat().st_size for path in Path(home.log).iterdir()) < 700
    assert 0 < usage.usage(home).given < 10
