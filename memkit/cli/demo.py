"""`memkit demo`: remember a bundled session, search it, and open the result, in a temporary home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import click

from memkit.cli.context import Context, command
from memkit.cli.output import echo, styled
from memkit.errors import MemkitError
from memkit.files import make_private_directory
from memkit.paths import Home
from memkit.text import one_line

QUESTION = "which port does the staging gateway listen on, and why?"
BUNDLED_ROOT = "/home/you/shop"

_SCRIPTS = {
    "SessionStart": "session_start.py",
    "UserPromptSubmit": "prompt_submit.py",
    "Stop": "stop.py",
    "SessionEnd": "session_end.py",
}


@command("demo")
def demo_command(context: Context) -> None:
    """Try memkit: remember a bundled session, search it, and open the result.

    The session goes through the hooks that Claude Code calls. Everything happens in a temporary directory,
    which is deleted at the end.

    \b
      memkit demo
    """
    with _temporary_directory(context.home) as directory:
        result = _Demo(context, directory).run()
    if context.as_json:
        context.print_json(result)


@contextmanager
def _temporary_directory(real: Home) -> Iterator[Path]:
    """Yield a directory with a project, `shop`, and a home, `memkit`, that has the real home's model."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="memkit-demo-")))
    try:
        home = Home(str(root / "memkit"))
        make_private_directory(home.root)
        make_private_directory(real.models)
        try:
            os.symlink(real.models, home.models)
        except OSError:  # on Windows, few users may make links
            shutil.copytree(real.models, home.models)
        (root / "shop").mkdir()
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


class _Demo:
    def __init__(self, context: Context, directory: Path) -> None:
        self.context = context
        self.directory = directory
        self.project = str(directory / "shop")
        bundled = resources.files("memkit.cli").joinpath("demo.jsonl").read_text(encoding="utf-8")
        self.lines = bundled.replace(BUNDLED_ROOT, self.project).splitlines()
        self.session = str(json.loads(self.lines[0])["sessionId"])
        self.transcript = directory / f"{self.session}.jsonl"
        self.environment = {
            **{name: v for name, v in os.environ.items() if not name.startswith("CLAUDE")},
            "MEMKIT_HOME": str(directory / "memkit"),
            "MEMKIT_PYTHON": sys.executable,
            "MEMKIT_SERVICE_ENABLED": "false",  # it would outlive the demo
        }

    def run(self) -> dict[str, Any]:
        """Show each step, unless the result is wanted as JSON; return all results."""
        started = time.perf_counter()
        self._title("1. You work in Claude Code; memkit's hooks record each event")
        events = self._play_session()
        self._title("2. The worker writes a Markdown page for the day and indexes it")
        self._memkit("work", "--wait")
        day = next(Path(self.project, ".memkit", "memory").glob("*.md"))
        self._quote(day.read_text(encoding="utf-8"), most=14)
        self._title(f'3. You ask later: memkit search "{QUESTION}"')
        answer = self._memkit("search", "-k", "2", QUESTION)
        if not answer["results"]:
            raise MemkitError("the demo found nothing in its own memory; please report this")
        for result in answer["results"]:
            self._print(f"{result['id']}  {result['breadcrumb']}  (score {result['score']:.2f})")
        if answer["degraded"]:
            self._print(f"note: {answer['degraded']}")
        best = answer["results"][0]["id"]
        self._title(f"4. You open the whole section: memkit expand {best}")
        section = self._memkit("expand", best)["sections"][0]
        self._quote(section["content"], most=12)
        turn = section["turns"][0]
        self._title(f"5. You open the original exchange: memkit transcript --turn {turn}")
        name = str(self.transcript)
        messages = self._memkit("transcript", name, "--turn", turn, "--context", "0")["messages"]
        for message in messages:
            tools = ", ".join(tool["name"] for tool in message["tools"])
            self._print(f"{message['role']}: {tools or one_line(message['text'], 100)}")
        took = round(time.perf_counter() - started, 2)
        self._title(f"Done in {took} s")
        self._print(f"The demo used {self.directory}, which is now deleted.")
        self._print("Your own memory is in each project, as .memkit/memory/YYYY-MM-DD.md.")
        self._print(f"The index and your settings are in {self.context.home.root}.")
        return {
            "events": events,
            "day_file": day.name,
            "results": answer["results"],
            "section": section,
            "messages": messages,
            "degraded": bool(answer["degraded"]),
            "took_s": took,
        }

    def _play_session(self) -> list[str]:
        """Write the bundled transcript and call the hooks as Claude Code does; return the events."""
        self.transcript.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        events = ["SessionStart"]
        self._hook("SessionStart", source="startup")
        for entry in map(json.loads, self.lines):
            prompt = entry.get("message", {}).get("content")
            if entry["type"] == "user" and isinstance(prompt, str):
                self._print(f"prompt: {prompt}")
                self._hook("UserPromptSubmit", prompt=prompt, prompt_id=entry["promptId"])
                self._hook("Stop", prompt_id=entry["promptId"])
                events += ["UserPromptSubmit", "Stop"]
        self._hook("SessionEnd", reason="prompt_input_exit")
        return [*events, "SessionEnd"]

    def _hook(self, event: str, **fields: str) -> None:
        from memkit.ipc.launch import REPOSITORY

        script = os.path.join(REPOSITORY, "hooks", _SCRIPTS[event])
        run = [script] if os.path.exists(script) else ["-m", "memkit.hook.events", event]
        given = {
            "hook_event_name": event,
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": self.project,
            **fields,
        }
        self._run([sys.executable, "-I", *run], json.dumps(given).encode())

    def _memkit(self, *arguments: str) -> Any:
        """Run a command in the temporary home; return its JSON."""
        from memkit.ipc.launch import memkit_command

        return json.loads(self._run([*memkit_command(), *arguments, "--json"]))

    def _run(self, words: list[str], given: bytes = b"") -> bytes:
        done = subprocess.run(
            words,
            input=given,
            capture_output=True,
            cwd=self.project,
            env=self.environment,
            check=False,
        )
        if done.returncode != 0:
            reason = one_line(done.stderr.decode(errors="replace"))
            raise MemkitError(f"a step of the demo failed: {reason}")
        return done.stdout

    def _title(self, text: str) -> None:
        if not self.context.as_json:
            click.echo(f"\n{styled(text, bold=True)}")

    def _print(self, text: str) -> None:
        if not self.context.as_json:
            echo(f"   {text}")

    def _quote(self, text: str, most: int) -> None:
        lines = text.splitlines()
        for line in lines[:most]:
            self._print(f"| {line}")
        if len(lines) > most:
            self._print(f"| … {len(lines) - most} more lines")
