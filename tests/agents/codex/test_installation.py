"""memkit's hooks and skill in Codex's files: exactly these come and go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memkit.agents.codex import installation as codex
from memkit.errors import MemkitError

OTHERS = {
    "description": "mine",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": []}],
    },
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path


def hooks() -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = json.loads(codex.hooks_file().read_text())["hooks"]
    return found


def test_all_of_it_comes_and_goes(home: Path) -> None:
    assert not codex.is_installed()
    assert codex.install(["/old/memkit"]) == []
    assert codex.install(["/my own/memkit"]) == []  # an update moves it
    assert hooks() == {event: [group] for event, group in codex.hooks(["/my own/memkit"]).items()}
    assert "'/my own/memkit' hook codex || echo '{}'" in json.dumps(hooks())
    assert codex.skill_file().read_text() == codex.skill(["/my own/memkit"])
    assert codex.is_installed() and codex.hooks_file().stat().st_mode & 0o777 == 0o600
    codex.uninstall()
    assert not codex.is_installed()
    assert [path.name for path in (home / "codex").rglob("*")] == ["skills"]
    codex.uninstall()


def test_what_others_wrote_stays(home: Path) -> None:
    codex.hooks_file().parent.mkdir()
    codex.hooks_file().write_text(json.dumps(OTHERS, indent=2) + "\n")
    before = codex.hooks_file().read_bytes()
    codex.install(["memkit"])
    assert len(hooks()["Stop"]) == 2 and hooks()["PreToolUse"]
    text = json.loads(codex.hooks_file().read_text())
    text["hooks"]["Stop"].append({"hooks": []})  # behind ours, which keeps its place: Codex trusts it by that
    codex.hooks_file().write_text(json.dumps(text))
    codex.install(["/new/memkit"])
    assert "/new/memkit" in json.dumps(hooks()["Stop"][1])
    del text["hooks"]["Stop"][2]
    codex.hooks_file().write_text(json.dumps(text))
    codex.uninstall()
    assert codex.hooks_file().read_bytes() == before


def test_what_the_user_edited_stays_and_is_named(home: Path) -> None:
    codex.install(["/opt/memkit"])
    text = json.loads(codex.hooks_file().read_text())
    text["hooks"]["Stop"][0]["hooks"][0]["timeout"] = 60
    codex.hooks_file().write_text(json.dumps(text))
    codex.skill_file().write_text(codex.skill_file().read_text().replace("Search", "Look"))
    files = [codex.hooks_file(), codex.skill_file()]
    assert codex.install(["/opt/memkit"]) == files
    codex.uninstall()
    assert codex.edited() == files
    assert hooks() == {"Stop": text["hooks"]["Stop"]}
    assert "Look" in codex.skill_file().read_text()


def test_files_that_are_not_codexs_are_not_changed(home: Path) -> None:
    (home / "codex").mkdir()
    for damaged in ("{", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'):
        codex.hooks_file().write_text(damaged)
        with pytest.raises(MemkitError, match=r"cannot change .*hooks\.json: .*; mend the file"):
            codex.install(["memkit"])
        assert codex.hooks_file().read_text() == damaged and not codex.is_installed()
    codex.hooks_file().unlink()
    codex.hooks_file().symlink_to("/etc/hooks.json")
    with pytest.raises(MemkitError, match="it leads out of"):
        codex.install(["memkit"])
    codex.hooks_file().unlink()
    codex.hooks_file().symlink_to(home / "dotfiles.json")  # a user's own, which stays one
    codex.install(["memkit"])
    assert codex.hooks_file().is_symlink() and (home / "dotfiles.json").exists()
