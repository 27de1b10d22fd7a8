"""The examples of docs/python.md, run and type-checked as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from memkit import llm
from memkit.paths import Home
from tests.ci import only_in_ci
from tests.memory import DAYS
from tests.summarize.stage import ScriptedProvider
from tests.topics.subjects import days

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (REPOSITORY / "docs" / "python.md").read_text(), re.DOTALL)

CONSUMER = """
from collections.abc import Iterator

from memkit import Memory
from memkit.forget.locations import Locations
from memkit.index import SyncReport
from memkit.journal.digest import Note
from memkit.browse.expand import Section
from memkit.search.results import Answer
from memkit.browse.transcript import Exchange
from memkit.summarize.compaction import CompactionReport
from memkit.timeline.view import TimelineView
from memkit.topics.topic_list import TopicList


def use(memory: Memory) -> None:
    answer: Answer = memory.search("port", k=3)
    sections: list[Section] = memory.expand(answer.results[0].id)
    exchange: Exchange = memory.transcript(turn=sections[0]["turns"][0])
    note: Note = memory.remember(exchange.messages[0].text, "tag")
    found: Locations = memory.forget(note.id, dry_run=True)
    node: TimelineView = memory.timeline("2026-11")
    topics: TopicList = memory.topics()
    facts: CompactionReport = memory.compact(dry_run=True)
    report: SyncReport = memory.index()
    passes: Iterator[SyncReport] = memory.watch()
    print(found.turns, node["next"], topics.find("a").label, facts.plan.usd, report.added, next(passes).added)
    # Each of these is an error only because the types are known: strict reports a comment without need.
    memory.search(5)  # type: ignore[arg-type]
    memory.compact().plan.money  # type: ignore[attr-defined]
    sections[0]["text"]  # type: ignore[typeddict-item]
    node["after"]  # type: ignore[typeddict-item]
    memory.watch().added  # type: ignore[attr-defined]
    memory.search("port", filtres=None)  # type: ignore[call-arg]
    with memory as same:
        same.calendar(2026)  # type: ignore[attr-defined]
"""
"""A program of a user, which must be as strict as they like."""


def test_the_examples_run(
    tmp_path: Path, model_home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = tmp_path / "src" / "shop" / ".memkit" / "memory"
    memory.mkdir(parents=True)
    for name, text in {**DAYS, **days(8)}.items():
        (memory / name).write_text(text)
    home = tmp_path / ".memkit"
    home.mkdir(mode=0o700)
    (home / "models").symlink_to(model_home.models)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MEMKIT_HOME", raising=False)
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "anthropic")
    monkeypatch.setattr(llm, "find_provider", lambda *_, **__: ScriptedProvider())
    names: dict[str, object] = {}
    printed = []
    for example in EXAMPLES:
        exec(compile(example, "docs/python.md", "exec"), names)  # what readers paste
        printed.append(capsys.readouterr().out)
    first, found, changed, sessions, order, nearest, errors = printed
    assert "It listens on 7443" in first
    assert "It listens on 7443" in found
    assert "2026-W47 6" in found
    assert len(re.findall(r"^[0-9a-f]{8} ", found, re.MULTILINE)) >= 2  # topics
    assert "Note: Staging moves to port 7444." in changed
    assert "7444" not in "".join(path.read_text() for path in memory.glob("*.md"))
    assert sessions.splitlines() == [
        "user Why is the nightly build slow?",
        "assistant The compiler's cache was thrown away each time.",
    ]
    assert "1 " in order and "claude-haiku-4-5" in order
    assert nearest.count("'") == 6  # three IDs
    assert "'ffffffff'" in errors


@only_in_ci
def test_a_strict_program(tmp_path: Path) -> None:
    assert (REPOSITORY / "memkit" / "py.typed").exists()
    (tmp_path / "examples.py").write_text("\n".join(EXAMPLES))
    (tmp_path / "consumer.py").write_text(CONSUMER)
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml",
            str(tmp_path / "examples.py"), str(tmp_path / "consumer.py"),
        ],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "Success: no issues found in 2 source files")
