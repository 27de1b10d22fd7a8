"""A small stand-in for the repository, with the real `bin/memkit` and a command line that reports."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

COMMAND_LINE = """
import json, os, sys

def main():
    if sys.argv[1:2] == ["exit"]:
        sys.exit(int(sys.argv[2]))
    if sys.argv[1:2] == ["die"]:
        os.kill(os.getpid(), int(sys.argv[2]))
    if sys.argv[1:2] == ["import"]:
        __import__(sys.argv[2])
    print(json.dumps({
        "arguments": [os.fsencode(a).decode("latin-1") for a in sys.argv[1:]],
        "path": sys.path, "prefix": sys.prefix, "isolated": bool(sys.flags.isolated),
        "variables": dict(os.environ),
    }))
"""

# Makes environments without pip in a tenth of a second, counts them, and stops where it is told to.
FAST_TOOL = """#!{python} -I
import os, socket, subprocess, sys
if sys.argv[1] == "venv":
    with open({counter!r}, "a") as file:
        file.write(str(os.getpid()) + "\\n")
    subprocess.run([{python!r}, "-I", "-m", "venv", "--without-pip", sys.argv[-1]], check=True)
    gate = os.environ.get("TEST_GATE")
    if gate:
        socket.create_connection(("127.0.0.1", int(gate))).recv(1)
sys.exit(os.environ.get("TEST_FAILURE"))
"""

# The uv that the build brings along: it has pip do the work, and says which index it was given.
BUNDLED_UV = """#!python
import json, os, sys
known = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "SSL_"))}
print("bundled uv:", json.dumps(known), flush=True)
python, locked = sys.argv[4], sys.argv[sys.argv.index("--no-deps"):]
os.execv(python, [python, "-I", "-m", "pip", "install", *locked])
"""

# Starts the launcher as if another Python ran it.
RUN_AS = """
import runpy, sys
sys.executable, script = {python!r}, {script!r}
sys.path.insert(0, {directory!r})
runpy.run_path(script, run_name="__main__")
"""


def _heed_signals() -> None:
    """Reset signals as in a terminal: in the background or under nohup they are ignored."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class StandIn:
    """A repository and a memory home in a directory, and processes that run `bin/memkit` there."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "repository"
        self.home = directory / "home"
        self.path = directory / "path"
        self.counter = directory / "counter"
        self.gate = socket.create_server(("127.0.0.1", 0))
        self.gate.settimeout(60)
        self.processes: list[subprocess.Popen[str]] = []
        (self.root / "bin").mkdir(parents=True)
        self.path.mkdir()
        shutil.copy(REPOSITORY / "bin" / "memkit", self.root / "bin")
        package = self.root / "memkit"
        for name in ("environment", "hook", "ipc", "projects"):
            shutil.copytree(
                REPOSITORY / "memkit" / name,
                package / name,
                ignore=shutil.ignore_patterns("*.lock"),
            )
        for module in (REPOSITORY / "memkit").glob("*.py"):
            shutil.copy(module, package)
        (package / "cli").mkdir()
        (package / "cli" / "__init__.py").write_text(COMMAND_LINE)
        self.python: Path | None = None
        self.depend_on(self.wheel("memkit_stand_in_dependency"))
        self.lock.with_name("uv.lock").write_text(self.locked(self.wheel("uv", BUNDLED_UV)))

    @property
    def script(self) -> Path:
        return self.root / "bin" / "memkit"

    @property
    def lock(self) -> Path:
        return self.root / "memkit" / "environment" / "requirements.lock"

    @property
    def site(self) -> Path:
        """The `site-packages` of the one environment."""
        (found,) = (self.home / "env").glob("[!.]*/lib/python3.*/site-packages")
        return found

    @property
    def environments(self) -> list[str]:
        """The names in the directory of environments, without the lock."""
        return sorted(name for name in os.listdir(self.home / "env") if name != ".lock")

    @property
    def builds(self) -> list[int]:
        """The process ids of the fast tool's runs so far."""
        return [int(line) for line in self.counter.read_text().split()]

    def depend_on(self, *requirements: str) -> None:
        """Declare and lock requirements: wheels made here, or names of packages that do not exist."""
        lines = "".join(f'    "{requirement}",\n' for requirement in requirements)
        (self.root / "pyproject.toml").write_text(f"[project]\ndependencies = [\n{lines}]\n")
        self.lock.write_text("".join(map(self.locked, requirements)))

    def locked(self, requirement: str) -> str:
        """The line of a lock for `requirement`."""
        _, separator, address = requirement.partition(" @ file://")
        if not separator:
            return f"{requirement}==1 --hash=sha256:{'0' * 64}\n"
        digest = hashlib.sha256(Path(address).read_bytes()).hexdigest()
        return f"{requirement} --hash=sha256:{digest}\n"

    def add_fast_tool(self, tool: str = FAST_TOOL) -> None:
        """Put a fast `uv` on PATH that logs its runs; variables can hold it or make it fail."""
        self.add_program("uv", tool.format(python=sys.executable, counter=str(self.counter)))

    def run_by_python(self, answer: str) -> None:
        """Run `bin/memkit` with a Python that reports itself as `answer`."""
        self.python = self.add_program("python3", f"#!/bin/sh\necho {answer}\n")

    def add_program(self, name: str, text: str) -> Path:
        program = self.path / name
        program.write_text(text)
        program.chmod(0o755)
        return program

    def wheel(self, name: str, program: str = "") -> str:
        """Return a requirement that needs no index: a wheel made here with a module and a script, or a program."""
        path = self.root / f"{name}-1-py3-none-any.whl"
        information = f"{name}-1.dist-info"
        with zipfile.ZipFile(path, "w") as archive:
            if program:
                entry = zipfile.ZipInfo(f"{name}-1.data/scripts/{name}")
                entry.external_attr = 0o100755 << 16
                archive.writestr(entry, program)
            else:
                archive.writestr(f"{name}.py", "def main():\n    print('it runs')\n")
                scripts = f"[console_scripts]\n{name} = {name}:main\n"
                archive.writestr(f"{information}/entry_points.txt", scripts)
            archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\n"
                             "Version: 1\n")
            archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                             "Root-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{information}/RECORD", "")
        return f"{name} @ {path.as_uri()}"

    def variables(self, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMKIT_", "PIP_", "UV_"))}
        kept.update(PATH=str(self.path), MEMKIT_HOME=str(self.home), PIP_CONFIG_FILE=os.devnull)
        return {**kept, **more}

    def start(self, *arguments: str | bytes, **variables: str) -> subprocess.Popen[str]:
        command: list[str | Path] = [self.script]
        if self.python:
            names = {"python": self.python, "script": self.script, "directory": self.script.parent}
            command = ["-c", RUN_AS.format(**{name: str(path) for name, path in names.items()})]
        process = subprocess.Popen(
            [sys.executable, *command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env=self.variables(**variables), preexec_fn=_heed_signals,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def run(self, *arguments: str | bytes, **variables: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **variables)
        output, errors = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start_held(self, **variables: str) -> subprocess.Popen[str]:
        """Start a first use that stops at the gate while it builds its environment."""
        process = self.start("x", TEST_GATE=str(self.gate.getsockname()[1]), **variables)
        self.held, _ = self.gate.accept()
        return process

    def release(self) -> None:
        """Open the gate."""
        self.held.close()

    def close(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.wait()
            for stream in (process.stdout, process.stderr):
                stream.close()
        self.gate.close()


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[StandIn]:
    repository = StandIn(tmp_path)
    yield repository
    repository.close()
