"""The PreToolUse hook as the client runs it."""

from __future__ import annotations

from tests.hook.conftest import Stage
from tests.hook.test_reading import READING, SHELL_TRICKS


def decision(stage: Stage, given: object, tool: str = "Bash") -> str:
    event = stage.event("PreToolUse", tool_name=tool, tool_input=given)
    answer = stage.run("pre_tool_use", event).json
    return str(answer["hookSpecificOutput"]["permissionDecision"]) if answer else ""


def test_the_hook_answers_either_way(stage: Stage) -> None:
    assert decision(stage, {"command": READING[0], "description": "Look"}) == "allow"
    assert decision(stage, {"command": SHELL_TRICKS[0]}) == ""
    assert not stage.home.exists()


def test_the_memory_of_another_directory_is_left_to_the_client(stage: Stage) -> None:
    (stage.root / "other").mkdir()
    (stage.project / "sub").mkdir()
    (stage.project / ".git").mkdir()
    environment = {"CLAUDE_PROJECT_DIR": str(stage.project)}
    for directory, expected in ((stage.root / "other", False), (stage.project / "sub", True)):
        event = stage.event("PreToolUse", tool_name="Bash", tool_input={"command": "memkit search x"})
        event["cwd"] = str(directory)
        assert bool(stage.run("pre_tool_use", event, environment=environment).json) == expected


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
        answer = stage.run("pre_tool_use", event, environment={**marks, **environment})
        assert bool(answer.json) == (environment in allowed), environment
