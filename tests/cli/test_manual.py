"""The examples of docs/commands.md, run as they stand there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.conftest import REPOSITORY, Run
from tests.memory import Memory

MANUAL = Path(REPOSITORY, "docs", "commands.md").read_text()
EXAMPLES = [
    line for block in re.findall(r"```sh\n(.*?)```", MANUAL, re.DOTALL) for line in block.splitlines()
]


def test_the_examples(run: Run, fresh: Memory) -> None:
    names: dict[str, str] = {}
    outputs = {}
    for example in EXAMPLES:
        program, *arguments = shlex.split(example, comments=True)
        assert program == "memkit"
        done = run(fresh, *(names.get(word, word) for word in arguments))
        assert done.status == 0, (example, done.errors)
        outputs[example.partition("#")[0].strip()] = done.output
        if "--json" in arguments:
            assert isinstance(done.json, dict)
        if "$ID" not in names:
            names["$ID"] = run(fresh, "search", "--json", *arguments[1:]).json["results"][0]["id"]
        if found := re.search(r"[0-9a-f]{8}", done.output) if "--tag" in arguments else None:
            names["$NOTE"] = found[0]
    assert "7443" in outputs["memkit search which port does the staging gateway use"]
    assert "7443" in outputs['memkit expand "$ID"']
    assert "5e550002" in outputs["memkit sessions --since 2026-11-19"]
    assert "Staging moves to port 7444." in outputs['memkit forget "$NOTE" --dry-run']
    assert '"mode":"lexical"' in outputs["memkit --set search.mode=lexical search --json staging gateway"].replace(" ", "")
