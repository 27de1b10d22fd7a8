"""A small plugin that shows the tests what the client does with one.

Its hooks record their input, two of them give context, `bin/probe-echo` prints its standard
input, and the skill `ask` runs it on the question, in a sub-agent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION_CONTEXT = "The probe noted the start of this session."
PROMPT_CONTEXT = "The probe noted this prompt."
SKILL_HEADING = "Probe instructions"
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "StopFailure", "SubagentStop", "SessionEnd")

MANIFEST = {
    "name": "probe",
    "version": "1.0.0",
    "description": "Shows what the client does with a plugin.",
    "author": {"name": "Tests"},
}
MARKETPLACE = {
    "name": "probes",
    "description": "The probe.",
    "owner": {"name": "Tests"},
    "plugins": [{"name": "probe", "source": "./", "description": MANIFEST["description"]}],
}
HOOK = f"""\
import json, os, sys

event = json.load(sys.stdin)
record = {{"input": event, "environment": dict(os.environ)}}
with open(os.environ["PROBE_LOG"], "a") as log:
    log.write(json.dumps(record) + "\\n")
name = event["hook_event_name"]
context = {{"SessionStart": {SESSION_CONTEXT!r}, "UserPromptSubmit": {PROMPT_CONTEXT!r}}}.get(name)
output = {{"hookEventName": name, "additionalContext": context}}
print(json.dumps({{"hookSpecificOutput": output}} if context else {{}}))
"""
SKILL = f"""\
---
name: ask
description: Answers a question by the probe.
context: fork
background: false
agent: general-purpose
allowed-tools: Bash(probe-echo *)
---
# {SKILL_HEADING}

```!
probe-echo --stdin <<'PROBE_QUESTION'
$ARGUMENTS
PROBE_QUESTION
```
"""
PROGRAM = """\
#!/bin/sh
printf 'asked <%s> with %s\\n' "$(cat)" "$*"
"""


def write_probe_plugin(directory: Path) -> None:
    """Write the plugin, with a marketplace that offers it, into `directory`."""
    hooks = {event: [{"hooks": [_hook_command()]}] for event in EVENTS}
    _write(directory / "plugin.json", json.dumps(MANIFEST))
    _write(directory / ".claude-plugin" / "marketplace.json", json.dumps(MARKETPLACE))
    (directory / ".claude-plugin" / "plugin.json").symlink_to("../plugin.json")
    _write(directory / "hooks" / "hooks.json", json.dumps({"hooks": hooks}))
    _write(directory / "hooks" / "record.py", HOOK)
    _write(directory / "skills" / "ask" / "SKILL.md", SKILL)
    _write(directory / "bin" / "probe-echo", PROGRAM)
    (directory / "bin" / "probe-echo").chmod(0o755)


def _hook_command() -> dict[str, Any]:
    arguments = ["${CLAUDE_PLUGIN_ROOT}/hooks/record.py"]
    return {"type": "command", "command": "python3", "args": arguments}


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
