"""Sessions under way, and those whose client is gone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from memkit.capture.sessions import LiveSessions
from memkit.paths import Home


def test_from_start_to_end(tmp_path: Path) -> None:
    live = LiveSessions(Home(str(tmp_path)))
    assert list(live) == []
    live.begin("../../s", "/project", os.getpid())
    (found,) = live
    assert (found.session, found.root, found.client) == ("../../s", "/project", os.getpid())
    live.end("another")
    assert len(list(live)) == 1
    live.end("../../s")
    assert list(live) == []
    live.end("../../s")


def test_a_client_that_is_gone(tmp_path: Path) -> None:
    live = LiveSessions(Home(str(tmp_path)))
    with subprocess.Popen(["sleep", "600"]) as client:
        live.begin("one", "/project", client.pid)
        assert len(list(live)) == 1
        client.kill()
    assert list(live) == []
    assert list(live.directory.iterdir()) == []
    live.begin("two", "/project", client.pid)
    assert list(live) == []
    live.begin("one", "/project", os.getpid())
    (path,) = live.directory.iterdir()
    path.write_text(path.read_text().replace('"created": ', '"created": 1'))  # another process with its ID
    for number, text in enumerate(["", "[]", '{"session": 1}', "{}"]):
        (live.directory / f"{number}.json").write_text(text)
    assert list(live) == []
    assert list(live.directory.iterdir()) == []
