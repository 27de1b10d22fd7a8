"""`memkit demo`: remember a bundled session, search it, and open the result, in a temporary home."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from textwrap import fill, indent, wrap
from typing import Any

from memkit import anchors
from memkit.cli.context import Context, command
from memkit.cli.importing import found_sessions, new_sessions, select
from memkit.cli.output import echo, short_path
from memkit.cli.screen import width
from memkit.cli.search import show_short
from memkit.errors import MemkitError
from memkit.files import make_private_directory
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.text import one_line

QUESTION = "which port does the staging gateway listen on, and why?"
_LINK = re.compile(r"\]\(#[^)]*\)")
BUNDLED_ROOT = "/home/you/shop"


@command("demo")
def demo_command(context: Context) -> None:
    """Try memkit: remember a bundled session, search it, and open the result.

    Everything happens in a temporary directory, which is deleted at the end. Then memkit counts the sessions
    that you could import.

    \b
      memkit demo
    """
    with _temporary_directory(context.home) as directory:
        result = _run(context, directory)
    if context.as_json:
        context.print_json(result)
        return
    if found := found_sessions(new_sessions(context, select(context, everything=True))):
        echo("\nYour own sessions", bold=True)
        for line in (*found, "`memkit import --all` keeps them and makes them searchable."):
            echo(indent(fill(line, width() - 3), "   "))


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


def _run(context: Context, directory: Path) -> dict[str, Any]:
    from msgspec.structs import replace

    from memkit.agents.sources import find_sources
    from memkit.capture.importer import Importer, ImportSelection
    from memkit.memory import Memory
    from memkit.settings import ServiceSettings, load

    def title(text: str) -> None:
        if not context.as_json:
            echo("\n" + fill(text, width()), bold=True)

    def show(text: str, most: int = 1) -> None:
        lines = [] if context.as_json else text.splitlines()
        for line in lines[:most]:
            echo(indent("\n".join(wrap(line, width() - 3, break_on_hyphens=False)), "   "))
        if len(lines) > most:
            echo(f"   … {len(lines) - most} more lines")

    started = time.perf_counter()
    home = Home(str(directory / "memkit"))
    project = Project(str(directory / "shop"), home)
    loaded = load.load(home, project).settings  # environment variables count
    settings = replace(loaded, service=ServiceSettings(enabled=False))  # it would outlive the demo
    memory = Memory(project, home=home, settings_of=lambda _: settings, announce=context.say)

    title("1. You work in Claude Code, which keeps a transcript of the session")
    bundled = resources.files("memkit.cli").joinpath("demo.jsonl").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in bundled.replace(BUNDLED_ROOT, project.root).splitlines()]
    transcript = directory / f"{entries[0]['sessionId']}.jsonl"
    transcript.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    for entry in entries:
        prompt = entry.get("message", {}).get("content")
        if entry["type"] == "user" and isinstance(prompt, str):
            show(f"prompt: {one_line(prompt, 100)}")

    title("2. memkit writes a Markdown page for the day and indexes it")
    with context.progress("writing and indexing", is_counted=False):
        selection = ImportSelection(home, find_sources([transcript]), project, into=project)
        Importer(selection, settings).run(lambda done: None)
        memory.index()
    page = memory.journal.day(memory.days[0]).render()
    show("\n".join(_LINK.sub("]", anchors.strip(line)) for line in page.splitlines()), most=14)

    title(f'3. You ask later: memkit search "{QUESTION}"')
    with context.progress("searching", is_counted=False):
        answer = memory.search(QUESTION, k=2, excerpts=True)
    if not answer.results:
        raise MemkitError("the demo found nothing in its own memory; please report this")
    if not context.as_json:
        show_short(answer, project.root)
    show(answer.degraded)

    title(f"4. You open the whole section: memkit expand {answer.results[0].id}")
    (section,) = memory.expand(answer.results[0].id)
    show(section["content"], most=12)

    turn = section["turns"][0]
    title(f"5. You open the original exchange: memkit transcript --turn {turn}")
    messages = memory.transcript(str(transcript), turn, context=0).as_dict()["messages"]
    for message in messages:
        tools = ", ".join(tool["name"] for tool in message["tools"])
        show(f"{message['role']}: {tools or one_line(message['text'], 100)}")

    took = round(time.perf_counter() - started, 2)
    title(f"Done in {took} s")
    show(f"The demo used {directory}, which is now deleted.")
    show("Your own memory is in each project, as .memkit/memory/YYYY-MM-DD.md.")
    show(f"The index and your settings are in {short_path(context.home.root)}.")
    return {
        "day_file": f"{memory.days[0]}.md",
        "results": answer.as_dict()["results"],
        "section": section,
        "messages": messages,
        "degraded": bool(answer.degraded),
        "took_s": took,
    }
