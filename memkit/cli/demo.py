"""`memkit demo`: the main job before the user's eyes, in a throw-away home."""

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

from memkit.cli.context import Context, command, styled
from memkit.errors import MemkitError
from memkit.files import make_private_directory
from memkit.hook.project import Project
from memkit.paths import Home

QUESTION = "which port does the staging gateway listen on, and why?"
BUNDLED_ROOT = "/home/you/shop"
WAIT_SECONDS = 120.0
POLL_SECONDS = 0.02

_SCRIPTS = {
    "SessionStart": "session_start.py",
    "UserPromptSubmit": "prompt_submit.py",
    "Stop": "stop.py",
    "SessionEnd": "session_end.py",
}


@command("demo")
def demo_command(context: Context) -> None:
    """See the whole loop at work: a session is remembered, found again, and opened.

    A bundled transcript of the real client goes through the same hooks Claude Code calls. Everything happens
    in a temporary directory that is removed at the end.

    \b
      memkit demo
    """
    with _stage(context.home) as (home, project, transcript):
        outcome = _Demo(context, home, project, transcript).run()
    if context.as_json:
        context.print_json(outcome)


@contextmanager
def _stage(real: Home) -> Iterator[tuple[Home, Project, Path]]:
    """A home, a project and a place for the transcript, all temporary; the model is the real home's."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="memkit-demo-")))
    try:
        home = Home(str(root / "memkit"))
        make_private_directory(home.root)
        make_private_directory(real.models)
        try:
            os.symlink(real.models, home.models)
        except OSError:  # Windows asks for a right that few users have
            shutil.copytree(real.models, home.models)
        (root / "shop").mkdir()
        yield home, Project(str(root / "shop")), root
    finally:
        shutil.rmtree(root, ignore_errors=True)


class _Demo:
    def __init__(self, context: Context, home: Home, project: Project, root: Path) -> None:
        self.context = context
        self.home = home
        self.project = project
        bundled = resources.files("memkit.cli").joinpath("demo.jsonl").read_text(encoding="utf-8")
        self.lines = bundled.replace(BUNDLED_ROOT, project.root).splitlines(keepends=True)
        self.session = str(json.loads(self.lines[0])["sessionId"])
        self.transcript = root / f"{self.session}.jsonl"

    def run(self) -> dict[str, Any]:
        from memkit.recall.expand import expand
        from memkit.recall.open import open_searcher
        from memkit.recall.transcript import around, find_turn, read_messages

        started = time.perf_counter()
        self._title("1. Claude Code works, memkit's hooks see it go by")
        events = self._play_session()
        self._title("2. The worker writes daily markdown and indexes it")
        self._wait_for_worker()
        day = next(Path(self.project.memory).glob("*.md"))
        self._quote(day.read_text(encoding="utf-8"), lines=14)
        settings = self.context.settings_of(self.project)
        self._title(f'3. A later session asks: memkit search "{QUESTION}"')
        searcher = open_searcher(self.project, self.home, settings, announce=self.context.say)
        answer = searcher.search(QUESTION, 2)
        if not answer.results or searcher.corpus is None:
            raise MemkitError("the demo found nothing in its own memory; please report this")
        for result in answer.results:
            self._say(f"{result.id}  {result.chunk.breadcrumb}  (score {result.score:.2f})")
        if answer.degraded:
            self._say(f"note: {answer.degraded}")
        best = answer.results[0]
        self._title(f"4. The whole section: memkit expand {best.id}")
        section = expand(self.project, self.home, searcher.corpus.snapshots[0], best.id)
        self._quote(section.content, lines=12)
        turn = section.turns[0]
        self._title(f"5. The original exchange: memkit transcript --turn {turn}")
        found = find_turn(self.transcript, turn)
        messages = around(read_messages(self.transcript, lambda text: text), found.id, 0)
        for message in messages:
            tools = ", ".join(
                t.name if t.result is None else f"{t.name} → result" for t in message.tools
            )
            self._say(f"{message.role}: {tools or ' '.join(message.text.split())[:100]}")
        took = round(time.perf_counter() - started, 2)
        self._title(f"Done in {took} s")
        self._say(f"All of this was in {os.path.dirname(self.project.root)}, which is now removed.")
        self._say(
            "A real memory lies in your project, as .memkit/memory/YYYY-MM-DD.md; what is derived from"
        )
        self._say(f"it, and settings, in {self.context.home.root}.")
        return {
            "events": events,
            "day_file": day.name,
            "results": [result.as_dict() for result in answer.results],
            "section": section.as_dict(),
            "messages": [message.as_dict() for message in messages],
            "degraded": bool(answer.degraded),
            "took_s": took,
        }

    def _play_session(self) -> list[str]:
        """Write the bundled transcript as the client would, and call the hooks as it would."""
        self._hook("SessionStart", source="startup")
        played = ["SessionStart"]
        prompt, prompt_id, message = "", "", ""
        for line in [*self.lines, "{}"]:
            entry = json.loads(line)
            content = entry.get("message", {}).get("content")
            asked = content if entry.get("type") == "user" and isinstance(content, str) else ""
            if prompt and (asked or not entry):
                self._hook("Stop", prompt_id=prompt_id, last_assistant_message=message)
                played.append("Stop")
            if asked:
                prompt, prompt_id = asked, entry["promptId"]
                self._hook("UserPromptSubmit", prompt=prompt, prompt_id=prompt_id)
                played.append("UserPromptSubmit")
                self._say(f"prompt: {prompt}")
            if entry.get("type") == "assistant":
                message = "".join(block.get("text", "") for block in content)
            if entry:
                with self.transcript.open("a", encoding="utf-8") as file:
                    file.write(line)
        self._hook("SessionEnd", reason="prompt_input_exit")
        return [*played, "SessionEnd"]

    def _hook(self, event: str, **fields: str) -> None:
        """Run a hook as the client does: a process of its own, the event on stdin."""
        from memkit.ipc.launch import REPOSITORY

        script = os.path.join(REPOSITORY, "hooks", _SCRIPTS[event])
        run = [script] if os.path.exists(script) else ["-m", "memkit.hook.events", event]
        given = {
            "hook_event_name": event,
            "session_id": self.session,
            "transcript_path": str(self.transcript),
            "cwd": self.project.root,
            **fields,
        }
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("CLAUDE")},
            "MEMKIT_HOME": self.home.root,
            "MEMKIT_PYTHON": sys.executable,
            "MEMKIT_SERVICE_ENABLED": "false",  # it would outlive the demo
        }
        answer = subprocess.run(
            [sys.executable, "-I", *run],
            input=json.dumps(given).encode(),
            capture_output=True,
            env=environment,
            check=False,
        )
        if answer.returncode != 0:
            raise MemkitError(f"the {event} hook failed: {answer.stderr.decode(errors='replace')}")

    def _wait_for_worker(self) -> None:
        from memkit.embedding import local  # noqa: F401 - while the worker is at it
        from memkit.ipc import launch
        from memkit.recall import expand, search  # noqa: F401

        deadline = time.monotonic() + WAIT_SECONDS
        while launch.work_waits(self.home) or launch.worker_is_running(self.home):
            if time.monotonic() > deadline:
                raise MemkitError(f"the worker did not finish within {WAIT_SECONDS:.0f} s")
            time.sleep(POLL_SECONDS)

    def _title(self, text: str) -> None:
        if not self.context.as_json:
            click.echo(f"\n{styled(text, bold=True)}")

    def _say(self, text: str) -> None:
        if not self.context.as_json:
            click.echo(f"   {text}")

    def _quote(self, text: str, lines: int) -> None:
        shown = text.splitlines()
        for line in shown[:lines]:
            self._say(f"| {line}")
        if len(shown) > lines:
            self._say(f"| … {len(shown) - lines} more lines")
