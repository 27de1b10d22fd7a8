"""`memkit jobs`."""

from __future__ import annotations

import re

from memkit.service.jobs import JobBook
from tests.cli.conftest import Run
from tests.memory import Memory


def test_list_and_run(run: Run, fresh: Memory) -> None:
    listed = run(fresh, "jobs")
    assert "reconcile" in listed.output
    assert "never" in listed.output
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "0 projects up to date"  # none has an index yet
    run(fresh, "index")
    done = run(fresh, "jobs", "run", "index", "--json").json
    assert done["index"]["result"] == "1 project up to date"
    assert done["index"]["next"] == done["index"]["last"] + done["index"]["every_seconds"]
    listed = run(fresh, "jobs").output
    assert "\n    1 project up to date\n" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())


def test_show(run: Run, fresh: Memory) -> None:
    assert "    last run  never\n" in run(fresh, "jobs", "show", "index").output
    run(fresh, "jobs", "run", "index")
    shown = run(fresh, "jobs", "show", "index").output
    assert shown.startswith("index: daily: update the index of every project\n")
    assert re.search(r"    last run  \d{4}-.*, took \d+\.\d s: 0 projects up to date\n    next run  \d{4}-", shown)
    JobBook(fresh.home).update("index", failed=True, result="no room")
    assert "failed: no room" in run(fresh, "jobs", "show", "index").output
    assert run(fresh, "jobs", "show", "index", "--json").json["failed"] is True
    assert run(fresh, "config", "set", "jobs.index", "daily").status == 1
    run(fresh, "config", "set", "jobs.index", "off")
    assert "next run  off\n" in run(fresh, "jobs", "show", "index").output


def test_work_runs_due_jobs(run: Run, fresh: Memory) -> None:
    assert run(fresh, "work").status == 0
    states = run(fresh, "jobs", "--json").json
    assert all(state["last"] > 0 for state in states.values())


def test_wrong_usage(run: Run, fresh: Memory) -> None:
    assert "there is no job" in run(fresh, "jobs", "run", "nothing").complaint
    assert run(fresh, "jobs", "run").status == 2
    assert run(fresh, "jobs", "list", "index").status == 2
