"""Write sections of docs/benchmarks.md. Each script owns one."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENT = REPOSITORY / "docs" / "benchmarks.md"


def replace_section(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Put `text` between the markers of the section `name`. A new section goes to the end.

    The markers are comments on their own lines, `<!-- begin NAME -->` and `<!-- end NAME -->`. Raise
    `ValueError` without a change if the document has neither none nor exactly one of each, in this order.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    old = document.read_text(encoding="utf-8") if document.exists() else ""
    found = re.findall(f"^({re.escape(begin)}|{re.escape(end)})$", old, re.MULTILINE)
    section = f"{begin}\n{text.strip()}\n{end}"
    if not found:
        new = f"{old.rstrip()}\n\n{section}\n".lstrip()
    elif found == [begin, end]:
        before, _, rest = old.partition(f"{begin}\n")
        new = f"{before}{section}{rest.partition(end)[2]}"
    else:
        raise ValueError(f"{document}: the markers of {name} are {found}, expected one pair")
    document.parent.mkdir(exist_ok=True)
    document.write_text(new, encoding="utf-8")


def publish(name: str, figures: Any, text: str, *, as_json: bool, write: bool) -> None:
    """Print figures, as JSON or as `text`; with `write`, `text` becomes the section `name`, too."""
    print(json.dumps(figures) if as_json else text)
    if write:
        replace_section(name, text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table. All columns but the first are numbers and right-aligned."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine() -> str:
    """Return date and kind of machine in one line, without the machine's name."""
    today = datetime.date.today().isoformat()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.machine()}"
    return f"{today}, {os.cpu_count()} CPUs, {python}, {system}"
