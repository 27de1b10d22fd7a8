"""A part of the memory as a graph: what is around a topic, a turn, or a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memkit.errors import AmbiguousIdError, NotFoundError
from memkit.interface import InterfaceMemory as FrontDoor
from memkit.topics.compute import refresh
from tests.memory import DAYS, Memory, make_memory
from tests.topics.subjects import days, make_subjects

Graph = dict[str, Any]


def with_files(text: str, *files: str) -> str:
    """A day in which each turn edited these files."""
    calls = " · ".join(f"Edit {name}" for name in files)
    return text.replace("\n**Answered**", f"\n**Did** {calls}\n**Answered**")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """Three topics of 8 turns, each on a file of its own and one of all. Not to be changed."""
    found = make_subjects(tmp_path_factory.mktemp("graph"), embedding={"download": False}, service={"enabled": False})
    for name, text in days(8).items():
        found.write(name, with_files(text, f"src/{name[5:7]}.py", "README.md"))
    found.sync()
    refresh(found.project, found.home, found.settings)
    return found


def front(memory: Memory) -> FrontDoor:
    return FrontDoor(memory.project, home=memory.home, settings_of=lambda _: memory.settings)


def ids(found: Graph, kind: str) -> list[str]:
    return [one["id"] for one in found["nodes"] if one["kind"] == kind]


def edges(found: Graph, kind: str) -> list[tuple[str, str]]:
    """From each turn to topics, or to files."""
    pairs = [(one["from"], one["to"]) for one in found["edges"]]
    return [(one, other) for one, other in pairs if one.startswith("entry:") and other.startswith(f"{kind}:")]


def check(found: Graph, limit: int) -> None:
    known = [one["id"] for one in found["nodes"]]
    assert len(known) == len(set(known)) <= limit
    assert all(one["id"].startswith(f"{one['kind']}:") for one in found["nodes"])
    pairs = [frozenset(one.values()) for one in found["edges"]]
    assert len(pairs) == len(set(pairs))
    assert set().union(*pairs) <= set(known)


def test_limits_and_what_is_not_there(memory: Memory) -> None:
    door = front(memory)
    for limit in (1, 2, 3, 5, 8, 13, 50):
        found = door.graph("file:README.md", limit=limit)
        check(found, limit)
        shown = [one["day"] for one in found["nodes"] if one["kind"] == "entry"]
        assert shown == sorted(shown, reverse=True)
        assert shown[0] == "2026-05-02"
    for around in (
        "", "topic:ffffffff", "topic:", "topic", "file:", "file:nothing.py", "file:../../etc/passwd", "file:src/0",
        "entry:ffffffff", "entry:", ":", "note:1", "x", "entry:5e550000", "file:\udce9",
    ):  # fmt: skip
        with pytest.raises((NotFoundError, AmbiguousIdError)):
            door.graph(around)


def test_around_a_topic_and_a_file(memory: Memory) -> None:
    door = front(memory)
    topic = door.topics(compute=False).topics[0]
    found = door.graph(f"topic:{topic.id}", limit=50)
    check(found, 50)
    assert len(ids(found, "entry")) == 8
    assert {one["topic"] for one in found["nodes"] if one["kind"] == "entry"} == {topic.id}
    assert f"topic:{topic.id}" in ids(found, "topic")
    assert len(ids(found, "file")) == 2
    assert set(edges(found, "topic")) == {(one, f"topic:{topic.id}") for one in ids(found, "entry")}
    small = door.graph(f"topic:{topic.id}", limit=3)
    check(small, 3)
    assert f"topic:{topic.id}" in ids(small, "topic")
    door = front(memory)
    found = door.graph("file:src/04.py", limit=50)
    check(found, 50)
    assert len(ids(found, "entry")) == 8
    assert {one["day"][:7] for one in found["nodes"] if one["kind"] == "entry"} == {"2026-04"}
    assert ids(found, "file") == ["file:src/04.py", "file:README.md"]
    assert len(ids(found, "topic")) == 1
    assert len(ids(door.graph("file:README.md", limit=20), "entry")) == 12
    everything = door.graph("file:README.md", limit=200)
    check(everything, 200)
    assert (len(ids(everything, "topic")), len(ids(everything, "entry"))) == (3, 24)
    assert (len(edges(everything, "topic")), len(edges(everything, "file"))) == (24, 48)
    readme = next(one for one in everything["nodes"] if one["id"] == "file:README.md")
    assert (readme["day"], readme["topic"]) == ("2026-05-02", "")


def test_around_a_turn(memory: Memory) -> None:
    door = front(memory)
    turn = next(iter(door.sessions())).turns[0]
    for name in (turn, turn[:7]):
        found = door.graph(f"entry:{name}", limit=50)
        check(found, 50)
        assert ids(found, "entry")[0] == f"entry:{turn}"
        assert len(ids(found, "entry")) == 8  # those of its topic
        assert set(ids(found, "file")) == {"file:src/05.py", "file:README.md"}
    small = door.graph(f"entry:{turn}", limit=1)
    assert [one["id"] for one in small["nodes"]] == [f"entry:{turn}"]


def test_without_topics(tmp_path: Path) -> None:
    bare = make_memory(tmp_path, DAYS, embedding={"provider": "none"}, service={"enabled": False})
    turn = next(iter(front(bare).sessions())).turns[0]
    found = front(bare).graph(f"entry:{turn}")
    check(found, 200)
    assert ids(found, "entry") and not ids(found, "topic")
    with pytest.raises(NotFoundError, match="no topics yet"):
        front(bare).graph("topic:5f0c0e0a")
