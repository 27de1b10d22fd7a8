"""Behavior of all commands: exit codes, one-line errors, plain output in pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

import memkit
from memkit import cli
from memkit.errors import MemkitError
from memkit.paths import Home
from memkit.settings import validate
from tests.browse.test_transcript import conversation, write
from tests.cli.conftest import REPOSITORY, Run, environment, on_terminal
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
    for typed, command in every_command(cli.cli, "memkit"):
        shown = command.get_help(click.Context(command, info_name=typed)).splitlines()
        assert any(line.strip().startswith(typed) for line in shown[1:]), typed  # an example


def every_command(group: click.Group, typed: str) -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, with what is typed for each."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{typed} {name}", command
        if isinstance(command, click.Group):
            yield from every_command(command, f"{typed} {name}")


@pytest.mark.parametrize(
    ("stop", "status"), [(SystemExit(3), 3), (SystemExit(), 0), (SystemExit("why"), 1), (BrokenPipeError(), 0)]
)
def test_an_exit_keeps_its_status(read_only: Memory, stop: BaseException, status: int) -> None:
    code = f"""
        import sys
        from memkit import cli
        def stop(*arguments, **options):
            raise {stop!r}
        cli.click.Group.invoke = stop
        sys.argv = ["memkit", "status"]
        cli.main()
    """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(words, env=environment(read_only), check=False).returncode == status


def test_wrong_usage_is_2(run: Run, read_only: Memory) -> None:
    for words in ("", "serach", "search", "status extra", "--json", "expand"):
        found = run(read_only, *words.split())
        assert (found.status, found.output) == (2, "")
        assert "Usage: memkit" in found.errors
        assert words != "serach" or "search" in found.errors.replace("serach", "")


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
    def test_is_one_line(self, run: Run, fresh: Memory, fails: dict[str, BaseException], command: list[str]) -> None:
        for raised, said in (
            (PermissionError(13, "Permission denied", "/some/file"), "memkit: /some/file: Permission denied; make it writable"),
            (MemkitError("what happened,\nwhere"), "memkit: what happened, where"),
        ):
            fails["raised"] = raised
            assert run(fresh, *command).complaint == said
        fails["raised"] = KeyboardInterrupt()
        found = run(fresh, *command)
        assert (found.status, found.errors.strip()) == (130, "memkit: interrupted")
        fails["raised"] = ZeroDivisionError("a\nb")
        complaint = run(fresh, *command).complaint
        assert "unexpected error (ZeroDivisionError: a b)" in complaint
        assert fresh.home.log_file in complaint
        log = Path(fresh.home.log_file)
        assert "Traceback" in log.read_text()
        assert log.stat().st_mode & 0o777 == 0o600

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

    def test_a_bad_one_is_one_line(self, run: Run, read_only: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
        for text in ("search.k=many", "search.nothing=1", "search.k", "keys.openai=sk-secret"):
            complaint = run(read_only, "--set", text, "search", "gateway").complaint
            assert complaint.startswith("memkit: --set: ") and "secret" not in complaint
        monkeypatch.setenv("CLAUDECODE", "1")  # a session has none
        for text in ("recall.other_projects=true", "index.uri=http://127.0.0.1:1", "search.k=1"):
            complaint = run(read_only, "--set", text, "search", "gateway").complaint
            assert complaint.startswith("memkit: --set does nothing in a Claude Code session")


def test_a_project_that_is_not_there(run: Run, read_only: Memory) -> None:
    for words in ("search x", "expand 0", "transcript", "status", "index", "on", "config"):
        complaint = run(read_only, *words.split(), "--project", "/no/such/place").complaint
        assert complaint == "memkit: no such directory: /no/such/place"


def test_a_project_elsewhere(run: Run, read_only: Memory, tmp_path: Path) -> None:
    outside = Memory(read_only.home, read_only.project, read_only.embedder)
    inside = Path(read_only.project.root, "deep", "er")
    inside.mkdir(parents=True, exist_ok=True)
    for place in (read_only.project.root, os.path.relpath(read_only.project.root, tmp_path)):
        status = run(outside, "status", "--json", "--project", str(tmp_path / place)).json
        assert status["project"] == read_only.project.root


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_home_that_is_a_file(run: Run, fresh: Memory, tmp_path: Path, json: list[str]) -> None:
    fresh.home = Home(str(tmp_path / "file"))
    Path(fresh.home.root).touch()
    write(Path(fresh.project.root, "one.jsonl"), conversation())
    # Started by a hook; with no home there is no work.
    assert (run(fresh, "work", *json).status, run(fresh, "work", *json).output) == (0, "")
    for words in ("search port", "expand 0", "transcript 0", "index", "import one.jsonl", "config set search.k 3", "status"):
        complaint = run(fresh, *words.split(), *json).complaint
        assert str(tmp_path / "file") in complaint or "no index yet" in complaint


def test_settings_that_are_broken(run: Run, fresh: Memory) -> None:
    Path(fresh.home.config_file).write_text("[search]\nk = 0\n")
    for command in (["search", "x"], ["status"], ["index"], ["config"], ["expand", "0"]):
        complaint = run(fresh, *command).complaint
        assert complaint.startswith(f"memkit: {fresh.home.config_file}: search.k = 0")
    assert run(fresh, "config", "path").status == 0
    assert run(fresh, "config", "set", "search.k", "3").status == 0
    assert run(fresh, "config", "get", "search.k").output == "3\n"


def test_a_refused_project_setting_is_reported_once_and_stops_nothing(run: Run, fresh: Memory) -> None:
    Path(fresh.project.root, ".memkit.toml").write_text("index.uri = 'cloud'\n[search]\nk = 2\n")
    found = run(fresh, "search", "--json", "--all", "the service")
    assert found.status == 0
    assert len(found.json["results"]) == 2
    assert found.errors.count("\n") == 1
    assert ".memkit.toml: 1 line ignored" in found.errors  # it quotes nothing of what strangers may have written


def test_results_into_a_closed_pipe(read_only: Memory, tmp_path: Path) -> None:
    questions = tmp_path / "questions"
    questions.write_text("port\n" * 40)
    process = subprocess.Popen(
        [sys.executable, "-m", "memkit", "search", "--mode", "lexical", "--batch", "-"],
        stdin=questions.open(), cwd=read_only.project.root, env=environment(read_only),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
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


@pytest.mark.parametrize("command", ["--version", "config", "expand", "transcript", "status"])
def test_commands_import_only_what_they_use(run: Run, read_only: Memory, tmp_path: Path, command: str) -> None:
    identifier = run(read_only, "search", "--json", "migration").json["results"][0]["id"]
    transcript = write(tmp_path / "session.jsonl", conversation())
    arguments = {"expand": [identifier], "transcript": [str(transcript)]}.get(command, [])
    heavy = ("chromadb", "onnxruntime", "numpy", "snowballstemmer", "pydantic", "rich", "tokenizers")
    if command == "--version":
        heavy += ("msgspec", "tomlkit")
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
    assert command != "--version" or done.stdout.startswith(f"memkit {memkit.__version__}\n")
    needed = ["numpy"] if command == "transcript" else []  # redaction scans with it
    assert done.stdout.endswith(f"\n{needed}\n")


# `memkit config` and the user's keys: they go in, and never come out.


KEY = "sk-typed-9f81c2"
SET = ("config", "set", "keys.openai")


def test_a_key_from_a_pipe_is_never_shown(run: Run, fresh: Memory) -> None:
    shown = run(fresh, *SET, stdin=f"{KEY}\n".encode())
    assert shown.output == f"keys.openai = ******** in {fresh.home.config_file}\n"
    assert f'openai = "{KEY}"' in Path(fresh.home.config_file).read_text()
    assert Path(fresh.home.config_file).stat().st_mode & 0o777 == 0o600
    for command in (["list"], ["list", "--json"], ["get", "keys.openai"], ["get", "keys.openai", "--json"]):
        found = run(fresh, "config", *command)
        assert found.status == 0 and "********" in found.output and KEY not in found.output
    assert run(fresh, *SET, "--json", stdin=KEY.encode()).json["value"] == "********"
    assert run(fresh, "config", "get", "keys.voyage").output == '""\n'
    assert run(fresh, *SET, "").output.startswith('keys.openai = "" in ')
    assert KEY not in Path(fresh.home.config_file).read_text()


def test_text_that_is_no_key_changes_nothing(run: Run, fresh: Memory) -> None:
    assert run(fresh, *SET, stdin=b"sk-before").status == 0
    for text in ("", " \n", f"{KEY}\nmore\n", f"{KEY}\u2019"):
        assert KEY not in run(fresh, *SET, stdin=text.encode()).complaint
    found = run(fresh, *SET, KEY)  # on the command line
    assert found.status == 2 and "`memkit config set keys.openai` asks for it" in found.errors
    assert KEY not in found.errors
    assert "unknown setting keys.other" in run(fresh, "config", "set", "keys.other", KEY).complaint
    assert 'openai = "sk-before"' in Path(fresh.home.config_file).read_text()


def test_a_terminal_does_not_echo_the_key(fresh: Memory) -> None:
    ours, theirs = pytest.importorskip("pty").openpty()
    environ = {**os.environ, "MEMKIT_HOME": fresh.home.root, "MEMKIT_PYTHON": sys.executable}
    command = [REPOSITORY / "bin" / "memkit", *SET, "--json"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environ, start_new_session=True
    )
    os.close(theirs)
    seen = b""
    while b"not shown" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, f"{KEY}\n".encode())
    try:
        while part := os.read(ours, 1000):
            seen += part
    except OSError:  # the other side is closed
        pass
    output, _ = process.communicate()
    os.close(ours)
    assert json.loads(output)["value"] == "********"
    assert KEY.encode() not in seen + output
    assert f'openai = "{KEY}"' in Path(fresh.home.config_file).read_text()


# The Tab key: commands, options, settings; bash for real.


def completed(*words: str) -> list[str]:
    """What click makes of the last word, after the others."""
    complete = ShellComplete(cli.cli, {}, "memkit", "_MEMKIT_COMPLETE")
    return [item.value for item in complete.get_completions(list(words[:-1]), words[-1])]


def test_options_values_and_settings() -> None:
    for words, offered in (
        (("se",), ["search", "sessions", "service", "setup", "serve"]), (("",), list(cli._LISTED)), (("x",), []),
        (("search", "--mi"), ["--min-relevance"]), (("search", "--mode", "l"), ["lexical"]),
        (("service", "sta"), ["status", "start"]), (("--ver",), ["--version"]),
        (("config", "set", "chunking.m"), ["chunking.max_characters", "chunking.min_characters"]),
        (("config", "get", ""), [".".join(key) for key in validate.every_key()]),
    ):  # fmt: skip
        assert sorted(completed(*words)) == sorted(offered)


def test_the_script(run: Run, read_only: Memory) -> None:
    for shell in ("bash", "zsh", "fish"):
        plain = run(read_only, "completion", shell)
        assert (plain.status, f"_MEMKIT_COMPLETE={shell}_complete" in plain.output) == (0, True)
        assert run(read_only, "completion", shell, "--json").json == {"shell": shell, "script": plain.output[:-1]}
    assert run(read_only, "completion", "tcsh").status == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["se"], ["search", "sessions", "service", "setup", "serve"]),
        (["config", "get", "archive."], ["archive.enabled", "archive.keep_days"]),
    ],
)
def test_bash(tmp_path: Path, typed: list[str], offered: list[str]) -> None:
    program = tmp_path / "memkit"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memkit "$@"\n')
    program.chmod(0o755)
    words = " ".join(["memkit", *typed])
    script = (
        'source <(memkit completion bash) && complete -p memkit && '
        f"COMP_WORDS=({words}) COMP_CWORD={len(typed)} && "
        '$(complete -p memkit | sed "s/.*-F \\([^ ]*\\).*/\\1/") memkit && '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    own = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "MEMKIT_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", script], env={**os.environ, "PYTHONPATH": str(REPOSITORY), **own},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == offered
    assert not (tmp_path / "home").exists()
