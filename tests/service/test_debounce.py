from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memkit.service.debounce import Debouncer

QUIET, LONGEST = 1.5, 10.0

steps = st.lists(
    st.tuples(st.floats(0, 4, allow_nan=False), st.sampled_from(["a", "b", "look"])), max_size=60
)


@given(steps)
def test_a_call_for_each_burst_and_none_without_a_change(steps: list[tuple[float, str]]) -> None:
    debouncer = Debouncer(QUIET, LONGEST)
    now = 0.0
    waiting: dict[str, list[float]] = {}
    for passed, step in steps:
        now += passed
        if step == "look":
            taken = debouncer.take(now)
            due = {
                key
                for key, times in waiting.items()
                if times[-1] + QUIET <= now or times[0] + LONGEST <= now
            }
            assert set(taken) == due
            assert len(taken) == len(due)
            for key in due:
                del waiting[key]
        else:
            debouncer.note(step, now)
            waiting.setdefault(step, []).append(now)
    assert sorted(debouncer.take(now + QUIET)) == sorted(waiting)
    assert debouncer.next_due() is None
    assert debouncer.take(now + LONGEST) == []


@given(steps)
def test_whoever_comes_when_it_is_due_finds_it(steps: list[tuple[float, str]]) -> None:
    debouncer = Debouncer(QUIET, LONGEST)
    now = 0.0
    for passed, step in steps:
        now += passed
        due = debouncer.next_due()
        if due is not None and due <= now:
            assert debouncer.take(due)
        if step != "look":
            debouncer.note(step, now)


def test_a_constant_stream_is_not_put_off_for_ever() -> None:
    debouncer = Debouncer(QUIET, LONGEST)
    calls = []
    for now in range(100):
        debouncer.note("a", float(now))
        calls += [now for _ in debouncer.take(float(now))]
    assert calls == [10, 21, 32, 43, 54, 65, 76, 87, 98]


def test_dropped_is_forgotten() -> None:
    debouncer = Debouncer(QUIET, LONGEST)
    debouncer.note("a", 0.0)
    debouncer.note("b", 1.0)
    debouncer.drop("a")
    debouncer.drop("never noted")
    assert debouncer.take(100.0) == ["b"]
