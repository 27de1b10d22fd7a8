"""Calls under the daily budget: what is counted, and what is refused before it is sent."""

from __future__ import annotations

import json
import os
import random
import re
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from memkit.llm import (
    ModelError,
    Reply,
    Task,
    TokenUsage,
    UnavailableError,
    UnusableReplyError,
    timeout_error,
)
from memkit.llm.anthropic import AnthropicProvider
from memkit.llm.calls import (
    PROVIDER_TOKENS,
    BudgetReachedError,
    Calls,
    LedgerError,
    is_budget_reached,
)
from memkit.llm.chat_completions import SERVICES, ChatCompletionsProvider
from memkit.llm.ledger import Call, Ledger, total
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.text import estimate_tokens
from tests.llm.chat_server import Answer, running
from tests.llm.tasks import BULLETS, TASK
from tests.messages_api import Failure, MessagesApi

NOW = time.mktime((2026, 11, 20, 12, 0, 0, 0, 0, -1))
LONG = replace(TASK, material="The gateway listens on 7443. " * 400, max_tokens=1000)
READ = estimate_tokens(LONG.instructions) + estimate_tokens(LONG.material)


@dataclass
class Scripted:
    """Answers with `usage` or raises it."""

    usage: TokenUsage | ModelError
    name: str = "anthropic"
    model: str = "claude-haiku-4-5"
    tasks: list[Task] = field(default_factory=list)

    def ask(self, task: Task) -> Reply:
        self.tasks.append(task)
        if isinstance(self.usage, ModelError):
            raise self.usage
        return Reply(BULLETS, self.usage, self.model)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(str(tmp_path / "home"))


def calls_of(home: Home, provider: Scripted) -> Calls:
    return Calls(home, lambda settings: provider, lambda: NOW)


def ask(calls: Calls, settings: SummarizeSettings, task: Task = LONG) -> None:
    with calls.ask(task, settings, "summarize", "/p"):
        pass


def test_usage_that_is_not_reported_counts_as_estimated(home: Home) -> None:
    calls = calls_of(home, Scripted(TokenUsage()))
    ask(calls, SummarizeSettings())
    assert calls.ledger.today(NOW).tokens == READ + PROVIDER_TOKENS + LONG.max_tokens


@pytest.mark.parametrize("share", [0.05, 0.49])
def test_an_answer_to_a_part_of_the_material_is_unusable(home: Home, share: float) -> None:
    """The server cut the rest off without a word."""
    usage = TokenUsage(round(READ * share), 100)
    calls = calls_of(home, Scripted(usage))
    with pytest.raises(UnusableReplyError, match="read only") as raised:
        ask(calls, SummarizeSettings())
    assert f"read only {usage.tokens_in:,} of about {READ:,} tokens" in str(raised.value)
    assert "longer context" in str(raised.value) and "\n" not in str(raised.value)
    (call,) = calls.ledger.calls()
    assert (call.outcome, call.tokens) == ("unusable", usage.tokens_in + 100)


@pytest.mark.parametrize(
    "usage", [TokenUsage(round(READ * 0.55), 100), TokenUsage(READ, 100, cache_read=READ - 10), TokenUsage(0, 100)]
)
def test_an_answer_to_everything(home: Home, usage: TokenUsage) -> None:
    """Tokenizers differ, a cache may have most of it, and some servers do not count."""
    calls = calls_of(home, Scripted(usage))
    ask(calls, SummarizeSettings())
    assert calls.ledger.calls()[0].outcome == "ok"


def test_a_model_that_reads_a_part_only(home: Home) -> None:
    """Over HTTP: the answer of Ollama with the count of a server that cuts at 4,096 tokens."""
    body = {
        "message": {"content": '{"bullets": []}'}, "done_reason": "stop", "prompt_eval_count": 1024, "eval_count": 5,
    }  # fmt: skip
    with running() as server:
        server.script = lambda received: Answer(body)
        settings = SummarizeSettings(provider="ollama", base_url=server.url)
        calls = Calls(home, lambda chosen: ChatCompletionsProvider(SERVICES["ollama"], chosen, {}))
        with pytest.raises(UnusableReplyError, match=r"llama3\.2 at ollama read only 1,024 of"):
            ask(calls, settings)


@pytest.mark.parametrize(
    "answer", [Answer({}, 500), Answer({}, 504), Answer({}, 408), Answer({"choices": []}, share=0.5)]
)
def test_each_request_that_was_read_counts(home: Home, answer: Answer) -> None:
    """A server that reads everything and always fails gets no more tokens than the budget has."""
    with running() as server:
        server.script = lambda received: answer
        settings = SummarizeSettings(base_url=server.url, daily_tokens=30_000)
        provider = ChatCompletionsProvider(SERVICES["openai"], settings, {})
        calls = Calls(home, lambda chosen: provider, lambda: NOW)
        assert_within_budget(calls, settings)
        assert len(server.requests) == calls.made


def test_each_request_of_the_sdk_counts(home: Home) -> None:
    with MessagesApi(lambda request: Failure(500)) as api:
        settings = SummarizeSettings(base_url=api.url, daily_tokens=30_000)
        provider = AnthropicProvider(settings, {"ANTHROPIC_API_KEY": "k"})
        calls = Calls(home, lambda chosen: provider, lambda: NOW)
        assert_within_budget(calls, settings)
        assert len(api.requests) == calls.made


def assert_within_budget(calls: Calls, settings: SummarizeSettings) -> None:
    """Ask until the budget is reached."""
    with pytest.raises(BudgetReachedError):
        for _ in range(20):
            with suppress(ModelError):
                ask(calls, settings)
    today = calls.ledger.today(NOW)
    assert today.calls == calls.made == 30_000 // (READ + PROVIDER_TOKENS + LONG.max_tokens)
    assert calls.made * READ < today.tokens <= 30_000


@pytest.mark.parametrize("seed", range(20))
def test_the_budget_holds(home: Home, seed: int) -> None:
    """Whatever is asked, however it ends: what a provider may have counted never exceeds the budget."""
    chance = random.Random(seed)
    budget = chance.randrange(5_000, 80_000)
    settings = SummarizeSettings(daily_tokens=budget)
    provider = Scripted(TokenUsage())
    spent = refused = 0
    for _ in range(60):
        task = replace(TASK, material="words " * chance.randrange(1, 9_000), max_tokens=chance.randrange(100, 4_000))
        most = estimate_tokens(task.instructions) + estimate_tokens(task.material)
        usage = TokenUsage(chance.randrange(most // 2 + 1, most + PROVIDER_TOKENS), chance.randrange(task.max_tokens))
        worst = most + PROVIDER_TOKENS + task.max_tokens
        endings: dict[str, tuple[TokenUsage | ModelError, int]] = {
            "answered": (usage, usage.tokens_in + usage.tokens_out), "not counted": (TokenUsage(), worst),
            "timeout": (timeout_error("anthropic", 60), worst),
            "unusable": (UnusableReplyError("no", usage), usage.tokens_in + usage.tokens_out),
            "not sent": (UnavailableError("no"), 0),
        }  # fmt: skip
        provider.usage, cost = endings[chance.choice(sorted(endings))]
        before = len(provider.tasks)
        calls = calls_of(home, provider)  # as another process
        try:
            ask(calls, settings, task)
        except BudgetReachedError:
            refused += 1
            assert spent + worst > budget
            assert (calls.made, len(provider.tasks)) == (0, before)
            continue
        except ModelError:
            pass
        assert (calls.made, len(provider.tasks)) == (1, before + 1)
        spent += cost
        assert calls.ledger.today(NOW).tokens == spent <= budget
    assert refused


def test_calls_that_were_refused_are_not_counted(home: Home) -> None:
    calls = calls_of(home, Scripted(TokenUsage(READ, 5)))
    with pytest.raises(BudgetReachedError):
        ask(calls, SummarizeSettings(daily_tokens=100))
    assert (calls.made, calls.ledger.calls()) == (0, [])


# A ledger that cannot be read

DAMAGES = {
    "half a line": b'{"version": 1, "id": "c2", "ti',
    "not UTF-8": "{\"version\": 1}\n".encode("utf-16"),
    "zeros": bytes(300),
    "no call": b'{"id": 7}\n',
    "a list": b"[1, 2]\n",
    "less than nothing": b'{"version":1,"id":"x","time":1795000000,"purpose":"p","provider":"a","model":"m","project":"/p","tokens_in":-99999}\n',
    "no time": b'{"version":1,"id":"x","time":1e300,"purpose":"p","provider":"a","model":"m","project":"/p"}\n',
}


@pytest.mark.parametrize("name", sorted(DAMAGES))
@pytest.mark.parametrize("place", ["start", "end", "everything"])
def test_damage_does_not_reset_the_budget(home: Home, name: str, place: str) -> None:
    """memkit cannot know what was spent today, so it makes no more calls today."""
    settings = SummarizeSettings()
    provider = Scripted(TokenUsage(READ, 5))
    ask(calls_of(home, provider), settings)
    path = Path(home.ledger)
    damage = DAMAGES[name]
    good = path.read_bytes()
    path.write_bytes({"start": damage + b"\n" + good, "end": good + damage, "everything": damage}[place])
    changed(path, NOW)
    calls = calls_of(home, provider)
    for _ in range(3):
        with pytest.raises(LedgerError, match="makes no model calls today"):
            ask(calls, settings)
    assert is_budget_reached(calls.ledger.today(NOW), settings)
    assert calls.plan(1, 1000, "", settings).left == 0
    assert len(provider.tasks) == 1


def test_a_ledger_that_cannot_be_read(home: Home) -> None:
    """One that was cut, a directory in its place, and one of a newer version."""
    provider = Scripted(TokenUsage(READ, 5))
    path = Path(home.ledger)
    ask(calls_of(home, provider), SummarizeSettings())
    os.truncate(path, 0)
    changed(path, NOW)
    with pytest.raises(LedgerError):
        ask(calls_of(home, provider), SummarizeSettings())
    path.unlink()
    path.mkdir()
    with pytest.raises(LedgerError):
        ask(calls_of(home, provider), SummarizeSettings())
    path.rmdir()
    path.write_text('{"version": 99}\n')
    with pytest.raises(LedgerError, match="newer memkit"):
        ask(calls_of(home, provider), SummarizeSettings())
    assert len(provider.tasks) == 1


def test_a_ledger_that_cannot_be_written(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Scripted(TokenUsage(READ, 5))
    calls = calls_of(home, provider)

    def full(call: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(calls.ledger, "record", full)
    with pytest.raises(LedgerError, match="No space left"):
        ask(calls, SummarizeSettings())
    assert (provider.tasks, calls.made) == ([], 0)


def test_old_damage_does_not_matter(home: Home) -> None:
    """The calls go on by themselves: after a night, or when calls of an earlier day follow the damage."""
    provider = Scripted(TokenUsage(READ, 5))
    ask(calls_of(home, provider), SummarizeSettings())
    path = Path(home.ledger)
    path.write_bytes(path.read_bytes() + DAMAGES["half a line"])
    changed(path, NOW)
    day = 86_400.0
    for days in (1, 2, 2, 2, 3):
        later = Calls(home, lambda settings: provider, lambda days=days: NOW + days * day)  # type: ignore[misc]
        ask(later, SummarizeSettings())
        changed(path, NOW + days * day)
    assert len(provider.tasks) == 6


def changed(path: Path, now: float) -> None:
    """Set the time of the last change, because the clock of the test is not the system's."""
    os.utime(path, (now, now))


# The ledger: durable records, damaged lines, and sums


CALL = Call("c1", NOW, "summarize", "anthropic", "claude-haiku-4-5", "/p", 1000, 4000, 0.02)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(Home(str(tmp_path / "home")))


def test_the_end_of_a_call_replaces_its_estimate(ledger: Ledger) -> None:
    ledger.record(CALL)
    assert ledger.today(NOW).tokens == 5000
    ledger.record(replace(CALL, tokens_out=300, usd=0.0025, outcome="ok", seconds=1.5))
    assert [call.tokens for call in ledger.calls()] == [1300]
    assert ledger.today(NOW).failed == 0
    assert ledger.today(NOW + 86_400).calls == 0
    assert ledger.path.stat().st_mode & 0o777 == 0o600


def test_sums(ledger: Ledger) -> None:
    for number, usd in enumerate((None, 0.5, 0.25)):
        ledger.record(replace(CALL, id=f"c{number}", usd=usd, time=NOW + number * 86_400))
    added = total(ledger.calls())
    assert (added.usd, added.unpriced, added.calls) == (0.75, 1, 3)  # an unknown price is not zero
    assert [call.id for call in ledger.calls("2026-11-21")] == ["c1", "c2"]


@pytest.mark.parametrize("damage", [b"{half a line", b"\xff\xfe\n", b"[1, 2]\n", b'{"id": 7}\n', b"\n\n"])
def test_a_damaged_line_loses_only_that_line(ledger: Ledger, damage: bytes) -> None:
    ledger.record(CALL)
    with ledger.path.open("ab") as file:
        file.write(damage)
    ledger.record(replace(CALL, id="c2"))
    assert [call.id for call in ledger.calls()] == ["c1", "c2"]


def test_unreadable_lines_by_day(ledger: Ledger) -> None:
    """Lines before a call of an earlier day are older than today; others are not, if the file changed today."""
    for name, days in (("c1", -2), ("c2", -1), ("c3", 0)):
        ledger.record(replace(CALL, id=name, time=NOW + days * 86_400))
        with ledger.path.open("ab") as file:
            file.write(b"damage\n")
    os.utime(ledger.path, (NOW, NOW))
    assert ledger.unreadable(NOW) == [4, 6]
    assert ledger.today(NOW).unreadable == 2
    os.utime(ledger.path, (NOW - 86_400, NOW - 86_400))
    assert ledger.unreadable(NOW) == []
    assert ledger.today(NOW).unreadable == 0


def test_every_field_is_in_the_manual(ledger: Ledger) -> None:
    ledger.record(CALL)
    page = Path(__file__).resolve().parents[2].joinpath("docs", "file-formats.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in page.partition("## Ledger")[2].splitlines() if row.startswith("|")]
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == json.loads(ledger.path.read_text()).keys()
