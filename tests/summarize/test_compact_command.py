"""`memkit compact`: its output, its questions, and the files it leaves alone."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from memkit import Memory, anchors, cli, llm
from memkit.errors import MemkitError
from memkit.index import open_chunks
from memkit.llm import NotConfiguredError, find_provider
from tests.cli.conftest import Outcome, clean_environment
from tests.summarize.stage import SummaryStage

__all__ = ["clean_environment"]


class Terminal(io.StringIO):
    """A stdin that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SummaryStage:
    made = SummaryStage(tmp_path)
    made.add_turn(0, "Which port?", "Port 7443, since 443 is taken.")
    fact = {"text": "The port is 7443.", "kind": "decision", "sources": [1], "replaces": []}
    made.provider.answer = {"facts": [fact]}
    for name, value in {
        "MEMKIT_HOME": made.home.root, "MEMKIT_SUMMARIZE_PROVIDER": "anthropic",
        "MEMKIT_EMBEDDING_PROVIDER": "none",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(llm, "find_provider", lambda settings: made.provider)
    monkeypatch.chdir(made.project.root)
    return made


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], stage: SummaryStage) -> Any:
    def run_here(*arguments: str, typed: str | None = None) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["memkit", "compact", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(str(stop.value.code)), captured.out, captured.err)

    return run_here


def test_no_call_is_made(run: Any, stage: SummaryStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the amount and price are told, without anything selected, over the budget, and where it is off."""
    told = run("--dry-run")
    assert told.status == 0
    assert told.output.startswith("1 entry and 0 known facts: about ")
    assert "in 1 call of claude-haiku-4-5, about $0.00" in told.output
    plan = run("--dry-run", "--json").json
    assert (plan["entries"], plan["calls"], plan["left"]) == (1, 1, 60_000)
    assert "there is no terminal to ask on" in run().errors
    assert run("--since", "2026-11-21", "--yes").output == "The selected memory has nothing to condense.\n"
    assert run("--path", "docs", "--yes", "--json").json["entries"] == 0
    assert run("--into", "journal").status == 2
    monkeypatch.setenv("MEMKIT_SUMMARIZE_DAILY_TOKENS", "500")
    refused = run("--yes")
    assert (refused.status, "today's budget has 500 left" in refused.errors) == (1, True)
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    done = run()
    assert (done.status, done.output.count("\n"), done.errors) == (0, 1, "")
    assert run("--json").json == {"off": True}
    assert stage.provider.tasks == []


def test_a_change_is_shown_and_written_after_a_yes(run: Any, stage: SummaryStage) -> None:
    path = Path(stage.project.memory, "MEMORY.md")
    declined = run(typed="y\nn\n")
    assert "\n+- Decided: The port is 7443. (2026-11-20)\n" in declined.output
    assert declined.output.endswith("Nothing was changed.\n")
    assert not path.exists()
    assert run(typed="n\n").status == 1
    assert len(stage.provider.tasks) == 1
    agreed = run(typed="y\ny\n")
    assert agreed.output.endswith("1 fact added, 0 removed, in 1 call.\n")
    assert anchors.strip(path.read_text()).endswith("- Decided: The port is 7443. (2026-11-20)\n")
    chunks = open_chunks(stage.project, stage.home, stage.settings)
    assert "fact" in [chunk.kind for chunk in chunks.chunks()]


def test_json(run: Any, stage: SummaryStage) -> None:
    path = Path(stage.project.memory, "MEMORY.md")
    path.write_text("# Memory\n")
    shown = run("--json", typed="y\n").json
    assert (shown["written"], shown["kept"], len(shown["added"])) == (False, None, 1)
    assert path.read_text() == "# Memory\n"
    written = run("--json", "--yes").json
    assert written["written"] is True
    assert Path(written["kept"]).read_text() == "# Memory\n"
    assert written["diff"]
    again = run("--since", "2026-11-20", "--json", "--yes").json  # the same answer once more
    assert (again["written"], again["diff"]) == (False, [])


def test_undo_is_shown_and_written_after_a_yes(run: Any, stage: SummaryStage) -> None:
    path = Path(stage.project.memory, "MEMORY.md")
    path.write_text("# Memory\n\nMy text.\n")
    run("--yes")
    compacted = path.read_text()
    assert run("--undo", "--dry-run").output.endswith("Nothing was changed.\n")
    assert run("--undo", typed="n\n").status == 1
    assert "there is no terminal to ask on" in run("--undo").errors
    assert path.read_text() == compacted
    agreed = run("--undo", typed="y\n")
    assert "\n-- Decided: The port is 7443. (2026-11-20)\n" in agreed.output
    assert "<!--" not in agreed.output and "\n+## Facts" not in agreed.output
    assert "The last compaction is undone. The text before is in " in agreed.output
    assert "7443" not in path.read_text()
    assert "My text." in path.read_text()
    chunks = open_chunks(stage.project, stage.home, stage.settings)
    assert "fact" not in [chunk.kind for chunk in chunks.chunks()]
    again = run("--undo", "--yes")
    assert (again.status, again.errors) == (1, f"memkit: there is no compaction to undo in {path}\n")


def test_undo_needs_no_model(run: Any, stage: SummaryStage, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--yes")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    shown = run("--undo", "--json").json
    assert (shown["written"], shown["restored"]) == (False, [])
    assert [line[:30] for line in shown["diff"] if "Decided" in line] == ["-- Decided: The port is 7443. "]
    assert run("--undo", "--json", "--yes").json["written"] is True
    assert "7443" not in Path(stage.project.memory, "MEMORY.md").read_text()
    assert run("--undo", "--since", "2w").status == 2


def test_more_than_a_third_goes_only_after_a_yes_in_a_terminal(run: Any, stage: SummaryStage) -> None:
    path = Path(stage.project.memory, "MEMORY.md")
    texts = [f"Region {name} listens on 7443." for name in ("Alpha", "Beta", "Gamma", "Delta")]
    many = [{"text": one, "kind": "fact", "sources": [1], "replaces": []} for one in texts]
    stage.provider.answer = {"facts": many}
    run("--yes")
    one = {"text": "Each region listens on 7443.", "kind": "fact", "sources": [5], "replaces": [1, 2, 3, 4]}
    stage.provider.answer = {"facts": [one]}
    before = path.read_text()
    again = ("--since", "2026-11-20")
    written = run(*again, "--yes", "--json").json
    assert (written["removed"], len(written["held"])) == (1, 3)
    assert path.read_text().count("- Fact: Region") == 3
    path.write_text(before)
    declined = run(*again, typed="y\nn\ny\n")
    assert "the model replaced 3 more facts than the third that one compaction may remove" in declined.output
    assert path.read_text().count("- Fact: Region") == 3
    path.write_text(before)
    agreed = run(*again, typed="y\ny\ny\n")
    assert "1 fact added, 4 removed, in 1 call. The old text is in " in agreed.output
    assert path.read_text().count("- Fact: ") == 1
    run("--undo", "--yes")
    assert path.read_text().count("- Fact: Region") == 4


def test_the_method_of_programs(stage: SummaryStage, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory(stage.project, home=stage.home)
    told = memory.compact(dry_run=True)
    assert (told.entries, told.plan.calls, told.calls, told.added, told.is_written) == (1, 1, 0, (), False)
    assert not told.path.exists()
    assert memory.compact(since="2026-11-21").entries == 0
    assert stage.provider.tasks == []
    done = memory.compact()
    assert [fact.text for fact in done.added] == ["The port is 7443."]
    assert (done.calls, done.removed, done.held, done.kept, done.is_written) == (1, 0, (), None, True)
    assert "The port is 7443." in done.path.read_text()
    assert "7443" in memory.search("port", k=1).results[0].chunk.content
    assert not memory.compact().is_written  # nothing is new

    monkeypatch.setenv("MEMKIT_SUMMARIZE_DAILY_TOKENS", "500")
    with pytest.raises(MemkitError, match="budget"):
        Memory(stage.project, home=stage.home).compact(since="2026-11-20")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    monkeypatch.setattr(llm, "find_provider", find_provider)
    memory = Memory(stage.project, home=stage.home)
    with pytest.raises(NotConfiguredError, match=r"summarize\.provider is none"):
        memory.compact()
    told = memory.compact(since="2026-11-20", dry_run=True)
    assert (told.entries, told.plan.calls, told.plan.model, told.plan.usd) == (1, 1, "", None)
