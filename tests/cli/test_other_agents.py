"""Sessions of another agent than Claude Code, from `memkit import` to `memkit resume`."""

from __future__ import annotations

from pathlib import Path

import pytest

from memkit.projects.project import Project
from tests.agents.codex.rollouts import SESSION, Rollout, conversation
from tests.cli.conftest import Run, on_terminal
from tests.memory import Memory


def days(project: Project) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path(project.memory).glob("*.md")}


@pytest.fixture
def rollout(fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A session of Codex in the project, where Codex keeps it."""
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return conversation(fresh.project.root).write(tmp_path / "codex" / "sessions" / "2026" / "03" / "04")


def test_a_session_of_codex(run: Run, fresh: Memory, rollout: Path) -> None:
    found = run(fresh, "import", "--all")
    assert found.status == 0
    assert "Codex: 1 session, the oldest from 2026-03-04\n" in found.errors
    assert "2 turns of 1 transcript, 2 new" in found.output
    day = days(fresh.project)["2026-03-04.md"]
    assert f"session:{SESSION}@codex branch:main" in day
    calls = "exec_command `pytest -q` → failed: 1 failed, 3 passed · apply_patch deploy/gateway.yaml · "
    assert f"**Did** {calls}apply_patch docs/ports.md" in day
    assert run(fresh, "import", "--all", "--json").json["written"] == 0
    assert days(fresh.project)["2026-03-04.md"] == day

    question = ("search", "which port does the gateway use", "--since", "2026-03-04", "--until", "2026-03-04")
    assert f"Codex session {SESSION[:8]}" in run(fresh, *question).output
    (best, *_) = run(fresh, *question, "--agent", "codex", "--json").json["results"]
    assert best["session"] == f"{SESSION}@codex"
    assert run(fresh, *question, "--agent", "claude-code", "--json").json["results"] == []
    listed = run(fresh, "sessions", "--agent", "codex")
    assert "Codex: Which port" in listed.output
    assert len(listed.output.splitlines()) < len(run(fresh, "sessions").output.splitlines())
    assert "apply_patch" in run(fresh, "why", "deploy/gateway.yaml").output or "Codex" in listed.output

    for name in (SESSION[:8], f"{SESSION}@codex"):
        assert "*** Update File: deploy/gateway.yaml" in run(fresh, "transcript", name).output
    resumed = run(fresh, "resume", SESSION[:8], "--json").json
    assert resumed["command"] == f"cd {fresh.project.root} && codex resume {SESSION}"
    rollout.unlink()
    assert "*** Update File: deploy/gateway.yaml" in run(fresh, "transcript", SESSION[:8]).output
    assert "Codex no longer has its transcript" in run(fresh, "resume", SESSION[:8]).output


def test_one_answer_on_a_terminal_lets_the_service_capture_new_sessions(
    run: Run, fresh: Memory, rollout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "XDG_DATA_HOME", "COPILOT_HOME", "CURSOR_DATA_DIR", "GEMINI_CLI_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    question = "Let the service look for new sessions every minute and remember them, too (Codex)?"
    without = {"MEMKIT_EMBEDDING_PROVIDER": "none", "MEMKIT_SUMMARIZE_PROVIDER": "none"}
    config = Path(fresh.home.config_file)
    assert run(fresh, "import", "--all").status == 0
    assert not config.exists()
    for answer, captured in (("y", '["codex"]'), ("n", "[]")):
        config.unlink(missing_ok=True)
        assert question in " ".join(on_terminal(fresh, "import", "--all", answer=f"{answer}\n", **without).split())
        assert f"agents = {captured}" in config.read_text()
        assert "every minute" not in on_terminal(fresh, "import", "--all", **without)
    said = run(fresh, "config", "set", "capture.agents", '["codx"]').complaint
    assert "must be a list of codex, copilot, cursor, gemini or opencode" in said
    assert run(fresh, "config", "set", "capture.agents", "codex").status == 0
    told = ("--set", "service.enabled=true", "status")
    assert "claude-code, codex captured; copilot" in run(fresh, *told).output
    assert run(fresh, *told, "--json").json["agents"] == ["claude-code", "codex"]


def test_a_session_that_goes_on(run: Run, fresh: Memory, rollout: Path) -> None:
    whole = rollout.read_bytes()
    rollout.write_bytes(whole[: whole.index(b"It is written.") + 5])
    assert run(fresh, "import").status == 0
    assert "It listens on 7443." not in days(fresh.project)["2026-03-04.md"]
    rollout.write_bytes(whole)
    assert run(fresh, "import").status == 0
    day = days(fresh.project)["2026-03-04.md"]
    assert day.count("<!-- turn:") == 2
    assert day.count("**Answered** It listens on 7443.") == 1


def test_a_file_of_another_project_is_left_alone(run: Run, fresh: Memory, rollout: Path) -> None:
    Rollout("/no/such/shop").prompt("Why?", 1).answer("So.").write(rollout.parent)
    assert run(fresh, "import", "--json").json["turns"] == 0
