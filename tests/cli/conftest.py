"""A command line to try, in this process or one of its own."""

from __future__ import annotations

import functools
import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memkit import cli
from memkit.embedding import Embedder
from memkit.paths import Home
from tests.memory import DAYS, CountingEmbedder, Memory, make_memory, real_embedder

if TYPE_CHECKING:
    from tests.maintenance.clones import Person

__all__ = ["real_embedder"]

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass
class Outcome:
    """What a run of a command left."""

    status: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        assert self.output.endswith("\n")
        assert self.output.count("\n") == 1
        return json.loads(self.output)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.output.splitlines()]

    @property
    def complaint(self) -> str:
        """The one line on stderr, of a command that failed."""
        assert self.status == 1
        assert self.output == ""
        assert self.errors.startswith("memkit: ")
        assert self.errors.count("\n") == 1
        return self.errors.rstrip("\n")


Run = Callable[..., Outcome]


def lexical_memory(root: Path, files: Mapping[str, str] | None = None) -> Memory:
    """A memory below `root` that is searched by words alone, without the model."""
    memory = make_memory(root, files)
    Path(memory.home.root).mkdir()
    Path(memory.home.config_file).write_text('[embedding]\nprovider = "none"\n[search]\nmode = "lexical"\n')
    return memory


def holders(word: str, *directories: str) -> list[Path]:
    """The files below `directories` that hold `word` in any case."""
    files = [path for one in directories for path in Path(one).rglob("*") if path.is_file()]
    return [path for path in files if word.lower().encode() in path.read_bytes().lower()]


@pytest.fixture(scope="session")
def read_only(tmp_path_factory: pytest.TempPathFactory, model_home: Home, real_embedder: Embedder) -> Memory:
    """Three days of memory, indexed with the real model. Not to be changed."""
    root = tmp_path_factory.mktemp("remembered")
    memory = make_memory(root, DAYS, embedder=CountingEmbedder(real_embedder), models=model_home.models)
    memory.sync()
    return memory


@pytest.fixture(scope="session")
def past(tmp_path_factory: pytest.TempPathFactory) -> Memory:
    """A fortnight, searched by words alone. Not to be changed."""
    from tests.cli.fortnight import fortnight

    return fortnight(tmp_path_factory.mktemp("fortnight"))


@pytest.fixture
def fresh(tmp_path: Path, model_home: Home, real_embedder: Embedder) -> Memory:
    """The same, not indexed yet, for a test to change."""
    return make_memory(tmp_path, DAYS, embedder=CountingEmbedder(real_embedder), models=model_home.models)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.startswith(("MEMKIT_", "CLAUDE")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setenv("COLUMNS", "80")  # whatever terminal the tests run in
    monkeypatch.setenv("MEMKIT_SERVICE_ENABLED", "false")  # what it does stands in tests/service
    mask = os.umask(0o022)
    yield
    os.umask(mask)
    logging.getLogger("memkit").handlers.clear()
    logging.getLogger("memkit").propagate = True


@pytest.fixture(scope="session", autouse=True)
def model_loaded_once() -> Iterator[None]:
    """Commands in this process share the model: loading it takes most of a search's time."""
    from memkit.embedding import local

    load = functools.cache(local.LocalEmbedder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "LocalEmbedder", lambda directory: load(directory.resolve()))
        yield


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command as the shell does, in this process."""

    def run_here(memory: Memory, *arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setenv("MEMKIT_HOME", memory.home.root)
        monkeypatch.chdir(memory.project.root)
        monkeypatch.setattr(sys, "argv", ["memkit", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(int(str(stop.value.code)), captured.out, captured.err)

    return run_here


@pytest.fixture
def spawn() -> Run:
    """Runs a command in a process of its own."""

    def run_there(memory: Memory, *arguments: str, stdin: bytes = b"", **variables: str) -> Outcome:
        done = subprocess.run(
            [sys.executable, "-m", "memkit", *arguments], cwd=memory.project.root, env=environment(memory, **variables),
            input=stdin, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        output, errors = (one.decode("utf-8", "surrogateescape") for one in (done.stdout, done.stderr))
        return Outcome(done.returncode, output, errors)

    return run_there


def environment(memory: Memory, **variables: str) -> dict[str, str]:
    return {**os.environ, "MEMKIT_HOME": memory.home.root, "PYTHONPATH": str(REPOSITORY), **variables}


def on_terminal(
    memory: Memory | Person, *arguments: str, rows: int = 24, status: int = 0, answer: str = "", **variables: str
) -> str:
    """Run a command on a terminal of 80 columns where somebody types `answer`; return what it shows."""
    import fcntl
    import struct
    import termios

    own, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
    known = {**environment(memory), "TERM": "dumb"}
    known = {name: value for name, value in known.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    known |= variables
    with subprocess.Popen(
        [sys.executable, "-m", "memkit", *arguments],
        cwd=memory.project.root, env=known, stdin=terminal, stdout=terminal, stderr=terminal,
    ) as process:  # fmt: skip
        os.close(terminal)
        os.write(own, answer.encode())
        shown = b""
        try:
            while part := os.read(own, 65536):
                shown += part
        except OSError:  # Linux reports the end so
            pass
        finally:
            os.close(own)
        assert process.wait(60) == status
    return shown.decode().replace("\r\n", "\n")
