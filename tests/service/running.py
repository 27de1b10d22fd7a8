"""A real service of a memory home, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memkit.ipc import launch, stop
from memkit.ipc.client import RequestRefused, ServiceUnavailable, request
from tests.memory import Memory

REPOSITORY = Path(__file__).resolve().parents[2]
SECONDS = 60.0


def wait_until(is_done: Callable[[], Any], what: str) -> Any:
    """What `is_done` gives, once that is true."""
    deadline = time.monotonic() + SECONDS
    while not (value := is_done()):
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.01)
    return value


class RunningService:
    """A service that was started as memkit starts it, and everything one can ask it."""

    def __init__(self, memory: Memory, **variables: str) -> None:
        self.memory = memory
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMKIT_", "CLAUDE"))}
        self.environment = {
            **kept, "MEMKIT_HOME": memory.home.root, "MEMKIT_PYTHON": sys.executable,
            "PYTHONPATH": str(REPOSITORY), "CLAUDE_CONFIG_DIR": str(Path(memory.home.root, "claude")),
            **variables,
        }  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> RunningService:
        self.process = self.spawn()
        wait_until(self.status, "the service to answer")
        return self

    def spawn(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "memkit", "service", "run"]
        return subprocess.Popen(
            command, env=self.environment, cwd=self.memory.project.root, stderr=subprocess.PIPE
        )

    def stop(self) -> None:
        """End it, whatever state it is in, and whatever a command started in its place."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()
            if self.process.stderr is not None:
                self.process.stderr.close()
        if launch.service_is_running(self.memory.home):
            stop.stop(self.memory.home)

    def status(self) -> dict[str, Any]:
        """What it says of itself; empty if it does not answer."""
        try:
            return request(self.memory.home, "status", {}, SECONDS)
        except ServiceUnavailable:
            return {}

    def ask(self, operation: str, **arguments: Any) -> dict[str, Any]:
        own = {"root": self.memory.project.root}
        return request(self.memory.home, operation, {**own, **arguments}, SECONDS)

    def found(self, query: str) -> list[str]:
        """The contents that a search through the service finds, whatever their relevance."""

        def answer_here() -> dict[str, Any]:
            try:
                return self.ask("search", request={"query": query, "minimum": 0.0}, search={})
            except RequestRefused as refused:
                if refused.kind != "elsewhere":  # on a busy machine the first index takes long
                    raise
                return {}
            except ServiceUnavailable as unavailable:
                if unavailable.reason != "hung":  # a busy machine may answer no ping for seconds
                    raise
                return {}

        answer = wait_until(answer_here, "the project to be indexed")
        return [result["chunk"]["content"] for result in answer["results"]]

    def memkit(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memkit", *arguments], env=self.environment, cwd=self.memory.project.root,
            input=stdin, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    def hook(self, script: str, **event: Any) -> str:
        """What a hook adds to the conversation."""
        root = self.memory.project.root
        done = subprocess.run(
            [sys.executable, str(REPOSITORY / "hooks" / f"{script}.py")], env=self.environment, cwd=root,
            input=json.dumps({"cwd": root, **event}).encode(), capture_output=True, check=True,
        )  # fmt: skip
        found = json.loads(done.stdout).get("hookSpecificOutput", {})
        assert "permissionDecision" not in found
        return str(found.get("additionalContext", ""))

    def json(self, *arguments: str) -> Any:
        done = self.memkit(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
