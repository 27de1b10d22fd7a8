"""`memkit jobs`."""

from __future__ import annotations

import re

from memkit.service.job_book import JobBook
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
    assert done["index"]["schedule"] == "every 1d"
    assert run(fresh, "jobs", "pause", "index", "--json").json["index"]["paused"] is True
    listed = run(fresh, "jobs").output
    assert ", paused\n    1 project up to date\n" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())
    assert run(fresh, "jobs", "resume", "index", "--json").json["index"]["paused"] is False


def test_show(run: Run, fresh: Memory) -> None:
    assert "    last run    never\n    unfinished  none\n" in run(fresh, "jobs", "show", "index").output
    assert run(fresh, "config", "set", "jobs.index", "daily 25:00").status == 1
    assert run(fresh, "config", "set", "jobs.index", "daily 03:00").status == 0
    run(fresh, "jobs", "run", "index")
    book = JobBook(fresh.home)
    book.update("index", begun=1.8e9, checkpoint="/a", progress="1 of 3", error="no room", error_time=1.7e9)
    shown = run(fresh, "jobs", "show", "index").output
    assert shown.startswith("index: update the index of every project\n    schedule    daily 03:00 (jobs.index)\n")
    assert re.search(r"    last run    \d{4}-.*, took \d+\.\d s: 0 projects up to date\n", shown)
    assert re.search(r"    unfinished  begun 2027-.*, 1 of 3 done\n", shown)
    assert re.search(r"    last error  2023-.*: no room\n    next run    \d{4}-.* 03:00", shown)
    assert run(fresh, "jobs", "show", "index", "--json").json["progress"] == "1 of 3"
    run(fresh, "config", "set", "jobs.index", "off")
    assert "next run    off\n" in run(fresh, "jobs", "show", "index").output


def test_work_runs_due_jobs(run: Run, fresh: Memory) -> None:
    assert run(fresh, "work").status == 0
    states = run(fresh, "jobs", "--json").json
    assert all(state["last"] > 0 for state in states.values())


def test_wrong_usage(run: Run, fresh: Memory) -> None:
    assert "there is no job" in run(fresh, "jobs", "run", "nothing").complaint
    assert run(fresh, "jobs", "run").status == 2
    assert run(fresh, "jobs", "list", "index").status == 2
