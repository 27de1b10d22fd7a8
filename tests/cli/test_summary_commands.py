"""`memkit summarize`, `cost` and `grip`, with a scripted model."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from memkit import llm
from memkit.capture.summary_queue import SummaryQueue
from memkit.llm import UnavailableError
from memkit.llm.calls import calls_lock
from memkit.llm.ledger import Call, Ledger
from memkit.settings.load import Settings
from memkit.summarize.summarizer import SummaryReport
from tests.cli.conftest import Outcome, Run, lexical_memory
from tests.memory import Memory, make_memory
from tests.summarize.rollup_stage import every_entry
from tests.summarize.stage import START, ScriptedProvider, SummaryStage, bullet, summary


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


def test_off_is_no_error(run: Run, fresh: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for command in ("summarize", "cost", "status"):
        found = run(fresh, command)
        assert (found.status, found.errors) == (0, "")
    said = run(fresh, "summarize").output
    assert said.startswith("No segment is waiting for an extract; `--since DAY` includes older days.\n")
    assert said.endswith("No model writes summaries, because the program `claude` is not found.\n")
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    # No advice against the user's decision: Claude could follow it.
    said = run(fresh, "summarize").output
    assert said.endswith("No model writes summaries, because summarize.provider is none.\n")
    assert "spent" not in run(fresh, "status").output
    monkeypatch.setenv("MEMKIT_SUMMARIZE_MODE", "off")
    assert "Summaries are off" in run(fresh, "summarize").output
    assert run(fresh, "summarize", "--json").json == {"off": True}
    assert run(fresh, "cost").output == "No model was called.\n"


def test_without_a_model_there_are_extracts(run: Run, fresh: Memory) -> None:
    day = fresh.path("2026-11-18.md")
    asked = "Which port does the staging gateway use?"
    day.write_text(day.read_text().replace(f"**Asked** {asked}", f"**Asked** {asked}\n**Did** Edit gateway.yaml"))
    before = journal(fresh)
    assert summarize(run, fresh, "--dry-run").output.startswith("3 segments would get an extract, without a model")
    assert journal(fresh) == before
    assert summarize(run, fresh).output.startswith("3 segments got an extract, without a model and at no cost.\n")
    assert "\n- Edited: gateway.yaml <!-- grip:" in journal(fresh)
    assert "- Edited: gateway.yaml\n" in run(fresh, "export").output
    assert "No segment is waiting for an extract.\n" in summarize(run, fresh).output
    assert summarize(run, fresh, "--json").json == {"waiting": 0, "extracts": 0}
    assert Ledger(fresh.home).calls() == []
    (grip,) = re.findall(r"gateway.yaml <!-- grip:(\w+)", journal(fresh))
    assert "“Edit gateway.yaml”" in run(fresh, "cite", grip).output


def test_a_dry_run_reports_and_changes_nothing(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    before = journal(fresh)
    said = summarize(run, fresh, "--dry-run").output
    assert re.fullmatch(
        r"3 segments of 6 turns: about [\d,]+ tokens in 2 calls of claude-haiku-4-5, about \$0\.\d+\.\n", said
    )
    plan = summarize(run, fresh, "--dry-run", "--json").json
    assert (plan["segments"], plan["turns"], plan["calls"]) == (3, 6, 2)
    assert plan["left"] == Settings().summarize.daily_tokens
    assert "there is no terminal to ask on; run it in a terminal of your own" in summarize(run, fresh).errors
    assert (model.tasks, journal(fresh)) == ([], before)
    assert Ledger(fresh.home).calls() == []


def test_bullets_are_written_found_and_proved(run: Run, fresh: Memory, model: ScriptedProvider) -> None:
    said = [
        bullet("The staging gateway listens on 7443.", [1], "decision"),
        bullet("Build 9911 was slow.", [2], "problem"),
    ]
    others = [{"number": number, "title": "", "bullets": []} for number in (2, 3)]
    model.answer = {"segments": [*summary(*said)["segments"], *others]}
    assert "3 segments summarized: 2 bullets in 2 calls.\n" in summarize(run, fresh, "--yes").output
    assert not list(SummaryQueue(fresh.home))  # a rollup would wait for them
    assert journal(fresh).count("grip:") == 2
    found = run(fresh, "search", "staging gateway port", "--kind", "summary", "--json").json["results"]
    written = next(one for one in found if one["kind"] == "summary")
    (grip,) = written["citations"]

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
    assert f"memkit cite {grip}" in run(fresh, "expand", written["id"]).output

    # Once more there is nothing to do, and nothing is paid.
    assert "Nothing is waiting" in summarize(run, fresh, "--yes").output
    assert [call.purpose for call in Ledger(fresh.home).calls()] == ["summarize", "check"]


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
    assert "by anthropic; 3 segments pending\n" in status.output
    assert "\nspent      today " in status.output
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


# The rollup of a period that a person names


@pytest.fixture
def old(tmp_path: Path) -> Memory:
    """An imported week and no model's word about it."""
    turns = "".join(
        f"\n## 09:{number:02} Gate {number} <!-- session:5e55{number:04x} -->\n\n"
        f"### 09:{number:02} Which port has gate {number}? <!-- turn:a000{number:04x} -->\n**Answered** It listens on {7000 + number}.\n"
        for number in range(12)
    )
    files = {"2025-03-12.md": f"# 2025-03-12\n{turns}", "2025-06-02.md": "# 2025-06-02\n\nQuiet.\n"}
    return lexical_memory(tmp_path, files)


def test_a_month_that_a_person_asks_for(run: Run, old: Memory, model: ScriptedProvider) -> None:
    model.answer = every_entry
    said = run(old, "summarize", "2025-03", "--dry-run").output
    assert re.fullmatch(
        r"2025-03: 12 entries for 1 rollup\.\nAt most [\d,]+ tokens in 1 call of claude-haiku-4-5, about \$0\.\d+\.\n", said
    )
    plan = run(old, "summarize", "2025-03", "--dry-run", "--json").json
    assert (plan["rollups"], plan["entries"], plan["calls"]) == (["2025-03"], 12, 1)
    assert run(old, "summarize", "2025-03").status == 1  # nobody to ask
    budget = run(old, "--set", "summarize.daily_tokens=1000", "summarize", "2025-03", "--yes")
    assert (budget.status, "Today's budget has only 1,000 tokens left." in budget.output) == (1, True)
    assert budget.errors.endswith("the rollup of 2025-03 is not made yet; what is there stays\n")
    assert model.tasks == []
    found = run(old, "summarize", "2025-03", "--yes")
    assert (found.status, found.errors) == (0, "")
    assert found.output.endswith("1 rollup made in 1 call; `memkit timeline 2025-03` shows what there is.\n")
    assert "Gates and ports" in run(old, "timeline", "2025-03").output
    shown = run(old, "search", "what did we do in March 2025").output
    assert "2025-03 Gates and ports" in shown
    (line, *_) = run(old, "search", "--json", "what did we do in March 2025").json["overview"]["nodes"][0]["lines"]
    assert "It listens on 7000" in run(old, "show", line["citations"][0]).output
    assert run(old, "search", "--json", "gate 3 listens on").json["results"]  # it is indexed
    said = run(old, "summarize", "2025-03", "--yes").output
    assert said == "The rollup of 2025-03 is up to date. `memkit timeline 2025-03` shows it.\n"
    assert run(old, "summarize", "2025-03", "--json").json["calls"] == 0
    assert [call.purpose for call in Ledger(old.home).calls()] == ["rollup"]


def test_what_has_no_rollup(
    run: Run, old: Memory, model: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run(old, "summarize", "2025-06", "--yes").output
    assert said == "2025-06 has 0 entries; a rollup needs 9. `memkit timeline 2025-06` shows it.\n"
    for name in ("2025-03-12", "march", "2025-W60", "\x1b[31m"):
        found = run(old, "summarize", name)
        assert found.status == 2
        assert "is not a week (2026-W14), month (2026-04), or year (2026)" in found.errors
        assert "\x1b" not in found.errors
    assert run(old, "summarize", "2025-03", "--since", "2w").status == 2
    assert "is not over" in run(old, "summarize", "2999").complaint
    assert model.tasks == []
    monkeypatch.setenv("MEMKIT_SUMMARIZE_PROVIDER", "none")
    said = run(old, "summarize", "2025-03").output
    assert said.startswith("No model is set up for this, because summarize.provider is none.\n")
    assert "`memkit timeline 2025-03`" in said
    assert run(old, "summarize", "2025-03", "--json").json == {"off": True}


# Commands of the summaries where something else happens meanwhile, or text would steer the terminal.


ESCAPE = "\x1b]0;owned\x07"  # not what click takes off by itself


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SummaryStage:
    """A session that waits, a model that answers, and settings that name it."""
    stage = SummaryStage(tmp_path)
    stage.add_turn(0, "Which port?", "Port 7443, since 443 is taken.")
    stage.provider.answer = summary(bullet("The gateway listens on 7443.", [1], "finding"))
    Path(stage.home.root, "config.toml").write_text('[summarize]\nprovider = "anthropic"\n')
    monkeypatch.setattr(llm, "find_provider", lambda *_, **__: stage.provider)
    return stage


@pytest.fixture
def memory(stage: SummaryStage, tmp_path: Path, model_home: object) -> Memory:
    return make_memory(tmp_path, home=stage.home, models=model_home.models)  # type: ignore[attr-defined]


def test_nothing_steers_the_terminal(run: Run, memory: Memory, stage: SummaryStage) -> None:
    """A repository brings memory with it, and a server the names of its models."""
    stage.run(60)
    day = Path(stage.project.memory) / "2026-11-20.md"
    day.write_text(
        day.read_text()
        + f"\n- Found: {ESCAPE}it. <!-- grip:abc{ESCAPE}1 turns:0000{ESCAPE},00000000 -->"
        + f"\n- Found: {ESCAPE}it. <!-- grip:abc{ESCAPE}2 turns:00000000 -->\n"
    )
    call = Call("c", START.timestamp(), "summarize", f"x{ESCAPE}", f"y{ESCAPE}", f"/p{ESCAPE}")
    Ledger(stage.home).record(call)
    (waiting,) = SummaryQueue(stage.home)
    assert waiting.root == stage.project.root
    for command in (
        ("cite", f"abc{ESCAPE}1"), ("cite", "abc"), ("cost", "--by", "model"), ("cost", "--by", "project"),
        ("status",),
    ):  # fmt: skip
        shown = run(memory, *command)
        assert shown.output or shown.errors
        assert "\x1b" not in shown.output + shown.errors, command


def test_a_running_round_is_not_paid_for_twice(
    run: Run, memory: Memory, stage: SummaryStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, may_go = threading.Event(), threading.Event()
    stage.now = START.replace(hour=12)

    def round_of_the_service() -> None:
        with calls_lock(stage.home):
            held.set()
            may_go.wait(60)
            stage.summarizer.run(SummaryReport(), lambda: False)

    thread = threading.Thread(target=round_of_the_service)
    thread.start()
    assert held.wait(60)
    # The command has made its plan when it asks whether to start.
    monkeypatch.setattr("memkit.cli.summarize.confirm", lambda question, yes: may_go.set())
    try:
        assert run(memory, "summarize").status == 0
    finally:
        may_go.set()
        thread.join(60)
    assert [call.purpose for call in Ledger(stage.home).calls()] == ["summarize", "check"]
    assert len(stage.bullets) == 1
