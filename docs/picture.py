"""Draw the picture of the front page: real commands and their real output, as an SVG.

    python docs/picture.py

Imports the recorded session of `memkit demo` into a temporary home, runs the commands, and writes
`docs/terminal.svg`. Needs the model's weights, as any search does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parent.parent
RECORDED = REPOSITORY / "memkit" / "cli" / "demo.jsonl"
RECORDED_ROOT = "/home/you/shop"
PICTURE = REPOSITORY / "docs" / "terminal.svg"
COLUMNS = 92
MOST_LINES = 9

QUESTION = "which port does the staging gateway use?"


def main() -> None:
    """Play the commands and write the picture."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory).resolve()
        project = root / "shop"
        project.mkdir()
        session = root / "8bb06550-0000-4000-8000-000000000000.jsonl"
        session.write_text(RECORDED.read_text(encoding="utf-8").replace(RECORDED_ROOT, str(project)))
        models = os.environ.get("MEMKIT_TEST_MODELS") or REPOSITORY / ".cache" / "test-home" / "models"
        (root / "home").mkdir(mode=0o700)
        os.symlink(models, root / "home" / "models")
        _memkit(project, "import", str(session), "--yes")
        found = _memkit(project, "search", QUESTION, "-k", "1")
        chunk = found.split()[0]
        section = _memkit(project, "expand", chunk)
        turn = re.search(r"turn:(\w+)|turns?:? (\w{8})", section)
        commands = [
            (f'memkit search "{QUESTION}" -k 1', found),
            (f"memkit expand {chunk}", section),
        ]
        if turn:
            name = turn[1] or turn[2]
            exchange = _memkit(project, "transcript", "--turn", name)
            commands.append((f"memkit transcript --turn {name}", exchange))
    PICTURE.write_text(_draw(commands), encoding="utf-8")


def _memkit(project: Path, *arguments: str) -> str:
    """Run a command in the project, and return what it prints."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(project.parent),
        "MEMKIT_HOME": str(project.parent / "home"),
        "MEMKIT_SERVICE_ENABLED": "false",
        "COLUMNS": str(COLUMNS - 2),
        "TZ": "UTC",
    }
    run = [sys.executable, "-m", "memkit", *arguments]
    done = subprocess.run(
        run,
        cwd=project,
        env={**environment, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"memkit {' '.join(arguments)}: {done.stderr}")
    return done.stdout.replace(str(project), RECORDED_ROOT)


def _draw(commands: list[tuple[str, str]]) -> str:
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    for command, output in commands:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        lines = [line for line in output.splitlines() if line.strip()]
        for line in lines[:MOST_LINES]:
            console.print(Text(line[: COLUMNS - 1]), highlight=False)
        if len(lines) > MOST_LINES:
            console.print(Text("…", "dim"))
        console.print()
    picture = console.export_svg(title="memkit", unique_id="memkit")
    # No reader's browser asks a foreign server for a font.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


if __name__ == "__main__":
    main()
