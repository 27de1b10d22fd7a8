"""`memkit sync`: it says what goes where, asks, and another machine has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Run, on_terminal
from tests.maintenance.clones import Person


@pytest.fixture
def people(tmp_path: Path) -> list[Person]:
    """One person at two machines, whose projects memkit knows."""
    (tmp_path / "place").mkdir()
    found = [Person.at(tmp_path / name, "Alex Kim", clone="shop") for name in ("laptop", "desk")]
    for person in found:
        person.note(f"The port of the {person.home.root.split('/')[-2]} is 7443.")
        person.memory.search("port")
    return found


def test_two_machines(run: Run, people: list[Person], tmp_path: Path) -> None:
    laptop, desk = people
    address = f"folder {tmp_path / 'place'}"
    shown = on_terminal(laptop, "sync", *address.split(), answer="n\n", status=1)
    assert "readable for all who can read the place" in " ".join(shown.split())
    assert "name shop" in shown
    assert not list((tmp_path / "place").iterdir())
    assert run(laptop, "sync", *address.split()).status == 1  # nobody to ask
    assert "1 file sent, 0 taken; 0 other machines" in run(laptop, "sync", *address.split(), "--yes").output
    assert "1 file sent, 1 taken; 1 other machine" in run(desk, "sync", *address.split(), "--yes").output
    assert "port of the laptop" in run(desk, "search", "laptop").output
    assert f"{address}; " in run(laptop, "status").output
    (tmp_path / "place").rename(tmp_path / "away")
    assert "connect its drive" in run(laptop, "sync").errors
    assert "the last sync with your other machines failed" in run(laptop, "doctor").output
    run(laptop, "sync", "off")
    assert "no place is set" in run(laptop, "sync").output


def test_a_session_chooses_no_place(run: Run, people: list[Person], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    for more in ((), ("--yes",)):
        assert run(people[0], "sync", "folder", str(tmp_path / "place"), *more).status == 1
    assert not list((tmp_path / "place").iterdir())
