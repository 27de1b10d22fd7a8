"""Behavior of all commands: exit codes, one-line errors, plain output in pipes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

import memkit
from memkit import cli
from memkit.errors import MemkitError
from memkit.paths import Home
from tests.browse.test_transcript import conversation, write
from tests.cli.conftest import Run, environment, on_terminal
from tests.memory import Memory

COMMANDS = sorted(cli._COMMANDS)


def test_help_of_every_command(run: Run, read_only: Memory) -> None:
    found = run(read_only, "--help")
    assert found.status == 0
    for name in COMMANDS:
        assert (f"\n  {name}" in found.output) == (name not in cli._INTERNAL | cli._RELATED)
        own = run(read_only, name, "-h")
        assert own.status == 0
        assert own.output.startswith(f"Usage: memkit {name}")
        assert "--project" in own.output
        assert "--json" in own.output


@pytest.fixture
def exit_status_of(read_only: Memory) -> Callable[[str], int]:
    """Run code in a process of its own; return its status."""

    def run_code(code: str) -> int:
        words = [sys.executable, "-c", textwrap.dedent(code)]
        return subprocess.run(words, env=environment(read_only), check=False).returncode

    return run_code


def every_command(group: click.Group, typed: str) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, with what is typed for each."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{typed} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{typed} {name}")


def test_help_of_every_command_has_an_example() -> None:
    for typed, command in every_command(cli.cli, "memkit"):
        shown = command.get_help(click.Context(command, info_name=typed)).splitlines()
        assert any(line.strip().startswith(typed) for line in shown[1:]), typed


@pytest.mark.parametrize(
    ("stop", "status"), [(SystemExit(3), 3), (SystemExit(), 0), (SystemExit("why"), 1), (BrokenPipeError(), 0)]
)
def test_an_exit_keeps_its_status(
    exit_status_of: Callable[[str], int], stop: BaseException, status: int
) -> None:
    code = f"""
        import sys
        from memkit import cli
        def stop(*arguments, **options):
            raise {stop!r}
        cli.click.Group.invoke = stop
        sys.argv = ["memkit", "status"]
        cli.main()
    """
    assert exit_status_of(code) == status


def test_help_into_a_closed_pipe(read_only: Memory) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "memkit", "search", "--help"]
    done = subprocess.run(
        words, stdout=writing, stderr=subprocess.PIPE, env=environment(read_only), check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_failed_completion_is_a_failure(spawn: Run, read_only: Memory) -> None:
    assert spawn(read_only, _MEMKIT_COMPLETE="csh_complete").status == 1


def test_version(run: Run, read_only: Memory) -> None:
    assert run(read_only, "--version").output == f"memkit {memkit.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [[], ["serach"], ["search"], ["status", "extra"], ["--json"], ["expand"]]
)
def test_wrong_usage_is_2(run: Run, read_only: Memory, arguments: list[str]) -> None:
    found = run(read_only, *arguments)
    assert found.status == 2
    assert found.output == ""
    assert "Usage: memkit" in found.errors


def test_a_misspelled_command_gets_a_suggestion(run: Run, read_only: Memory) -> None:
    assert "search" in run(read_only, "serach").errors


class TestUnexpected:
    """An unexpected error is one line on stderr; its traceback goes to the log."""

    @pytest.fixture
    def fails(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, BaseException]:
        error: dict[str, BaseException] = {}

        def fail(*arguments: object, **options: object) -> None:
            raise error["raised"]

        monkeypatch.setattr("memkit.settings.load.load", fail)
        return error

    @pytest.mark.parametrize("command", [["status"], ["search", "x"], ["expand", "0"], ["config"]])
    def test_is_one_line(
        self, run: Run, fresh: Memory, fails: dict[str, BaseException], command: list[str]
    ) -> None:
        fails["raised"] = ZeroDivisionError("a\nb")
        complaint = run(fresh, *command).complaint
        assert "unexpected error (ZeroDivisionError: a b)" in complaint
        assert fresh.home.log_file in complaint
        log = Path(fresh.home.log_file)
        assert "Traceback" in log.read_text()
        assert log.stat().st_mode & 0o777 == 0o600

    def test_an_os_error_names_the_file(
        self, run: Run, fresh: Memory, fails: dict[str, BaseException]
    ) -> None:
        fails["raised"] = PermissionError(13, "Permission denied", "/some/file")
        assert run(fresh, "status").complaint == "memkit: /some/file: Permission denied; make it writable"

    def test_a_memkit_error_is_its_own_message(
        self, run: Run, fresh: Memory, fails: dict[str, BaseException]
    ) -> None:
        fails["raised"] = MemkitError("what happened,\nwhere")
        assert run(fresh, "status").complaint == "memkit: what happened, where"

    def test_interrupted(self, run: Run, fresh: Memory, fails: dict[str, BaseException]) -> None:
        fails["raised"] = KeyboardInterrupt()
        found = run(fresh, "status")
        assert found.status == 130
        assert found.errors.strip() == "memkit: interrupted"

    def test_with_a_log_that_cannot_be_written(
        self, run: Run, fresh: Memory, fails: dict[str, BaseException]
    ) -> None:
        os.mkdir(fresh.home.log)
        Path(fresh.home.log_file).symlink_to("/dev/full")
        fails["raised"] = ZeroDivisionError("boom")
        assert "ZeroDivisionError" in run(fresh, "status").complaint


class TestSettingsOfOneCall:
    def test_the_command_uses_them_and_the_file_does_not_change(self, run: Run, fresh: Memory) -> None:
        given = ["--set", "search.best_relevance=0", "--set=search.k=2", "--set", "search.k=3"]
        found = run(fresh, *given, "search", "gateway", "--all", "--json")
        assert len(found.json["results"]) == 3
        assert run(fresh, "--set=search.best_relevance=1", "search", "gateway", "--json").json["results"] == []
        listed = run(fresh, "--set", "search.k=1", "config", "list", "--json").json["settings"]["search.k"]
        assert (listed["value"], listed["origin"]) == (1, "--set")
        assert not Path(fresh.home.config_file).exists()
        kept = run(fresh, "--set", "search.k=1", "config", "set", "search.k", "3")
        assert "--set is also set and overrides it" in kept.errors
        assert run(fresh, "config", "get", "search.k").output == "3\n"

    def test_a_bad_one_is_one_line(self, run: Run, read_only: Memory) -> None:
        for text in ("search.k=many", "search.nothing=1", "search.k", "keys.openai=sk-secret"):
            complaint = run(read_only, "--set", text, "search", "gateway").complaint
            assert complaint.startswith("memkit: --set: ") and "secret" not in complaint

    def test_a_session_has_none(self, run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CLAUDECODE", "1")
        for text in ("recall.other_projects=true", "index.uri=http://127.0.0.1:1", "search.k=1"):
            complaint = run(read_only, "--set", text, "search", "gateway").complaint
            assert complaint.startswith("memkit: --set does nothing in a Claude Code session")


@pytest.mark.parametrize(
    "command",
    [["search", "x"], ["expand", "0"], ["transcript"], ["status"], ["index"], ["on"], ["config"]],
)
def test_a_project_that_is_not_there(run: Run, read_only: Memory, command: list[str]) -> None:
    complaint = run(read_only, *command, "--project", "/no/such/place").complaint
    assert complaint == "memkit: no such directory: /no/such/place"


def test_a_project_elsewhere(run: Run, read_only: Memory, tmp_path: Path) -> None:
    outside = Memory(read_only.home, read_only.project, read_only.embedder)
    inside = Path(read_only.project.root, "deep", "er")
    inside.mkdir(parents=True, exist_ok=True)
    for place in (read_only.project.root, os.path.relpath(read_only.project.root, tmp_path)):
        status = run(outside, "status", "--json", "--project", str(tmp_path / place)).json
        assert status["project"] == read_only.project.root


@pytest.mark.parametrize(
    "command",
    [
        ["search", "port"],
        ["expand", "0"],
        ["index"],
        ["work"],
        ["import", "one.jsonl"],
        ["config", "set", "search.k", "3"],
        ["transcript", "0"],
        ["status"],
    ],
)
@pytest.mark.parametrize("json", [True, False])
def test_a_home_that_is_a_file(
    run: Run, fresh: Memory, tmp_path: Path, command: list[str], json: bool
) -> None:
    fresh.home = Home(str(tmp_path / "file"))
    Path(fresh.home.root).touch()
    write(Path(fresh.project.root, "one.jsonl"), conversation())
    found = run(fresh, *command, *(["--json"] if json else []))
    if command == ["work"]:  # started by a hook; with no home there is no work
        assert (found.status, found.output) == (0, "")
    else:
        assert str(tmp_path / "file") in found.complaint or "no index yet" in found.complaint or (
            command == ["transcript", "0"] and "no transcript" in found.complaint
        )


def test_settings_that_are_broken(run: Run, fresh: Memory) -> None:
    Path(fresh.home.config_file).write_text("[search]\nk = 0\n")
    for command in (["search", "x"], ["status"], ["index"], ["config"], ["expand", "0"]):
        complaint = run(fresh, *command).complaint
        assert complaint.startswith(f"memkit: {fresh.home.config_file}: search.k = 0")
    assert run(fresh, "config", "path").status == 0
    assert run(fresh, "config", "set", "search.k", "3").status == 0
    assert run(fresh, "config", "get", "search.k").output == "3\n"


def test_a_refused_project_setting_is_reported_once_and_stops_nothing(
    run: Run, fresh: Memory
) -> None:
    Path(fresh.project.root, ".memkit.toml").write_text("index.uri = 'cloud'\n[search]\nk = 2\n")
    found = run(fresh, "search", "--json", "--all", "the service")
    assert found.status == 0
    assert len(found.json["results"]) == 2
    assert found.errors.count("\n") == 1
    assert ".memkit.toml: index.uri is refused" in found.errors


def test_results_into_a_closed_pipe(read_only: Memory, tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    questions.write_text("port\n" * 40)
    process = subprocess.Popen(
        [sys.executable, "-m", "memkit", "search", "--mode", "lexical", "--batch", "-"],
        stdin=questions.open(),
        cwd=read_only.project.root,
        env=environment(read_only),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith(b'{"line"')
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


def test_color_on_a_terminal_only(read_only: Memory, tmp_path: Path) -> None:
    command = ("transcript", str(write(tmp_path / "session.jsonl", conversation())))
    shown = {"TERM": "xterm-256color", "PAGER": "cat"}
    assert "\x1b[36m" in on_terminal(read_only, *command, **shown)
    plain = on_terminal(read_only, *command, **shown, NO_COLOR="1")
    assert "second answer" in plain
    assert "\x1b[3" not in plain


def test_commands_are_imported_when_called(spawn: Run, read_only: Memory) -> None:
    """Starting a command imports no package that it does not use."""
    code = "import sys, memkit.cli; print([m for m in sys.modules if m.split('.')[0] in {!r}])"
    heavy = ("chromadb", "onnxruntime", "numpy", "msgspec", "rich", "tomlkit", "tokenizers")
    done = subprocess.run(
        [sys.executable, "-c", code.format(heavy)],
        env=environment(read_only), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("command", ["config", "expand", "transcript", "status"])
def test_commands_that_do_not_rank_import_no_ranking_code(
    run: Run, read_only: Memory, tmp_path: Path, command: str
) -> None:
    identifier = run(read_only, "search", "--json", "migration").json["results"][0]["id"]
    transcript = write(tmp_path / "session.jsonl", conversation())
    arguments = {"expand": [identifier], "transcript": [str(transcript)]}.get(command, [])
    heavy = ("chromadb", "onnxruntime", "numpy", "snowballstemmer", "pydantic", "rich", "tokenizers")
    code = (
        "import atexit, sys, memkit.cli\n"
        f"heavy = {heavy!r}\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules]))\n"
        "memkit.cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command, *arguments], cwd=read_only.project.root,
        env=environment(read_only), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) > 1
    needed = ["numpy"] if command == "transcript" else []  # redaction scans with it
    assert done.stdout.endswith(f"\n{needed}\n")
