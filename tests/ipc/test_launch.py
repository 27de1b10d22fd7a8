"""What the processes that memkit starts are told of the session they come from."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memkit.ipc import launch
from memkit.ipc.launch import outside_session, worker_environment
from memkit.paths import Home

USER = {
    "PATH": "/usr/bin",
    "ANTHROPIC_API_KEY": "sk-1",
    "CLAUDE_CONFIG_DIR": "/home/me/claude",
    "CLAUDE_CODE_OAUTH_TOKEN": "a-token",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CODE_SKIP_BEDROCK_AUTH": "1",
}
SESSION = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SESSION_ID": "6a09d84f",
    "CLAUDE_ENV_FILE": "/tmp/env",
    "CLAUDE_PLUGIN_ROOT": "/plugin",
    "CLAUDE_PROJECT_DIR": "/project",
}


def test_user_variables_stay_and_session_variables_go() -> None:
    assert outside_session({**USER, **SESSION}) == USER


def test_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**USER, **SESSION, "MEMKIT_HOME": "/another"}.items():
        monkeypatch.setenv(name, value)
    environment = worker_environment(Home("/home/me/.memkit"))
    assert environment.items() >= {**USER, "MEMKIT_HOME": "/home/me/.memkit"}.items()
    assert not environment.keys() & SESSION.keys()


def test_a_long_worker_log_is_renamed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(str(tmp_path / "home"))
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **options: None)
    launch.start(home, "work")
    log = Path(home.worker_log)
    log.write_bytes(b"a" * launch.MAX_LOG_BYTES)
    launch.start(home, "work")
    assert log.stat().st_size == launch.MAX_LOG_BYTES
    log.write_bytes(b"b" * (launch.MAX_LOG_BYTES + 1))
    launch.start(home, "work")
    assert log.stat().st_size == 0
    assert log.stat().st_mode & 0o077 == 0
    assert Path(f"{log}.1").stat().st_size == launch.MAX_LOG_BYTES + 1
