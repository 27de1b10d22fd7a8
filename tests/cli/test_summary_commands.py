"""`memkit summarize`, `cost` and `grip`, with a scripted model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memkit import llm
from memkit.llm import UnavailableError
from memkit.llm.ledger import Ledger
from memkit.settings.load import Settings
from tests.cli.conftest import Outcome, Run
from tests.memory import Memory
from tests.summarize.stage import ScriptedProvider, bullet


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    """Summaries are on, and this model writes them."""
    provider = ScriptedProvider()
    monkeypatch.setattr(llm, "find_provider", lambda settings: provider)
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "anthropic")
    return provider


def journal(memory: Memory) -> str:
    return "".join(path.read_text() for path in sorted(Path(memory.project.memory).glob("*.md")))


def summarize(run: Run, memory: Memory, *arguments: str) -> Outcome:
    return run(memory, "summarize", "--since", "2026-11-18", *arguments)


def test_off_is_no_error(run: Run, fresh: Memory) -> None:
    for command in ("summarize", "cost", "status"):
        found = run(fresh, command)
        assert (found.status, found.errors) == (0, "")
    assert "Summaries are off" in run(fresh, "summarize").output
    assert run(fresh, "summarize", "--json").json == {"off": True}
    assert run(fresh, "cost").output == "No model was called.\n"


def test_a_dry_run_reports_and_changes_nothing(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    before = journal(fresh)
    said = summarize(run, fresh, "--dry-run").output
    assert re.fullmatch(
        r"3 segments of 6 turns: about [\d,]+ tokens in 1 call of claude-haiku-4-5, about \$0\.\d+\.\n", said
    )
    plan = summarize(run, fresh, "--dry-run", "--json").json
    assert (plan["segments"], plan["turns"], plan["calls"]) == (3, 6, 1)
    assert plan["left"] == Settings().summarize.daily_tokens
    assert (model.tasks, journal(fresh)) == ([], before)
    assert Ledger(fresh.home).calls() == []


def test_nobody_is_asked_without_a_terminal(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    found = summarize(run, fresh)
    assert found.status == 1
    assert found.errors == "memkit: this needs confirmation, but there is no terminal to ask on; the user can run it in a terminal\n"
    assert model.tasks == []


def test_bullets_are_written_found_and_proved(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    model.answer = {
        "bullets": [
            bullet("The staging gateway listens on 7443.", [1], "decision"),
            bullet("Build 9911 was slow.", [2], "problem"),
        ]
    }
    assert "3 segments summarized: 2 bullets in 1 call.\n" in summarize(run, fresh, "--yes").output
    assert journal(fresh).count("grip:") == 2
    found = run(fresh, "search", "staging gateway port", "--json").json["results"]
    summary = next(one for one in found if one["kind"] == "summary")
    (grip,) = summary["citations"]

    proof = run(fresh, "cite", grip[:5], "--json").json
    assert proof["bullet"] == "Decided: The staging gateway listens on 7443."
    assert proof["verified"] is True
    assert (proof["source"], proof["events"]) == ("journal", [])  # neither transcript nor archive
    assert "It listens on 7443, 443 is taken." in proof["excerpt"]
    said = run(fresh, "cite", grip).output
    assert "“" in said
    assert "from the journal, turns" in said

    doubtful = run(fresh, "search", "slow build 9911", "--kind", "unverified", "--json").json
    assert [one["content"] for one in doubtful["results"]] == ["- Problem: Build 9911 was slow. (unverified)"]
    assert f"memkit cite {grip}" in run(fresh, "expand", summary["id"]).output

    # Once more there is nothing to do, and nothing is paid.
    assert "Nothing is waiting" in summarize(run, fresh, "--yes").output
    assert len(model.tasks) == 1


def test_the_cost_is_shown(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    summarize(run, fresh, "--yes")
    (usage,) = model.used
    value = run(fresh, "cost", "--by", "model", "--json").json
    (group,) = value["groups"]
    assert group["model"] == "anthropic claude-haiku-4-5"
    assert (group["tokens_in"], group["tokens_out"]) == (usage.tokens_in, usage.tokens_out)
    dollars = (usage.tokens_in + 5 * usage.tokens_out) / 1_000_000
    assert group["usd"] == pytest.approx(dollars)
    said = run(fresh, "cost", "--by", "project").output
    assert fresh.project.root.rsplit("/", 1)[-1] in said.replace("\n", "")
    assert "1 call, " in said
    assert run(fresh, "cost", "--since", "2100-01-01").output == "No model was called.\n"


def test_a_failure_is_reported_and_leaves_the_memory(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    model.answer = UnavailableError("anthropic is overloaded; try again later")
    before = journal(fresh)
    found = summarize(run, fresh, "--yes")
    assert found.status == 1
    assert "memkit: anthropic is overloaded; try again later\n" in found.errors
    assert journal(fresh) == before
    status = run(fresh, "status")
    assert "by anthropic; 3 segments pending" in status.output
    assert "not summarized yet: anthropic is overloaded" in status.errors


def test_the_budget_is_reported(
    run: Run, fresh: Memory, model: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIT_SUMMARIZE_DAILY_TOKENS", "100")
    found = summarize(run, fresh, "--yes")
    assert "Today's budget has only 100 tokens left" in found.output
    assert "raise summarize.daily_tokens" in found.errors
    assert model.tasks == []
    assert "today's budget is used up" in run(fresh, "status").output


def test_an_unknown_citation(run: Run, fresh: Memory) -> None:
    assert "has the citation 'abc'" in run(fresh, "cite", "abc").complaint
    assert "has the citation ''" in run(fresh, "cite", "").complaint


def test_grip_is_a_hidden_alias_of_cite(run: Run, fresh: Memory) -> None:
    assert run(fresh, "grip", "abc").complaint == run(fresh, "cite", "abc").complaint
    assert "memkit cite" in run(fresh, "grip", "--help").output
    overview = run(fresh, "--help").output
    assert "cite" in overview
    assert "grip" not in overview
