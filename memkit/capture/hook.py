"""What Claude Code's hooks do: read the event, spool it durably, answer.

A hook never breaks or delays a session: whatever happens it prints one JSON object and exits 0;
what went wrong stands in `MEMKIT_HOME/log/hooks.log`.

Standard library only, Python 3.9 syntax: run by whatever `python3` the user has.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from typing import Any, Dict, List, Optional, Pattern

from memkit.capture.hook_log import log_failure
from memkit.git import head
from memkit.paths import Home, make_private_directory
from memkit.project import Project

MAX_INPUT_BYTES = 64 * 1024 * 1024

CHILD_VARIABLE = "MEMKIT_CHILD"
"""Set for every client that memkit itself starts, so that its hooks do nothing."""

DISABLE_VARIABLE = "MEMKIT_DISABLE"

RECALL_SKILLS = ("memory-recall", "memkit:memory-recall")

MACHINE_PROMPT = "<task-notification>"
"""How a prompt begins that the client made itself: no person typed it."""

POINTER_SECONDS = 0.12
"""How long a prompt waits for the service."""

PROMPT_CHARACTERS = 2000
"""How much of a prompt is looked up: the model that embeds it reads no more."""

DEFAULT_SETTINGS = {
    "session_characters": 2000,
    "inject": "pointers",
    "service": True,
    "redact": [],
    "redact_financial": False,
    "exclude": [],
}  # type: Dict[str, Any]
"""Used until the settings' module has written `run/hooks.json` for the first time."""

_KEPT = {
    "session": "session_id",
    "prompt_id": "prompt_id",
    "transcript": "transcript_path",
    "cwd": "cwd",
    "source": "source",
    "reason": "reason",
    "trigger": "trigger",
}
_KEPT_TEXT = {"prompt": "prompt", "message": "last_assistant_message"}


def run(event: str) -> None:
    """Handle one event from stdin, print the answer and end the process with status 0."""
    answer: Dict[str, Any] = {}
    os.umask(0o077)  # logs and what Chroma writes in the worker, which inherits it, are private too
    try:
        answer = answer_event(event, read_input())
    except BaseException as error:  # noqa: BLE001 - nothing may reach the session
        log_failure(event, error)
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    except Exception:  # noqa: BLE001 - nobody is listening any more
        pass
    os._exit(0)  # no interpreter shutdown: it could still fail, and it takes time


def read_input() -> Dict[str, Any]:
    """The event on stdin; raises `ValueError` if there is none or it is not a JSON object."""
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES) if sys.stdin is not None else b""
    value = json.loads(data.decode("utf-8", "replace") or "null")
    if not isinstance(value, dict):
        raise ValueError("no JSON object on stdin")
    return value


def answer_event(event: str, data: Dict[str, Any]) -> Dict[str, Any]:
    """Spool `data` and return what the client is told. Raises whatever goes wrong."""
    if os.environ.get(CHILD_VARIABLE) or os.environ.get(DISABLE_VARIABLE):
        return {}
    directory = _text(data.get("cwd")) or os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    home = Home.from_environment()
    project = Project.remembering(os.environ.get("CLAUDE_PROJECT_DIR") or directory, home)
    if project.is_off:
        return {}
    if event == "PreToolUse":
        return _allow_recall(data)
    if event == "UserPromptSubmit" and _text(data.get("prompt")).startswith(MACHINE_PROMPT):
        return {}
    settings = _settings(home)
    if settings["exclude"] and _is_excluded(settings["exclude"], directory, project):
        return {}
    try:
        record = spool_event(home, event, data, project)
    except OSError as error:  # the answer below needs no writable home
        log_failure(event, error)
        record = {}
    if event == "SessionStart":
        return _session_start(home, project, _text(data.get("transcript_path")))
    if event == "UserPromptSubmit":
        return _prompt_submit(home, project, record)
    return {}


def spool_event(
    home: Home, event: str, data: Dict[str, Any], project: Project
) -> Dict[str, Any]:
    """Keep what matters of the event, redacted, have waiting work done, and return what was kept.

    Raises `OSError`.
    """
    from memkit.capture import launch, spool
    from memkit.capture.redact import SKIP, redact, skips, without_private, without_unopened
    from memkit.financial import FINANCIAL

    settings = _settings(home)
    financial = [FINANCIAL] if settings["redact_financial"] else []
    patterns = _patterns([*settings["redact"], *financial])
    record: Dict[str, Any] = {"event": event, "time": time.time(), "project": project.root}
    for name, field in _KEPT.items():
        if _text(data.get(field)):
            record[name] = data[field]
    if event == "SessionStart":
        record["client"] = os.getppid()
    if event in ("Stop", "StopFailure"):
        found = head(_text(data.get("cwd")) or project.root)
        record.update((name, value) for name, value in found._asdict().items() if value)
    for name, field in _KEPT_TEXT.items():
        if _text(data.get(field)):
            said = data[field]
            if name == "prompt":  # only a person's own tags count
                # The word alone tells the worker; what else was said is written nowhere.
                said = SKIP if skips(said) else without_private(without_unopened(said))
            record[name] = redact(said, patterns)
    if record.get("session"):
        spool.put(home, record)
    launch.hand_over(home, bool(settings["service"]))
    return record


def _is_excluded(patterns: List[Any], directory: str, project: Project) -> bool:
    from memkit.capture.exclusion import Exclusion

    known = [pattern for pattern in patterns if isinstance(pattern, str)]
    return Exclusion(known, project.root).covers_session(directory)


def _patterns(given: List[Any]) -> List[Pattern[str]]:
    """The user's own patterns; one that this Python does not know is left to the worker."""
    found = []
    for pattern in given:
        try:
            found.append(re.compile(str(pattern)))
        except re.error as error:
            log_failure("settings", error)
    return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _session_start(home: Home, project: Project, transcript: str) -> Dict[str, Any]:
    from memkit.capture import notices
    from memkit.capture.brief import session_brief
    from memkit.capture.offer import import_offer

    limit = int(_settings(home)["session_characters"])
    answer = _context("SessionStart", session_brief(project, limit)) if limit > 0 else {}
    lines = notices.take(home, project.root)
    try:
        own = [_environment_notice(home), import_offer(home, transcript)]
        lines = [*filter(None, own), *lines]
    except OSError as error:  # an unwritable home must not cost the session its facts
        log_failure("SessionStart", error)
    if lines:
        answer["systemMessage"] = "\n".join(lines)
    return answer


def _prompt_submit(home: Home, project: Project, record: Dict[str, Any]) -> Dict[str, Any]:
    from memkit.capture.brief import prompt_hint

    settings = _settings(home)
    if settings["inject"] == "off":
        return {}
    text = None
    if settings["inject"] == "pointers" and settings["service"]:
        text = _pointers(home, project, record)
    if text is None:  # nobody could tell whether there is something on this
        text = prompt_hint(project, time.strftime("%Y-%m-%d"))
    return _context("UserPromptSubmit", text) if text else {}


def _pointers(home: Home, project: Project, record: Dict[str, Any]) -> Optional[str]:
    """What the service has to say on a prompt, "" for nothing; None if it cannot tell in time."""
    from memkit.service import client

    arguments = {
        "root": project.root,
        "session": record.get("session", ""),
        "prompt": record.get("prompt", "")[:PROMPT_CHARACTERS],
    }
    try:
        reply = client.request(home, "pointers", arguments, POINTER_SECONDS)
    except (client.ServiceUnavailable, client.RequestRefused):
        return None
    return _text(reply.get("text")) if reply.get("warm") else None


def _allow_recall(data: Dict[str, Any]) -> Dict[str, Any]:
    """Let Claude use the memory-recall skill unasked.

    The client asks for permission before Claude calls a skill that names allowed tools, and with
    `-p` refuses. This skill can only run `memkit`, which only reads, so nothing is lost by allowing it.
    """
    given = data.get("tool_input")
    if data.get("tool_name") != "Skill" or not isinstance(given, dict):
        return {}
    if given.get("skill") not in RECALL_SKILLS:
        return {}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "memory-recall only reads this project's memory",
        }
    }


def _context(event: str, text: str) -> Dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _settings(home: Home) -> Dict[str, Any]:
    """The few settings hooks need, as `memkit.config` last wrote them (TOML needs Python 3.11)."""
    settings = dict(DEFAULT_SETTINGS)
    try:
        with open(home.hook_settings, encoding="utf-8") as file:
            settings.update(json.load(file))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        log_failure("settings", error)
    said = os.environ.get("MEMKIT_SERVICE_ENABLED", "").strip().lower()
    if said:
        settings["service"] = said not in ("0", "false", "f", "no", "n", "off")
    for name, default in DEFAULT_SETTINGS.items():
        if type(settings[name]) is not type(default):
            settings[name] = default
    return settings


def _environment_notice(home: Home) -> Optional[str]:
    """A line for the person while memkit's Python environment is missing; once for each reason."""
    from memkit import environment
    from memkit.capture import launch

    said = os.path.join(home.run, "environment-notice")
    if launch.environment_is_ready(home):
        if os.path.exists(said):
            os.unlink(said)
        return None
    failure = environment.last_failure(home.root)
    if failure is None:
        notice = (
            "memkit is building its Python environment in the background (about a minute, once); "
            "this session is kept and becomes searchable then."
        )
    else:
        notice = "memkit could not build its Python environment: {}".format(failure.message)
    if _read(said) == notice:
        return None
    make_private_directory(home.run)
    with open(said, "w", encoding="utf-8") as file:
        file.write(notice)
    return notice


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


if (
    __name__ == "__main__"
):  # `python3 -m memkit.capture.hook Stop`, where there is no hooks/ directory
    run(sys.argv[1])
