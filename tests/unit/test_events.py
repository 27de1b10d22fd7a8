"""How often pointers were given, and followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memkit import events
from memkit.paths import Home


def test_given_and_followed(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    assert events.pointer_counts(home) == {"given": 0, "followed": 0}
    events.note(home, "expand", ["aaaa"])  # before: it follows nothing
    events.note(home, "pointers", ["aaaa1111", "bbbb2222"])
    events.note(home, "pointers", ["cccc3333"])
    assert events.pointer_counts(home) == {"given": 2, "followed": 0}
    events.note(home, "expand", ["bbbb"])
    events.note(home, "expand", ["bbbb2222ffff"])  # the same once more
    events.note(home, "expand", ["dddd"])
    assert events.pointer_counts(home) == {"given": 2, "followed": 1}
    assert os.stat(home.events_file).st_mode & 0o077 == 0


def test_a_full_log_rotates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_BYTES", 200)
    home = Home(str(tmp_path))
    for number in range(50):
        events.note(home, "pointers", [f"{number:08}"])
    assert sum(path.stat().st_size for path in Path(home.log).iterdir()) < 700
    assert 0 < events.pointer_counts(home)["given"] < 10


def test_what_is_damaged_is_passed_over(tmp_path: Path) -> None:
    home = Home(str(tmp_path))
    events.note(home, "pointers", ["aaaa"])
    with open(home.events_file, "ab") as file:
        file.write(b'{"event": "poi\n[]\n\xff\xfe\n{"event": "expand", "ids": [1, null, "aaaa"]}\n')
    assert events.pointer_counts(home) == {"given": 1, "followed": 1}
