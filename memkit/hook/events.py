"""What the hooks of Claude Code and Codex do: read the event, spool it durably, answer.

An event contains no conversation text: the worker reads the transcript. A hook never breaks or delays a
session. Whatever happens, it prints one JSON object and exits 0. Errors go to `MEMKIT_HOME/log/hooks.log`.

`hooks.json` runs each script through `python3 -c`: an update removes the plugin's directory under running
sessions, and the status of a missing script, 2, would block the tool.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Callable

from memkit.errors import unwritable
from memkit.files import make_private_directory
from memkit.hook import codex
from memkit.paths import TEAM_DIRECTORY, Home
from memkit.projects.git_files import head
from memkit.projects.project import Project
from memkit.projects.trust import heed_user_only, shell_is_users
from memkit.state import parse_json

Values = dict[str, Any]
"""The input of a hook, its answer, or its settings."""

Afterwards = list[Callable[[], object]]
"""Steps to run after the answer is printed."""

MAX_INPUT_BYTES = 64 * 1024 * 1024

MAX_LOG_BYTES = 1024 * 1024

CHILD_VARIABLE = "MEMKIT_CHILD"
"""Set for each Claude Code that memkit itself starts, so that its hooks do nothing."""

DISABLE_VARIABLE = "MEMKIT_DISABLE"

MACHINE_PROMPT = "<task-notification>"
"""Start of a prompt that Claude Code wrote itself."""

MAX_PROMPT_CHARACTERS = 50_000
"""A longer prompt is not looked up. The service must see all of it, to notice `#skip` at its end."""

ENTRIES_CHARACTERS = 2000
"""Most characters of the newest entries for a starting session."""

NOT_PUBLISHED = -1

DEFAULT_SETTINGS: Values = {
    "session_start": "guide",
    "inject": "pointers",
    "on_failure": True,
    "on_edit": True,
    "on_agent": True,
    "service": True,
    "summary_tokens": NOT_PUBLISHED,
}
"""Settings until a worker or `memkit config` publishes the user's.

`summary_tokens` is the daily budget of summaries that the user has neither chosen nor refused, else 0.
"""

_NO_SERVICE = r"(?m)^\s*(?:\[service\][^\[]*?^\s*|service\.)enabled\s*=\s*false\b"
"""`enabled = false` below `[service]`, or `service.enabled = false`, in TOML."""

_PLUGIN = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_EVENT_FIELDS = {
    "session": "session_id",
    "prompt_id": "prompt_id",
    "transcript": "transcript_path",
    "cwd": "cwd",
}
"""Fields of a spooled event, and where they come from in the hook's input."""


def run(event: str = "") -> None:
    """Handle one event from stdin, print the answer, and end the process with status 0.

    Without the name of an event, it is one of Codex, whose input names it.
    """
    answer: Values = {}
    afterwards: Afterwards = []
    os.umask(0o077)  # inherited by the worker: logs and Chroma's files are private too
    try:
        data = read_input()
        # The shell that a PreToolUse event is about still gets the variables that this hook removes.
        is_command = event == "PreToolUse" and data.get("tool_name") == "Bash"
        is_answered = not is_command or shell_is_users(os.environ)
        raw = dict(os.environ)
        heed_user_only()
        if not event:
            event = codex.translate(data)
            answer = codex.accepted(answer_event(event, data, afterwards, raw)) if event else {}
        elif is_answered:
            answer = answer_event(event, data, afterwards, raw)
    except BaseException as error:  # noqa: BLE001 - nothing may reach the session
        log_failure(event, error)
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        for step in afterwards:
            step()
    except Exception:  # noqa: BLE001 - Claude Code no longer listens
        pass
    os._exit(0)  # skip the interpreter's shutdown, which takes time and can fail


def read_input() -> Values:
    """Return the event on stdin. Raise `ValueError`."""
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES) if sys.stdin is not None else b""
    value = parse_json(data.decode("utf-8", "replace") or "null")
    if not isinstance(value, dict):
        raise ValueError("no JSON object on stdin")
    return value


def _is_seen(environ: Mapping[str, str]) -> bool:
    """Return whether a person sees this session in a terminal. Claude Code sets both variables itself."""
    is_terminal = environ.get("CLAUDE_CODE_ENTRYPOINT") == "cli"
    return is_terminal and environ.get("CLAUDE_CODE_SESSION_ATTENDED") != "0"


def _sends_elsewhere(environ: Mapping[str, str]) -> bool:
    from memkit.login import sends_elsewhere  # only the start of a session needs it

    return sends_elsewhere(environ)


def _is_uninstalled(home: Home) -> bool:
    """Return whether memkit was removed while this session is open, which goes on with a copy of the plugin.

    Claude Code marks such copies. It marks those before an update, too; but then there is a home.
    """
    return os.path.exists(os.path.join(_PLUGIN, ".orphaned_at")) and not os.path.isdir(home.root)


def answer_event(event: str, data: Values, afterwards: Afterwards, raw: Mapping[str, str]) -> Values:
    """Spool the event and return the answer; add to `afterwards` what to do once it is printed.

    `raw` is the whole environment that Claude Code gave the hook. Other code uses only a part of it.
    """
    if os.environ.get(CHILD_VARIABLE) or os.environ.get(DISABLE_VARIABLE):
        return {}
    directory = _text(data.get("cwd")) or os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    home = Home.from_environment()
    if _is_uninstalled(home):
        return {}
    project = Project.remembering(os.environ.get("CLAUDE_PROJECT_DIR") or directory, home)
    if project.is_off:
        from memkit.hook.notices import off_notice

        line = off_notice(home, project) if event == "SessionStart" else None
        return {"systemMessage": line} if line else {}
    is_bash = data.get("tool_name") == "Bash"
    if event in ("PostToolUseFailure", "SubagentStart") or (event == "PreToolUse" and not is_bash):
        return _answer_moment(home, project, event, data, _settings(home), afterwards)
    if event == "PreToolUse":
        # After a `cd` into another project, the same command would read that project's memory.
        return _judge_command(data, is_own=Project.remembering(directory, home) == project)
    settings = _settings(home)
    if event == "FileChanged":
        _take_in(home, project, _text(data.get("file_path")), settings)
        return {}
    if event == "UserPromptSubmit":
        _hand_over(home, event, settings)
        answer = _answer_prompt(home, project, data, settings, afterwards)
        if _is_seen(raw) and not os.path.isdir(home.archive):
            from memkit.hook.notices import first_notice

            if line := first_notice(home):
                answer["systemMessage"] = line
        return answer
    failure = ""
    try:
        if event == "SessionStart":
            _note_team(home, project)
        _spool(home, event, data, project, raw)
    except OSError as error:  # the answer below needs no writable home
        log_failure(event, error)
        failure = unwritable(error, home.root)
    else:
        _hand_over(home, event, settings)
    if event == "SessionStart":
        answer = _answer_start(home, project, data, settings, afterwards)
        lines = _lines_for_user(home, project, data, settings, afterwards, raw, failure)
        if lines:
            answer["systemMessage"] = "\n".join(lines)
        return answer
    return {}


def _spool(home: Home, event: str, data: Values, project: Project, raw: Mapping[str, str]) -> None:
    from memkit.ipc import spool

    record: Values = {"event": event, "time": time.time(), "project": project.root}
    for name, field in _EVENT_FIELDS.items():
        if _text(data.get(field)):
            record[name] = data[field]
    if event == "SessionStart":
        record["client"] = os.getppid()
        record["elsewhere"] = _sends_elsewhere(raw)
    if event in ("Stop", "StopFailure"):
        commit = head(_text(data.get("cwd")) or project.root).commit
        if commit:
            record["commit"] = commit
    if record.get("session"):
        spool.put(home, record)


def _take_in(home: Home, project: Project, path: str, settings: Values) -> None:
    from memkit.projects import team_files

    source = os.path.relpath(os.path.realpath(path), os.path.realpath(project.root)) if path else ""
    if team_files.is_team(source.replace(os.sep, "/")) and _note_team(home, project):
        _hand_over(home, "FileChanged", settings)


def _note_team(home: Home, project: Project) -> bool:
    """Return whether the clone is trusted; if it is, have the team's copy brought up to date."""
    from memkit.ipc import unindexed
    from memkit.projects import team_files

    is_trusted = team_files.is_trusted(home, project.root)
    if is_trusted:
        unindexed.mark(home, project.root)
    return is_trusted


def _hand_over(home: Home, event: str, settings: Values) -> None:
    from memkit.ipc import launch

    try:
        launch.hand_over(home, bool(settings["service"]))
    except OSError as error:
        log_failure(event, error)


def _answer_start(
    home: Home, project: Project, data: Values, settings: Values, afterwards: Afterwards
) -> Values:
    """Return what Claude gets when a session starts."""
    text, session = "", _text(data.get("session_id"))
    if data.get("source") == "compact" and settings["session_start"] != "off" and settings["service"]:
        from memkit.hook import moments

        reply = moments.ask(home, project, data, {"kind": "compact"}, afterwards)
        text = _text((reply or {}).get("text"))
    text = text or _start_text(home, project, settings["session_start"], session)
    answer = _context("SessionStart", text) if text else {}
    if os.path.isdir(folder := os.path.join(project.root, TEAM_DIRECTORY)):  # few projects
        from memkit.projects.team_files import is_trusted

        if is_trusted(home, project.root):
            output = answer.setdefault("hookSpecificOutput", {"hookEventName": "SessionStart"})
            output["watchPaths"] = [folder]
    return answer


def _start_text(home: Home, project: Project, chosen: str, session: str) -> str:
    from memkit.hook.entries import HOOK_BYTES, OwnEntries
    from memkit.hook.guide import guide, session_facts
    from memkit.projects.team_files import newest_lines

    own = OwnEntries(home, project.root, HOOK_BYTES)
    if chosen == "guide":
        text = guide(home, project, own, session=session)
    elif chosen == "entries":
        text = session_facts(project, ENTRIES_CHARACTERS, own)
    elif chosen == "both":
        opening = guide(home, project, own, with_facts=False)
        text = session_facts(project, len(opening) + ENTRIES_CHARACTERS, own, opening)
    else:
        return ""
    return text + newest_lines(home, project.root)


def _lines_for_user(
    home: Home,
    project: Project,
    data: Values,
    settings: Values,
    afterwards: Afterwards,
    raw: Mapping[str, str],
    failure: str,
) -> list[str]:
    """Return what the user sees when a session starts. A line that cannot be made is logged and left out.

    `failure` says why the event could not be spooled, "" if it was.
    """
    from memkit.hook import notices

    def tried(make: Callable[..., str | None], *arguments: object) -> str:
        try:
            return make(*arguments) or ""
        except OSError as error:
            log_failure("SessionStart", error)
            return ""

    is_seen = _is_seen(raw) and data.get("source") in ("startup", "resume")
    announcement = ""
    if is_seen and not _sends_elsewhere(raw):
        announcement = tried(notices.summaries_notice, home, settings["summary_tokens"])
        if announcement:
            afterwards.append(lambda: tried(notices.note_announced, home))
    lines = [
        announcement,
        tried(notices.environment_notice, home),
        tried(notices.import_notice, home, _text(data.get("transcript_path"))),
        tried(notices.team_notice, home, project),
    ]
    if failure:
        lines.append(f"memkit: cannot remember this session: {failure}")
    lines += notices.take(home, project.root)
    if is_seen:
        from memkit.hook.tally import greeting

        lines.append(tried(greeting, home, project, time.time()))
    return [line for line in lines if line]


def _answer_prompt(
    home: Home, project: Project, data: Values, settings: Values, afterwards: Afterwards
) -> Values:
    from memkit.hook.entries import prompt_hint

    prompt = _text(data.get("prompt"))
    if settings["inject"] == "off" or prompt.startswith(MACHINE_PROMPT):
        return {}
    text = None
    is_short = len(prompt) <= MAX_PROMPT_CHARACTERS
    if settings["inject"] == "pointers" and settings["service"] and is_short:
        from memkit.hook.moments import ask

        reply = ask(home, project, data, {"prompt": prompt}, afterwards)
        if reply is not None and reply.get("warm"):
            text = _text(reply.get("text"))
    if text is None:
        text = prompt_hint(project, time.strftime("%Y-%m-%d"))
    return _context("UserPromptSubmit", text) if text else {}


def _answer_moment(
    home: Home, project: Project, event: str, data: Values, settings: Values, afterwards: Afterwards
) -> Values:
    """Return a pointer for a tool call that failed, an edit, or a sub-agent that starts."""
    from memkit.hook import moments

    asked: Values | None
    if event == "PostToolUseFailure":
        asked = moments.failure(data) if settings["on_failure"] else None
    elif event == "PreToolUse":
        asked = moments.edit(data, project) if settings["on_edit"] else None
    else:
        transcript = _text(data.get("transcript_path"))
        asked = {"kind": "agent", "transcript": transcript} if settings["on_agent"] else None
    if asked is None:
        return {}
    reply = moments.ask(home, project, data, asked, afterwards) if settings["service"] else None
    text = _text((reply or {}).get("text"))
    if event == "SubagentStart" and (reply is None or reply.get("task")):
        from memkit.hook.guide import agent_guide

        text = "\n".join(filter(None, [agent_guide(project), text]))
    return _context(event, text) if text else {}


def _judge_command(data: Values, *, is_own: bool) -> Values:
    """Let Claude run a command that only reads the session's own memory without asking the user.

    Check the command, never the name of a skill: a repository can define skills of the same name. The skill
    `remember` permits a note. Ask about a command that does more.
    """
    from memkit.hook.reading import is_one_note, is_reading_command

    given, asks = data.get("tool_input"), data.get("permission_mode") != "bypassPermissions"
    if is_own and is_reading_command(given):
        decision, reason = "allow", "this command only reads this project's memory"
    elif asks and "memkit remember" in str(given) and not (is_own and is_one_note(given)):
        decision, reason = "ask", "this is more than a note with one text for this project"
    else:
        return {}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }


def _context(event: str, text: str) -> Values:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _settings(home: Home) -> Values:
    """Return the settings that hooks need, as last published (TOML needs Python 3.11)."""
    try:
        with open(home.hook_settings, encoding="utf-8") as file:
            published = parse_json(file.read())
    except (OSError, ValueError):  # not published yet, or damaged
        published = {"service": not _refuses_service(home)}
    settings = dict(DEFAULT_SETTINGS)
    for name, default in DEFAULT_SETTINGS.items():
        value = published.get(name) if isinstance(published, dict) else None
        if type(value) is type(default):
            settings[name] = value
    service = os.environ.get("MEMKIT_SERVICE_ENABLED", "").strip().lower()
    if service:
        settings["service"] = service not in ("0", "false", "f", "no", "n", "off")
    return settings


def _refuses_service(home: Home) -> bool:
    """Return whether the user's own file turns the service off: this Python may be too old to read TOML."""
    import re  # once for each home

    try:
        with open(home.config_file, encoding="utf-8") as file:
            return re.search(_NO_SERVICE, file.read()) is not None
    except (OSError, ValueError):
        return False


def log_failure(event: str, error: BaseException) -> None:
    """Append a line of JSON to `log/hooks.log`, which `memkit status` counts."""
    try:
        home = Home.from_environment()
        make_private_directory(home.log)
        path = home.hook_log
        if os.path.exists(path) and os.path.getsize(path) > MAX_LOG_BYTES:
            os.replace(path, path + ".1")
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            "event": event,
            "error": f"{type(error).__name__}: {error}",
        }
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    except OSError:  # a full or read-only disk: there is nowhere to log
        pass
