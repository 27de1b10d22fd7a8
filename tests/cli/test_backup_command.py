"""`memkit backup` and `memkit restore`."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from memkit.agents.claude_code.places import transcripts_directory
from memkit.archive.archive import Archive
from memkit.archive.turn import ArchivedTurn
from memkit.capture.sessions import Session, Sessions
from memkit.cli import cli
from memkit.errors import MemkitError
from memkit.index.memory_files import added_paths
from memkit.journal import files as memory_files
from memkit.journal.files import keep_replaced, replaced_files
from memkit.maintenance import restore
from memkit.maintenance.backup import BackedUpProject, Header, back_up, create
from memkit.maintenance.restore import open_backup
from memkit.privacy.tombstones import Tombstones
from memkit.projects.project import Project, Registry, registry_path
from tests.cli.conftest import Run, holders
from tests.memory import DAYS, Memory, make_memory

QUERIES = ["which port does the gateway use", "billing", "ERR_404", "rotated secrets", "nothing of it"]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return make_memory(tmp_path, DAYS, embedding={"provider": "none"})


@pytest.fixture
def run_lexical(run: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    return run


def fill(memory: Memory) -> None:
    """Put something of each kind into the home."""
    memory.write("notes/deep/idea.md", "# An idea\n\nA quagga for the logo of the billing service.\n")
    memory.write("picture.png", b"\x89PNG\x00")
    gone = str(transcripts_directory() / "shop" / "gone.jsonl")
    Sessions(memory.home).save(Session("5e550001", gone, memory.project.root, offset=7))
    Archive(memory.home).append("5e550001", [ArchivedTurn("8ad3df7f", (), project=memory.project.root)])
    Path(memory.home.ledger).write_text('{"id": "a"}\n')


def contents(*directories: str | Path) -> dict[str, bytes]:
    """Every file that is not derived."""
    derived = ("index", "models", "run", "log", "env", ".memkit/.gitignore", ".memkit/journal.lock",
               "summaries/calls.lock")  # fmt: skip
    return {
        str(path): path.read_bytes()
        for directory in directories
        for path in Path(directory).rglob("*")
        if path.is_file() and not any(f"/{name}" in str(path) for name in derived)
        and path.suffix not in (".own", ".adopted")  # a restore adds lines again
    }


def test_search_output_is_identical_after_a_restore(run: Run, fresh: Memory, tmp_path: Path) -> None:
    fill(fresh)
    assert run(fresh, "config", "set", "search.k", "3").status == 0
    models = Path(fresh.home.models).readlink()
    run(fresh, "index")

    def found() -> list[str]:
        said = [run(fresh, "search", query, "--json", "--all").output for query in QUERIES]
        return [re.sub(r'"took_ms": [\d.]+, ', "", text) for text in said]

    before, files = found(), contents(fresh.home.root, fresh.project.root)
    assert sum(len(json.loads(text)["results"]) for text in before) == 3 * len(QUERIES)
    backup = str(tmp_path / "b.tar.zst")
    assert run(fresh, "backup", backup, "--json").json["projects"] == [fresh.project.root]
    shutil.rmtree(fresh.home.root)
    shutil.rmtree(Path(fresh.project.root, ".memkit"))
    Path(fresh.home.root).mkdir()
    Path(fresh.home.models).symlink_to(models)

    done = run(fresh, "restore", backup, "--yes", "--json").json
    assert (done["left"], done["replaced"], done["same"]) == ([], [], 0)
    assert contents(fresh.home.root, fresh.project.root) == files
    run(fresh, "index")
    assert found() == before
    again = run(fresh, "restore", backup, "--yes", "--json").json
    assert (again["written"], again["same"]) == (0, done["written"])


def test_force_replaces_files_that_differ(run_lexical: Run, memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    memory.write("2026-11-18.md", "# 2026-11-18\n\nnewer\n")
    memory.path("2026-11-19.md").unlink()
    memory.write("2026-11-21.md", "# 2026-11-21\n\nlater\n")

    done = run_lexical(memory, "restore", backup, "--yes", "--json").json
    assert (done["written"], done["left"]) == (1, [str(memory.path("2026-11-18.md"))])
    assert memory.path("2026-11-18.md").read_text().endswith("newer\n")
    assert memory.path("2026-11-19.md").read_text() == DAYS["2026-11-19.md"]

    done = run_lexical(memory, "restore", backup, "--yes", "--force", "--json").json
    assert done["replaced"] == [str(memory.path("2026-11-18.md"))]
    assert memory.path("2026-11-18.md").read_text() == DAYS["2026-11-18.md"]
    assert memory.path("2026-11-21.md").read_text().endswith("later\n")
    kept = Path(done["kept_in"], "projects", "0", "memory", "2026-11-18.md")
    assert kept.read_text().endswith("newer\n")
    assert kept.is_relative_to(memory.home.archive)
    assert kept.stat().st_mode & 0o777 == 0o600


def test_a_secret_in_what_was_replaced_is_redacted_as_well(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    secret = "ghp_" + "a1B2" * 9
    memory.write("2026-11-18.md", f"# 2026-11-18\n\n{secret}\n")
    kept = run_lexical(memory, "restore", backup, "--yes", "--force", "--json").json["kept_in"]
    assert run_lexical(memory, "audit", "--all-projects").status == 1
    assert run_lexical(memory, "audit", "--all-projects", "--fix").status == 0
    assert all(secret.encode() not in data for data in contents(kept).values())


def test_a_project_that_moved(run_lexical: Run, memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    run_lexical(memory, "index", str(tmp_path / "docs"))
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    old = memory.project.root
    new = make_memory(tmp_path / "other", home=memory.home)
    shutil.rmtree(old)
    for where, options in (
        (new.project.root, ["--project", new.project.root]),
        (new.project.root, ["--move", old, new.project.root]),
        (Project.at_root(old, memory.home).root, []),
    ):
        shutil.rmtree(Path(new.project.root, ".memkit"), ignore_errors=True)
        Path(registry_path(memory.home)).unlink(missing_ok=True)  # it says since the first time where the project is
        done = run_lexical(new, "restore", backup, "--yes", "--json", *options).json
        assert done["projects"] == [where]
        assert Path(where, ".memkit", "memory", "2026-11-18.md").read_text() == DAYS["2026-11-18.md"]
    assert added_paths(memory.home, new.project) == [str(tmp_path / "docs")]
    assert "holds no project at /x" in run_lexical(new, "restore", backup, "--move", "/x", old).complaint
    # Kept under the home now, it is backed up from there.
    again = run_lexical(new, "backup", backup, "--yes", "--json").json
    assert again["projects"] == [where]
    shutil.rmtree(where)
    assert run_lexical(new, "restore", backup, "--yes", "--json").json["written"] == len(DAYS)


def test_backup_and_restore_ask_first(run_lexical: Run, memory: Memory, tmp_path: Path) -> None:
    backup = tmp_path / "b.tar.zst"
    run_lexical(memory, "backup", str(backup))
    assert "exists; name another file" in run_lexical(memory, "backup", str(backup)).complaint
    memory.path("2026-11-18.md").unlink()
    asked = run_lexical(memory, "restore", str(backup))
    assert (asked.status, asked.errors) == (1, "memkit: this needs confirmation, but there is no terminal to ask on; run it in a terminal of your own\n")
    assert memory.project.root in asked.output
    backup.write_bytes(backup.read_bytes()[:-40])
    assert "damaged" in run_lexical(memory, "restore", str(backup), "--yes").complaint
    assert not memory.path("2026-11-18.md").exists()
    assert not [*Path(memory.home.root).glob(".restore-*")]


def test_a_restore_follows_no_link_out_of_the_memory(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    memory.write("notes/a.md", "# A\n")
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    shutil.rmtree(memory.path("notes"))
    (tmp_path / "outside").mkdir()
    memory.path("notes").symlink_to(tmp_path / "outside")
    assert "it leads out of" in run_lexical(memory, "restore", backup, "--yes", "--json").errors
    assert [*(tmp_path / "outside").iterdir()] == []
    off = Path(memory.project.root, ".memkit", "off")
    off.write_text("1.0\n")
    back_up(memory.home, [memory.project], Path(f"{backup}-off"))
    off.unlink()
    off.symlink_to(tmp_path / "mine")
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(MemkitError, match="leads out of its project"), open_backup(memory.home, Path(f"{backup}-off")):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_killed_restore_can_run_again(run_lexical: Run, memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    backup = tmp_path / "b.tar.zst"
    run_lexical(memory, "backup", str(backup))
    files = contents(memory.project.root)
    memory.write("2026-11-19.md", "# 2026-11-19\n\nother\n")
    changed = contents(memory.project.root)
    for kill_at in range(1, 4):
        for path, data in changed.items():
            Path(path).write_bytes(data)
        shutil.rmtree(memory.path("notes"))
        with killed(kill_at), open_backup(memory.home, backup) as found:
            found.apply(force=True, settings_of=lambda _: memory.settings)
        assert memory.path("2026-11-19.md").read_bytes() in (
            changed[str(memory.path("2026-11-19.md"))],
            files[str(memory.path("2026-11-19.md"))],
        )
        (Path(memory.home.root) / ".restore-left").mkdir()  # as a kill without warning leaves it
        run_lexical(memory, "restore", str(backup), "--yes", "--force")
        assert contents(memory.project.root) == files
        assert not [*Path(memory.home.root).glob(".restore-*")]


def held(memory: Memory, word: str) -> list[Path]:
    return holders(word, memory.home.root, memory.project.root)


@contextlib.contextmanager
def killed(at: int) -> Iterator[None]:
    """End the block with the write that is number `at`, before it."""
    real, count = restore.write_durably, itertools.count(1)

    def write(path: str, data: bytes, *mode: int) -> None:
        if next(count) == at:
            raise KeyboardInterrupt
        real(path, data, *mode)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restore, "write_durably", write)
        patch.setattr(memory_files, "write_durably", write)
        with contextlib.suppress(KeyboardInterrupt):
            yield
    assert next(count) > at


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_was_forgotten_since_the_backup_stays_forgotten(
    run_lexical: Run, memory: Memory, tmp_path: Path, force: tuple[str, ...]
) -> None:
    fill(memory)
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    assert held(memory, "PolicyController")
    run_lexical(memory, "forget", "--query", "PolicyController", "-k", "1", "--yes")
    memory.path("2026-11-18.md").unlink()
    done = run_lexical(memory, "restore", backup, "--yes", "--json", *force)
    assert (done.status, done.json["written"]) == (0, 1 + len(force))
    assert held(memory, "PolicyController") == []
    assert memory.path("2026-11-18.md").read_text() == DAYS["2026-11-18.md"]
    # What was replaced is kept all the same.
    assert len([*Path(memory.home.before_restore).rglob("2026-11-19.md")]) == len(force)
    assert Tombstones(memory.home).unfinished() is None


def test_what_the_backup_had_forgotten_stays_forgotten_in_a_new_home(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    day = memory.path("2026-11-19.md").read_text()
    run_lexical(memory, "forget", "--query", "PolicyController", "-k", "1", "--yes")
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    shutil.rmtree(memory.home.root)
    memory.path("2026-11-19.md").write_text(day)  # as a checkout of an old commit brings it
    run_lexical(memory, "restore", backup, "--yes")
    assert held(memory, "PolicyController") == []
    assert Tombstones(memory.home).forgotten().turns
    assert Tombstones(memory.home).unfinished() is None


def test_a_restore_finishes_the_forgetting_of_a_killed_one(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    backup = tmp_path / "b.tar.zst"
    run_lexical(memory, "backup", str(backup))
    run_lexical(memory, "forget", "--query", "PolicyController", "-k", "1", "--yes")
    with pytest.MonkeyPatch.context() as patch, open_backup(memory.home, backup) as found:
        patch.setattr(restore, "forget", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            found.apply(force=True, settings_of=lambda _: memory.settings)
    assert held(memory, "PolicyController")
    assert "forgetting-unfinished" in run_lexical(memory, "doctor", "--json").output
    assert run_lexical(memory, "forget").status == 0
    assert held(memory, "PolicyController") == []


def test_links_names_and_replaced_texts_come_back_and_follow_a_move(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    run_lexical(memory, "projects", "rename", "The shop")
    keep_replaced(memory.home, memory.project, "MEMORY.md", "# Memory\n\nold\n", "2026-11-20")
    (kept,) = replaced_files(memory.home, None)
    backup = str(tmp_path / "b.tar.zst")
    run_lexical(memory, "backup", backup)
    old = memory.project.root
    shutil.rmtree(memory.home.root)
    shutil.rmtree(old)
    new = make_memory(tmp_path / "other", home=memory.home)
    run_lexical(new, "restore", backup, "--yes", "--move", old, new.project.root)
    assert kept.read_text() == "# Memory\n\nold\n"
    assert Registry.read(new.home).name_of(new.project.root) == "The shop"
    assert Project.at_root(old, new.home) == new.project


SENDING = '[index]\nuri = "http://stranger.example:8000"\n[summarize]\nprovider = "ollama"\n'


def test_settings_that_send_data_elsewhere_are_skipped(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    backup = tmp_path / "b.tar.zst"
    config = Path(memory.home.config_file)
    config.parent.mkdir(exist_ok=True)
    config.write_text(SENDING)
    run_lexical(memory, "backup", str(backup))
    mine = '[capture]\nredact = ["my-secret"]\n'
    for before, force in ((None, ()), (mine, ("--force",))):
        config.unlink(missing_ok=True)
        if before is not None:
            config.write_text(before)
        done = run_lexical(memory, "restore", str(backup), "--yes", *force)
        assert 'index.uri = "http://stranger.example:8000", now ""' in done.output
        assert 'summarize.provider = "ollama", now "auto"' in done.output
        assert ("capture.redact = []" in done.output) == (before is not None)
        assert (config.read_text() if config.exists() else None) == before
    config.unlink()
    with open_backup(memory.home, backup) as found:
        found.apply(force=False, with_settings=True, settings_of=lambda _: memory.settings)
    assert config.read_text() == SENDING


@pytest.mark.parametrize("answers", ["y\nn\n", "y\ny\n"])
def test_such_settings_are_confirmed_separately(
    memory: Memory, tmp_path: Path, answers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIT_HOME", memory.home.root)
    monkeypatch.setenv("MEMKIT_EMBEDDING_PROVIDER", "none")
    monkeypatch.setattr("memkit.cli.backup.confirm", lambda question, yes: click.confirm(question, abort=True))
    backup = tmp_path / "b.tar.zst"
    config = Path(memory.home.config_file)
    config.parent.mkdir(exist_ok=True)
    config.write_text(SENDING)
    back_up(memory.home, [memory.project], backup)
    config.unlink()
    done = CliRunner().invoke(cli, ["restore", str(backup)], input=answers)
    assert done.exit_code == 0, done.output
    assert config.exists() == (answers == "y\ny\n")


def test_a_restore_writes_into_projects_only(memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, backup = tmp_path / "user", tmp_path / "b.tar.zst"
    (own / ".ssh").mkdir(parents=True)
    (own / "relative").mkdir()
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.chdir(own)
    for place in ("/etc", "/", "/usr", "~", "~/.ssh", "relative", "/tmp/../etc"):
        root = os.path.expanduser(place)
        with create(backup, Header(1.0, "0.1.0", (BackedUpProject(root),))) as writer:
            writer.add("projects/0/memory/2026-11-18.md", memory.path("2026-11-18.md"))
        refused = pytest.raises(MemkitError, match="not a project's directory")
        with refused, open_backup(memory.home, backup) as found:
            found.apply(force=True, settings_of=lambda _: memory.settings)
        assert not os.path.exists(os.path.join(root, ".memkit"))
        with open_backup(memory.home, backup) as found:
            found.move({root: memory.project.root})
            assert found.projects == [memory.project]
        backup.unlink()


def test_a_session_state_can_only_name_a_transcript_of_this_user(
    run_lexical: Run, memory: Memory, tmp_path: Path
) -> None:
    own = transcripts_directory() / "shop"
    own.mkdir(parents=True)
    secret = tmp_path / "secret.jsonl"
    secret.write_text("mine\n")
    (own / "link.jsonl").symlink_to(secret)
    root = memory.project.root
    named = {
        "5e550001": (str(own / "5e550001.jsonl"), root, True),
        "5e550002": (str(secret), root, False),
        "5e550003": (str(own / ".." / ".." / ".." / "secret.jsonl"), root, False),
        "5e550004": (str(own / "link.jsonl"), root, False),
        "5e550005": (str(own / "5e550005.jsonl"), str(tmp_path / "elsewhere"), False),
        "5e550006": ("a\0b", root, False),
    }
    for name, (transcript, project, _) in named.items():
        Sessions(memory.home).save(Session(name, transcript, project, offset=7))
    outside = str(tmp_path / "outside")
    added = Path(memory.home.projects, "0123456789abcdef.paths.json")
    added.parent.mkdir(exist_ok=True)
    added.write_text(json.dumps({"version": 1, "paths": [outside]}))
    backup = tmp_path / "b.tar.zst"
    back_up(memory.home, [memory.project], backup)
    shutil.rmtree(memory.home.root)
    said = run_lexical(memory, "restore", str(backup), "--yes")
    assert said.status == 0, said.errors
    assert f"Markdown that would be indexed as well: {outside}" in said.output
    for name, (transcript, _, is_kept) in named.items():
        state = Sessions(memory.home).load(name)
        assert (state.transcript, state.offset) == (transcript if is_kept else "", 7), name
