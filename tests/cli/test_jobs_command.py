"""`memkit jobs`."""

from __future__ import annotations

from tests.cli.conftest import Run
from tests.memory import Memory


def test_run_pause_and_resume(run: Run, fresh: Memory) -> None:
    listed = run(fresh, "jobs")
    assert "reconcile" in listed.output
    assert "never" in listed.output
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "0 projects up to date"  # none has an index yet
    run(fresh, "index")
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "1 project up to date"
    assert done["index"]["next"] == done["index"]["last"] + 86400
    assert run(fresh, "jobs", "pause", "index", "--json").json["index"]["paused"] is True
    listed = run(fresh, "jobs").output
    assert ", paused\n    1 project up to date\n" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())
    assert run(fresh, "jobs", "resume", "index", "--json").json["index"]["paused"] is False


def test_work_runs_due_jobs(run: Run, fresh: Memory) -> None:
    assert run(fresh, "work").status == 0
    states = run(fresh, "jobs", "--json").json
    assert all(state["last"] > 0 for state in states.values())


def test_wrong_usage(run: Run, fresh: Memory) -> None:
    assert "there is no job" in run(fresh, "jobs", "run", "nothing").complaint
    assert run(fresh, "jobs", "run").status == 2
    assert run(fresh, "jobs", "list", "index").status == 2
