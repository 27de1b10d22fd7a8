"""`memkit import` of what the client has, and `memkit setup`."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from memkit import __version__
from memkit.agents.sources import find_sources
from memkit.capture.importer import Importer, ImportSelection
from memkit.environment import launcher_path, launcher_text, write_launcher
from memkit.hook.notices import note_announced
from memkit.projects.project import Project
from memkit.settings.load import Settings
from tests.browse.test_transcript import SESSION, conversation, write
from tests.builders import Lines, entries
from tests.cli.conftest import Run, environment, on_terminal
from tests.memory import Memory

OTHER = "aaaaaaaa-7d4e-4b8a-9f15-0c6d2e8b7a44"


def session(claude: Path, cwd: str, name: str = SESSION) -> Path:
    """Three turns that were held in `cwd`, where the client keeps them."""
    lines = [{**line, "cwd": cwd, "sessionId": name} for line in conversation()]
    if name != SESSION:
        for line in lines:
            line["uuid"] = line["uuid"].replace("aaaa", "bbbb")
            if "promptId" in line:
                line["promptId"] = line["promptId"].replace("1111", "2222")
    return write(claude / "projects" / cwd.replace("/", "-") / f"{name}.jsonl", lines)


@pytest.fixture
def claude(fresh: Memory, tmp_path: Path) -> Path:
    """The client's directory: a session of the project, one of a directory that is gone."""
    claude = tmp_path / "claude"
    session(claude, fresh.project.root)
    session(claude, "/no/such/shop", OTHER)
    typed = {"display": "Swept?", "timestamp": 1_770_000_000_000, "project": fresh.project.root}
    (claude / "history.jsonl").write_text(json.dumps(typed) + "\n")
    return claude


def turns(project: Project) -> int:
    return sum(entries(path.read_text()).count("<!-- turn:") for path in Path(project.memory).glob("*.md"))


def test_an_import_says_what_came_of_each_new_session(run: Run, fresh: Memory, tmp_path: Path) -> None:
    lines = Lines().prompt("Which port?", "p1", cwd=fresh.project.root).answer("Shall I use 7443?")
    lines.prompt("We'll use 7443 for the gateway, not 443.", "p2", cwd=fresh.project.root)
    lines.call("Edit", "c1", file_path="gateway.yaml").result("c1", "done").answer("It listens on 7443.")
    lines.write(tmp_path)
    arguments = ("import", "--project", fresh.project.root, str(tmp_path))
    assert run(fresh, *arguments).status == 0
    (path,) = Path(fresh.project.memory).glob("2026-03-04.md")
    written = path.read_text()
    assert re.search(r"^- Decided: We'll use 7443 .* by:extract -->$", written, re.M)
    assert re.search(r"^- 10:00.* 2 turns → Decided: We'll use 7443", written, re.M)
    assert list(Path(fresh.home.index, "timeline").glob("*/2026-03.json"))  # its first use will be fast
    assert run(fresh, *arguments).status == 0
    assert path.read_text() == written
    path.write_text(re.sub(r"\n- .*(?=\n)|(?: extract:\w+)", "", written))  # as an earlier version wrote it
    earlier = path.read_text()
    assert run(fresh, *arguments).status == 0
    assert "by:extract" not in path.read_text()
    assert entries(path.read_text()) == entries(earlier)


def test_without_arguments_the_sessions_of_the_project(run: Run, fresh: Memory, claude: Path) -> None:
    before = turns(fresh.project)
    found = run(fresh, "import")
    assert (found.status, found.errors) == (0, "")
    assert found.output == (
        "1 prompt of deleted sessions, 1 new.\n"
        f"4 turns of 1 transcript, 4 new.\nRemembered in {fresh.project.root}\n"
    )
    assert turns(fresh.project) == before + 4
    assert not Project.at_root("/no/such/shop", fresh.home).is_off
    assert not Path(Project.at_root("/no/such/shop", fresh.home).root).exists()
    (result,) = run(fresh, "search", "--json", "-k", "1", "third question").json["results"]
    assert "third answer" in result["content"]


def test_what_an_import_takes_and_a_dry_run(run: Run, fresh: Memory, claude: Path, tmp_path: Path) -> None:
    before = sorted(path for path in claude.parent.rglob("*") if "models" not in path.parts)
    value = run(fresh, "import", "--all", "--dry-run", "--json").json
    assert (value["sessions"], value["turns"], value["typed"], value["days"]) == (2, 7, 1, 3)
    assert value["bytes"]["memory"] > 0
    said = run(fresh, "import", "--dry-run").output
    assert said.startswith("1 session, 4 turns, 1 of them prompts from deleted sessions; 2 day files")
    after = sorted(path for path in claude.parent.rglob("*") if "models" not in path.parts)
    assert [path for path in after if path not in before and "log" not in path.parts] == []
    assert run(fresh, "import", "--since", "2026-11-21", "--json").json["turns"] == 0
    assert run(fresh, "import", "--since", "2026-11-20", "--json").json["turns"] == 3
    assert "is not a day" in run(fresh, "import", "--since", "someday").complaint
    (other := tmp_path / "other").mkdir()
    assert run(fresh, "import", "--project", str(other), "--json").json["turns"] == 0
    value = run(fresh, "import", str(claude), "--project", str(other), "--json").json
    assert value["projects"] == [str(other)]
    for others in (["x.jsonl"], ["--project", "."]):
        assert run(fresh, "import", "--all", *others).status == 2


def test_other_projects_that_a_file_names_are_shown_and_asked_for(
    run: Run, fresh: Memory, tmp_path: Path
) -> None:
    victim = tmp_path / "user" / "victim"
    victim.mkdir(parents=True)
    path = session(tmp_path / "given", str(victim))
    refused = run(fresh, "import", str(path))
    assert refused.status == 1
    assert "~/victim (no memory yet)" in refused.errors
    assert "no terminal to ask on" in refused.errors
    assert list(victim.iterdir()) == []
    assert run(fresh, "import", str(path), "--dry-run", "--json").json["projects"] == [str(victim)]
    assert run(fresh, "import", str(path), "--yes", "--json").json["projects"] == [str(victim)]
    assert turns(Project(str(victim))) == 3
    far = tmp_path / "far"
    far.mkdir()
    path = session(tmp_path / "more", str(far))
    said = run(fresh, "import", str(path), "--yes")
    assert said.status == 0
    assert f"left out: {far} is not below your home and has no memory yet" in said.errors
    assert list(far.iterdir()) == []
    Path(Project(str(far)).memory).mkdir(parents=True)
    assert run(fresh, "import", str(path), "--yes", "--json").json["projects"] == [str(far)]


def test_no_memory_is_made_in_a_place_of_the_system_or_of_keys(
    run: Run, fresh: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "user" / ".ssh"
    keys.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    session(tmp_path / "given", "/etc")
    session(tmp_path / "given", str(keys), OTHER)
    sources = find_sources([tmp_path / "given"])
    selection = ImportSelection(fresh.home, sources, fresh.project, is_named=True)
    names = sorted(Path(root).name.rpartition("-")[0] for root in selection.targets)
    assert {Path(root).parent for root in selection.targets} == {Path(fresh.home.projects)}
    assert names == [".ssh", "etc"]
    run_import = Importer(selection, Settings())
    assert run_import.run(lambda read: None).total.written == 6
    assert list(keys.iterdir()) == []
    assert not Path("/etc/.memkit").exists()
    (keys / ".memkit" / "memory").mkdir(parents=True)  # a person has memkit remember there
    assert str(keys) in selection.targets


class TestSetup:
    """`memkit setup`, with a `claude` that only logs its arguments."""

    @pytest.fixture
    def asked(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """The log of `claude`, which has the plugin after a command to install it."""
        asked = tmp_path / "asked"
        script = tmp_path / "bin" / "claude"
        script.parent.mkdir()
        script.write_text(
            f'#!/bin/sh\necho "$*" >> "{asked}"\ncase "$*" in\n'
            "--version) echo '2.1.197 (Claude Code)';;\n"
            f"'plugin list --json') if grep -q 'plugin install' \"{asked}\"; then "
            'echo \'[{"id": "memkit@memkit", "enabled": true}]\'; else echo "[]"; fi;;\n'
            f'"plugin install"*) if [ -e "{tmp_path}/refuses" ]; then echo "no network" >&2; exit 1; fi;;\n'
            "esac\n"
        )
        script.chmod(stat.S_IRWXU)
        monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
        return asked

    def steps(self, run: Run, memory: Memory, *arguments: str) -> dict[str, Any]:
        steps: dict[str, Any] = run(memory, "setup", "--json", *arguments).json["steps"]
        return steps

    def test_everything_and_again(self, run: Run, fresh: Memory, claude: Path, asked: Path) -> None:
        steps = self.steps(run, fresh, "--yes")
        names = ["python", "disk", "model", "claude", "plugin", "launcher", "summaries", "agents", "import"]
        assert list(steps) == names
        assert {step["state"] for step in steps.values()} == {"ok"}
        assert "plugin install memkit@memkit\n" in asked.read_text()
        assert steps["import"]["said"] == "7 turns, 7 new, in 2 projects"
        before = asked.read_text()
        again = run(fresh, "setup", "--yes").output
        assert "plugin    ok       memkit@memkit is already installed" in again
        assert "no new sessions" in again
        assert asked.read_text() == before + "--version\nplugin list --json\n"

    def test_nothing_changes_without_consent(self, run: Run, fresh: Memory, claude: Path, asked: Path) -> None:
        before = turns(fresh.project)
        found = run(fresh, "setup")
        said = " ".join(found.output.split())  # it is wrapped
        assert (found.status, "no terminal to ask on" in said, "2 sessions" in said) == (0, True, True)
        skipped = ("plugin", "import", "launcher")
        steps = self.steps(run, fresh, "--yes", *(word for name in skipped for word in ("--skip", name)))
        assert [steps[name]["state"] for name in skipped] == ["skipped"] * 3
        assert not launcher_path().exists()
        assert "install" not in asked.read_text()
        assert turns(fresh.project) == before

    def test_setup_asks_in_a_terminal(self, fresh: Memory, claude: Path, asked: Path) -> None:
        arguments = ("setup", "--skip", "import")
        shown = on_terminal(fresh, *arguments, answer="n\ny\n", MEMKIT_EMBEDDING_PROVIDER="none")
        assert "Install the plugin memkit@memkit from" in shown
        assert "plugin    skipped  you declined" in shown
        assert "launcher  ok" in shown
        assert launcher_path().exists()

    @pytest.mark.parametrize(("answer", "provider"), [("", "auto"), ("n", "none")], ids=["default", "no"])
    def test_only_an_answer_decides_about_summaries(
        self, run: Run, fresh: Memory, claude: Path, asked: Path, answer: str, provider: str
    ) -> None:
        (claude / "settings.json").write_text('{"apiKeyHelper": "key"}')  # a login
        config = Path(fresh.home.config_file)
        for arguments in ((), ("--yes",)):
            said = self.steps(run, fresh, *arguments, "--skip", "import")["summaries"]["said"]
            assert said.startswith("they start after the next session in a terminal has said so")
            assert not config.exists()
        note_announced(fresh.home)
        said = self.steps(run, fresh, "--yes", "--skip", "import")["summaries"]["said"]
        assert said.startswith("on, with at most 60,000 tokens a day")
        asking = ("setup", "--skip", "import", "--skip", "launcher")
        on_terminal(fresh, *asking, answer=f"{answer}\n", MEMKIT_EMBEDDING_PROVIDER="none")
        assert f'provider = "{provider}"' in config.read_text()
        assert json.loads(Path(fresh.home.hook_settings).read_bytes())["summary_tokens"] == 0
        again = self.steps(run, fresh, "--skip", "import")["summaries"]["said"]
        expected = "off, because summarize.provider is none; extracts need no model" if answer == "n" else "by auto, as you set it"
        assert again == expected

    def test_a_failed_step_does_not_stop_the_others(
        self, run: Run, fresh: Memory, claude: Path, asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "refuses").touch()
        found = run(fresh, "setup", "--yes")
        assert found.status == 1
        assert ("plugin    failed   `claude plugin install memkit@memkit` failed: no network" in found.output)
        assert "import    ok" in found.output
        assert found.errors.splitlines() == [
            "memkit: Claude Code: 2 sessions, the oldest from 2026-11-20; Claude Code deletes the next one in 30 days",
            "memkit: these steps failed: plugin; fix what they report, and run `memkit setup` again",
        ]
        monkeypatch.setenv("PATH", str(tmp_path))
        found = run(fresh, "setup", "--yes")
        assert found.status == 1
        assert "claude    failed   there is no `claude` on PATH" in found.output
        assert "plugin    skipped  needs Claude Code" in found.output

    def test_the_launcher_runs_the_memkit_of_the_setup(
        self, run: Run, fresh: Memory, claude: Path, asked: Path, tmp_path: Path
    ) -> None:
        launcher = tmp_path / "user" / ".local" / "bin" / "memkit"
        steps = self.steps(run, fresh, "--yes", "--skip", "import")
        assert "add" in steps["launcher"]["said"]
        assert len(launcher.read_text().splitlines()) == 2
        own = {**environment(fresh), "MEMKIT_PYTHON": sys.executable}
        done = subprocess.run([launcher, "--version"], env=own, capture_output=True, text=True, check=True)
        assert __version__ in done.stdout
        written = launcher.stat().st_mtime_ns
        self.steps(run, fresh, "--yes", "--skip", "import")
        assert launcher.stat().st_mtime_ns == written
        write_launcher(launcher_text("/no/longer/there", "0"))
        self.steps(run, fresh, "--skip", "import")  # without a question: the user has agreed to the first
        assert "/no/longer/there" not in launcher.read_text()

    @pytest.mark.parametrize("kind", ["a file", "a link"])
    def test_a_foreign_file_is_never_overwritten(
        self, run: Run, fresh: Memory, claude: Path, asked: Path, tmp_path: Path, kind: str
    ) -> None:
        other = tmp_path / "other"
        other.write_text("#!/bin/sh\n")
        launcher_path().parent.mkdir(parents=True)
        if kind == "a link":
            launcher_path().symlink_to(other)
        else:
            other.rename(launcher_path())
        steps = self.steps(run, fresh, "--yes", "--skip", "import")
        assert steps["launcher"]["state"] == "skipped"
        assert launcher_path().read_text() == "#!/bin/sh\n"
        assert launcher_path().is_symlink() == (kind == "a link")
