"""Rounds of summaries in the service: when they start, and the pauses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memkit import llm, login
from memkit.hook.notices import note_announced
from memkit.service import job_thread
from memkit.service.job_thread import Summaries
from memkit.settings import load
from tests.summarize.stage import SummaryStage


class Service:
    """A fake service; `now` is its clock, `effort` the CPU seconds of a round."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.stage = SummaryStage(root, **settings)
        self.stage.add_turn(0)
        self.errors: list[str] = []
        self.indexed: list[str] = []
        self.now = 1000.0
        self.worked = self.effort = 0.0
        self.summaries = Summaries(
            self.stage.home,
            lambda _: self.stage.settings,
            self.indexed.append,
            self.errors.append,
            lambda _: (None, ""),
        )

    def look(self, after: float) -> int:
        """Call `look` after some seconds, and return the number of calls so far."""
        self.now += after
        self.summaries.look()
        thread = self.summaries._thread
        if thread is not None:
            thread.join(60)
        assert not self.summaries.is_busy
        return len(self.stage.provider.tasks)


@pytest.fixture
def make(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(**settings: Any) -> Service:
        service = Service(tmp_path_factory.mktemp("service"), **settings)
        monkeypatch.setattr(llm, "find_provider", lambda *_, **__: service.stage.provider)
        monkeypatch.setattr(login, "why_unusable", lambda: "")  # Claude Code is logged in

        def thread_time() -> float:
            service.worked += service.effort
            return service.worked

        clock = SimpleNamespace(monotonic=lambda: service.now, thread_time=thread_time)
        monkeypatch.setattr(job_thread, "time", clock)
        return service

    return make


def test_queued_turns_are_summarized_and_indexed(make: Any) -> None:
    service = make()
    assert service.look(0) == 1
    assert service.indexed == [service.stage.project.root]
    assert len(service.stage.bullets) == 1


def test_a_spent_budget_is_reported_every_quarter_of_an_hour(make: Any) -> None:
    service = make(daily_tokens=3000)
    for _ in range(10):
        assert service.look(61) == 0
    assert len(service.errors) == 1
    service.stage.change(daily_tokens=200_000)
    assert service.look(400) == 1


def test_the_pause_grows_with_the_cpu_time_of_a_round(make: Any) -> None:
    service = make(mode="off")
    service.effort = 30.0  # very many sessions wait
    service.look(0)
    service.stage.change(mode="segment")
    assert service.look(590) == 0
    assert service.look(11) == 1


def test_a_default_asks_nothing_before_the_line_was_shown(make: Any) -> None:
    service = make(provider="auto")
    for _ in range(3):
        assert service.look(61) == 0
    note_announced(service.stage.home)
    assert service.look(61) == 1
    service = make(provider="auto")  # by the user's own choice
    load.save(service.stage.home, load.PROVIDER, "auto")
    assert service.look(0) == 1


def test_imported_turns_are_never_asked_about(make: Any) -> None:
    """Not even where the default is on and the line was shown."""
    service = make(provider="auto")
    for path in Path(service.stage.home.summaries).glob("*.json"):
        path.unlink()
    service.stage.add_turn(90, session="imported", is_live=False)
    note_announced(service.stage.home)
    for _ in range(3):
        assert service.look(3600) == 0


def test_settings_that_cannot_be_read_start_nothing(make: Any) -> None:
    service = make(provider="auto")
    Path(service.stage.home.root).mkdir(exist_ok=True)
    Path(service.stage.home.config_file).write_text("[nonsense")
    assert service.look(0) == 0


def test_a_round_starts_soon_after_the_queue_fills(make: Any) -> None:
    service = make()
    (queued,) = Path(service.stage.home.summaries).glob("*.json")
    kept = queued.read_bytes()
    queued.unlink()
    assert service.look(0) == 0
    queued.write_bytes(kept)
    assert service.look(15) == 1
    service = make()
    service.summaries.stop()
    assert service.look(100) == 0
