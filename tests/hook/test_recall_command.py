"""Which commands Claude may run unprompted: one that only reads this project's memory, and no other."""

from __future__ import annotations

import pytest

from tests.hook.conftest import Stage

READING = [
    "memkit search gateway",
    "memkit search 'which port?' -k 8",
    'memkit search "staging gateway" --since=2w --kind turn',
    "memkit search 'what'\\''s the port'",
    "memkit search '$(touch x) `touch y` ; touch z'",
    "memkit expand 3fa9c1d07b52 20e3d2c8274c --json",
    "memkit transcript 8bb06550-1f --turn 8b52f4fb --context 0",
    "memkit recall --stdin <<'MEMKIT_QUESTION'\nwhat's $(touch x)\n`touch y`\nMEMKIT_QUESTION\n",
    "memkit recall --stdin <<'!MEMKIT_QUESTION'\n!MEMKIT_QUESTION",
]
OTHER = [
    "",
    "memkit",
    "memkit off",
    "memkit config set index.uri http://example",
    "memkit forget x",
    "memkit remember x",
    "memkit searching x",
    " memkit search x",
    "memkit --project /p search x",
    "memkit\tsearch x",
    "memkit search x; touch y",
    "memkit search x\ntouch y",
    "memkit search x && touch y",
    "memkit search x | sh",
    "memkit search x > y",
    "memkit search x &",
    "memkit search $(touch y)",
    "memkit search `touch y`",
    'memkit search "$(touch y)"',
    'memkit search "`touch y`"',
    'memkit search "a\\"; touch y; \\""',
    "memkit search 'a'\\'; touch y; '",
    "memkit search $'a'",
    "memkit search ~/x",
    "memkit search =ls",
    "memkit search *",
    "memkit search {a,b}",
    "memkit search x # y",
    "memkit search 'x",
    "memkit search \x00x",
    "memkit search x\x1b[2K",
    "memkit search 'x\ry'",
    "memkit search ö",
    "CLAUDECODE= memkit search x",
    "env memkit search x",
    "/tmp/memkit search x",
    "./memkit search x",
    "memkit search x --all-projects",
    "memkit search x '--all-projects'",
    'memkit search x --all-pr""ojects',
    "memkit search x --project /other",
    "memkit search x --project=/other",
    "memkit search --batch -",
    "memkit search --batch=questions",
    "memkit recall --stdin < questions",
    "memkit recall --stdin <<EOF\n$(touch x)\nEOF",
    "memkit recall --stdin <<'EOF'\nx\nEOF\ntouch y",
    "memkit recall --stdin <<'EOF'\nx\nEOF\ntouch y\nEOF",
    "memkit recall --stdin <<'EOF'\nx",
    "memkit recall --stdin <<'EOF' ; touch y\nx\nEOF",
    "memkit recall --stdin --project /other <<'EOF'\nx\nEOF",
    "memkit transcript /home/other/.claude/projects/p/s.jsonl",
    "memkit transcript s.jsonl",
    "memkit transcript '../s'",
    "memkit search " + "x" * 200_000,
]


def decision(stage: Stage, given: object, tool: str = "Bash") -> str:
    event = stage.event("PreToolUse", tool_name=tool, tool_input=given)
    answer = stage.run("recall_command", event).json
    return str(answer["hookSpecificOutput"]["permissionDecision"]) if answer else ""


@pytest.mark.parametrize("command", READING)
def test_a_command_that_only_reads_this_memory_is_allowed(stage: Stage, command: str) -> None:
    assert decision(stage, {"command": command, "description": "Look"}) == "allow"
    assert not stage.home.exists()


@pytest.mark.parametrize("command", OTHER)
def test_any_other_command_is_left_to_the_client(stage: Stage, command: str) -> None:
    assert decision(stage, {"command": command}) == ""


def test_the_memory_of_another_directory_is_left_to_the_client(stage: Stage) -> None:
    (stage.root / "other").mkdir()
    (stage.project / "sub").mkdir()
    (stage.project / ".git").mkdir()
    environment = {"CLAUDE_PROJECT_DIR": str(stage.project)}
    for directory, expected in ((stage.root / "other", False), (stage.project / "sub", True)):
        event = stage.event("PreToolUse", tool_name="Bash", tool_input={"command": "memkit search x"})
        event["cwd"] = str(directory)
        assert bool(stage.run("recall_command", event, environment=environment).json) == expected


def test_nothing_is_allowed_by_the_name_of_a_skill(stage: Stage) -> None:
    for skill in ("memory-recall", "memkit:memory-recall"):
        assert decision(stage, {"skill": skill}, "Skill") == ""


def test_what_changes_how_a_command_runs_is_left_to_the_client(stage: Stage) -> None:
    command = "memkit search x"
    for field in ("dangerouslyDisableSandbox", "run_in_background", "unknown"):
        assert decision(stage, {"command": command, field: True}) == ""
    for given in ([command], command, None, {"command": [command]}):
        assert decision(stage, given) == ""
    assert decision(stage, {"command": command}, "PowerShell") == ""


def test_a_repositorys_own_memkit_is_left_to_the_client(stage: Stage) -> None:
    """The variables of a repository's settings reach the shell, which then runs another `memkit`."""
    programs = stage.project / "bin"
    programs.mkdir()
    (programs / "memkit").write_text("#!/bin/sh\n")
    allowed = [
        {"PATH": f"/usr/bin:{stage.root}"},
        {"PATH": f"{stage.project}:/usr/bin"},  # no memkit is there
        {"BASH_FUNC_which%%": "() { echo; }", "BASH_ENV": "/etc/bashrc", "LD_LIBRARY_PATH": "/opt/lib:"},
    ]
    refused = [
        {"PATH": f"{programs}:/usr/bin"},
        {"PATH": "bin:/usr/bin"},
        {"PATH": "/proc/self/cwd/bin:/usr/bin"},
        {"PATH": "/usr/../proc/self/cwd/bin"},
        {"PATH": "~+/bin:/usr/bin"},
        {"BASH_FUNC_memkit%%": "() { touch x; }"},
        {"BASH_FUNC_eval%%": "() { touch x; }"},
        {"BASH_ENV": "./rc"},
        {"BASH_ENV": "/$(touch x)"},
        {"ENV": str(stage.project / "rc")},
        {"SHELLOPTS": "xtrace", "PS4": "$(touch x)"},
        {"ZDOTDIR": str(stage.project)},
        {"CLAUDE_CODE_SHELL_PREFIX": "./run"},
        {"LD_AUDIT": f"/usr/lib/a.so:{stage.project}/b.so"},
    ]
    event = stage.event("PreToolUse", tool_name="Bash", tool_input={"command": "memkit search x"})
    marks = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(stage.project)}
    for environment in allowed + refused:
        answer = stage.run("recall_command", event, environment={**marks, **environment})
        assert bool(answer.json) == (environment in allowed), environment
