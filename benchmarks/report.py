"""docs/benchmarks.md: each script writes its own section of it, and leaves the rest alone."""

from __future__ import annotations

import datetime
import os
import platform
import re
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENT = REPOSITORY / "docs" / "benchmarks.md"


def replace_section(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Put `text` between the markers of the section `name`; a new section goes to the end.

    The markers are comments of their own lines, `<!-- begin NAME -->` and `<!-- end NAME -->`. Raises
    `ValueError`, changing nothing, if the document has not exactly one of each, in this order, or none.
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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A markdown table; all columns but the first are numbers and stand to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def machine() -> str:
    """Where and when a measurement was made, in one line, without the name of the machine."""
    today = datetime.date.today().isoformat()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    system = f"{platform.system()} {platform.machine()}"
    return f"{today}, {os.cpu_count()} CPUs, {python}, {system}"
