"""An update without a network uses the environment of the version before, if it is complete."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from memkit import environment
from tests.ci import only_in_ci
from tests.environment.conftest import StandIn


@pytest.fixture
def updated(stand_in: StandIn) -> StandIn:
    """A memkit that was used once and then updated to a version with an unavailable requirement."""
    stand_in.add_fast_tool()
    assert stand_in.run().returncode == 0
    (old,) = stand_in.environments
    lib = next((stand_in.home / "env" / old / "lib").glob("python*"))
    (lib / "site-packages" / "memkit_stand_in_dependency-1.dist-info").mkdir()
    stand_in.depend_on("memkit-stand.in_dependency>=2", 'only-elsewhere; sys_platform == "other"'.replace('"', "'"))
    return stand_in


def prefix(output: str) -> str:
    return os.path.basename(json.loads(output)["prefix"])


def test_the_earlier_environment_is_used_and_reported_once(updated: StandIn) -> None:
    (old,) = [name for name in updated.environments if name != "failed.json"]
    first = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert first.returncode == 0, first.stderr
    assert prefix(first.stdout) == old
    said = first.stderr.splitlines()[-1]
    assert said.endswith("memkit uses the environment from before the update.")
    builds = len(updated.builds)
    second = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert (second.returncode, second.stderr) == (0, "")
    assert prefix(second.stdout) == old
    assert len(updated.builds) == builds  # not tried again at once


@only_in_ci
def test_the_new_environment_is_built_later(updated: StandIn) -> None:
    updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    failed = Path(environment.failure_file(str(updated.home)))
    record = json.loads(failed.read_text())
    failed.write_text(json.dumps({**record, "time": record["time"] - 7200}))
    (old,) = [name for name in updated.environments if name != "failed.json"]
    done = updated.run()
    assert done.returncode == 0, done.stderr
    assert prefix(done.stdout) != old
    assert not failed.exists()


@pytest.mark.parametrize("lack", ["a package", "its Python"])
@only_in_ci
def test_an_incomplete_environment_is_not_used(updated: StandIn, lack: str) -> None:
    (old,) = [name for name in updated.environments if name != "failed.json"]
    if lack == "a package":
        updated.depend_on("memkit-stand-in-dependency", "memkit-of-tomorrow")
    else:
        shutil.rmtree(updated.home / "env" / old / "lib")
    done = updated.run(TEST_FAILURE="dns error: no network", PIP_NO_INDEX="1")
    assert done.returncode == 1
    assert "from before" not in done.stderr
