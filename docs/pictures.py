"""Draw the pictures and screens of the manual from real commands and their real output.

    python docs/pictures.py [--check]

Imports the recorded session of `memkit demo` next to the example day of the manual, into a temporary home,
and runs the commands there. With `--check` nothing is written, and the exit status is 1 if something is out
of date. Needs the model's weights, as any search does, and Chromium for `export.png`.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCUMENTS = Path(__file__).resolve().parent
REPOSITORY = DOCUMENTS.parent
sys.path.insert(0, str(REPOSITORY))

from reference import with_part  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.text import Text  # noqa: E402

from memkit.cli.output import as_svg  # noqa: E402

RECORDED = REPOSITORY / "memkit" / "cli" / "demo.jsonl"
RECORDED_ROOT = "/home/you/shop"
DAY = "2026-11-20"
"""The day of the recorded session, and of the example day."""

COLUMNS = 80
MOST_LINES = 12
TOUR_LINES = 7
QUESTION = "which port does the staging gateway use"


class Shop:
    """A project with a memory, and memkit in a terminal there."""

    def __init__(self, root: Path) -> None:
        """Make the project in the empty directory `root`, and import the recorded session."""
        self.root = root
        self.project = root / "shop"
        day = self.project / ".memkit" / "memory" / f"{DAY}.md"
        day.parent.mkdir(parents=True)
        day.write_bytes((REPOSITORY / "tests" / "fixtures" / "example-day.md").read_bytes())
        session = root / "8bb06550-0000-4000-8000-000000000000.jsonl"
        recorded = RECORDED.read_text(encoding="utf-8").replace(RECORDED_ROOT, str(self.project))
        session.write_text(recorded, encoding="utf-8")
        models = os.environ.get("MEMKIT_TEST_MODELS") or REPOSITORY / ".cache" / "test-home" / "models"
        (root / ".memkit").mkdir(mode=0o700)
        os.symlink(models, root / ".memkit" / "models")
        self.json("import", str(session), "--yes")

    def json(self, *arguments: str) -> Any:
        """Run a command, and return its JSON."""
        done = subprocess.run(
            self._command(*arguments, "--json"),
            cwd=self.project, env=self._environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"memkit {' '.join(arguments)}: {done.stderr}")
        return json.loads(done.stdout)

    def screen(self, *arguments: str) -> str:
        """Run a command, and return what it prints on a terminal, with its colors."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 500, COLUMNS, 0, 0))
        process = subprocess.Popen(
            self._command(*arguments),
            cwd=self.project, env=self._environment(), stdin=subprocess.DEVNULL,
            stdout=theirs, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(theirs)
        printed = b"".join(iter(lambda: _read(ours), b""))
        os.close(ours)
        _, errors = process.communicate()
        if process.returncode:
            raise SystemExit(f"memkit {' '.join(arguments)}: {errors.decode()}")
        text = printed.decode().replace("\r\n", "\n").replace(str(self.project), RECORDED_ROOT)
        return text.replace(str(self.root), str(Path(RECORDED_ROOT).parent))

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "memkit", *arguments]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(REPOSITORY),
            "HOME": str(self.root),
            "MEMKIT_SERVICE_ENABLED": "false",
            "MEMKIT_SUMMARIZE_PROVIDER": "none",
            "TERM": "xterm-256color",
            "PAGER": "cat",
            "TZ": "UTC",
        }


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end was closed
        return b""


def recording(shop: Shop) -> str:
    """Return the picture of the front page: from a question to the original exchange."""
    (found,) = shop.json("search", QUESTION, "-k", "1")["results"]
    (section,) = shop.json("expand", found["id"])["sections"]
    turn = section["turns"][0]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, no_color=False)
    for command in (("search", QUESTION, "-k", "2"), ("expand", found["id"]), ("transcript", "--turn", turn)):
        shown = " ".join(f'"{word}"' if " " in word else word for word in command)
        console.print(Text.assemble(("$ ", "bold green"), (f"memkit {shown}", "bold")))
        lines = [line for line in shop.screen(*command).splitlines() if line.strip()]
        for line in lines[:MOST_LINES]:
            text = Text.from_ansi(line)
            console.print(text, no_wrap=True, overflow="ellipsis", highlight=False)
        if len(lines) > MOST_LINES:
            console.print(Text("…", "dim"))
        console.print()
    return as_svg(console, "memkit")


def forgetting(shop: Shop) -> str:
    """Return what `memkit forget` shows before it asks."""
    (found,) = shop.json("search", QUESTION, "-k", "1")["results"]
    turn = shop.json("forget", found["id"], "--dry-run")["turns"][0]
    lines = Text.from_ansi(shop.screen("forget", turn, "--dry-run")).plain.splitlines()
    return "\n".join(["```", f"$ memkit forget {turn} --dry-run", *lines, "```"])


def tour(shop: Shop) -> dict[str, str]:
    """Return the screens of the quick start by their commands."""
    (found,) = shop.json("search", QUESTION, "-k", "1")["results"]
    commands = (["sessions"], ["search", *QUESTION.split()], ["show", found["id"]])
    return {command[0]: _first_lines(shop, command) for command in commands}


def _first_lines(shop: Shop, command: list[str]) -> str:
    printed = Text.from_ansi(shop.screen(*command)).plain
    lines = [line.rstrip() for line in printed.splitlines() if line.strip()]
    if len(lines) > TOUR_LINES:
        lines = [*lines[:TOUR_LINES], "…"]
    return "\n".join(["```", f"$ memkit {' '.join(command)}", *lines, "```"])


def page(shop: Shop) -> str:
    """Return the HTML export."""
    path = shop.root / "memory.html"
    shop.json("export", "--format", "html", "--output", str(path))
    return path.read_text(encoding="utf-8")


def draw_page(html: Path, picture: Path) -> str | None:
    """Draw a page with Chromium. Return a problem, or None."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        return f"{picture.name} is out of date; install Chromium, and run this again"
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,700")
    command = [browser, *options, f"--screenshot={picture}", html.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return f"{picture.name}: {done.stderr}" if done.returncode else None


@contextmanager
def a_shop() -> Iterator[Shop]:
    """Yield a project that is deleted afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        yield Shop(Path(directory).resolve())


def main(check: bool) -> str | None:
    """Write what is out of date, or return a line about it."""
    with a_shop() as shop:
        privacy = _present(DOCUMENTS / "privacy.md")
        start = _present(DOCUMENTS / "index.md")
        for name, screen in tour(shop).items():
            start = with_part(start, name, screen, "docs/pictures.py")
        made = {
            "index.md": start,
            "terminal.svg": recording(shop),
            "example-memory.html": page(shop),
            "privacy.md": with_part(privacy, "forget", forgetting(shop), "docs/pictures.py"),
        }
    stale = [name for name in made if _comparable(_present(DOCUMENTS / name)) != _comparable(made[name])]
    if check:
        names = ", ".join(f"docs/{name}" for name in stale)
        return f"stale: {names}; `python docs/pictures.py` rebuilds them" if stale else None
    for name in stale:
        (DOCUMENTS / name).write_text(made[name], encoding="utf-8")
    picture = DOCUMENTS / "export.png"
    if "example-memory.html" in stale or not picture.exists():
        return draw_page(DOCUMENTS / "example-memory.html", picture)
    return None


def _present(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _comparable(text: str) -> str:
    """Return `text` without decimals: a machine can compute another third digit of a score."""
    return re.sub(r"\d+\.\d+", "0.0", text)


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(f"{Path(__file__).name}: takes nothing but --check")
    sys.exit(main(check=bool(sys.argv[1:])))
