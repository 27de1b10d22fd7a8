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
from re import Pattern
from typing import Any, Callable

from memkit.errors import unwritable
from memkit.files import PRIVATE_FILE, file_version, make_private_directory
from memkit.hook.git import head
from memkit.hook.log import log_failure
from memkit.hook.project import Project, digest16
from memkit.hook.session_variables import heed_user_only, shell_is_users
from memkit.paths import OFF_MARKER, Home
from memkit.state import parse_json

MAX_INPUT_BYTES = 64 * 1024 * 1024

CHILD_VARIABLE = "MEMKIT_CHILD"
"""Set for every client that memkit itself starts, so that its hooks do nothing."""

DISABLE_VARIABLE = "MEMKIT_DISABLE"

MACHINE_PROMPT = "<task-notification>"
"""How a prompt begins that the client made itself: no person typed it."""

POINTER_SECONDS = 0.12
"""How long a prompt waits for the service."""

PROMPT_CHARACTERS = 2000
"""How much of a prompt is looked up: the model that embeds it reads no more."""

DEFAULT_SETTINGS: dict[str, Any] = {
    "session_characters": 2000,
    "inject": "pointers",
    "service": True,
    "redact": [],
    "redact_financial": False,
    "exclude": [],
    "known": True,
}
"""Used while there is no `config.toml`. `known` says that the settings in force could be read."""

_SECTIONS = {
    "session_characters": "recall",
    "inject": "recall",
    "redact": "capture",
    "redact_financial": "capture",
    "exclude": "capture",
}

MAX_SETTINGS_BYTES = 1_000_000

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
    answer: dict[str, Any] = {}
    afterwards: list[Callable[[], None]] = []
    os.umask(0o077)  # logs and what Chroma writes in the worker, which inherits it, are private too
    try:
        data = read_input()
        # What the hook does not heed still reaches the shell that it is asked about.
        is_answered = event != "PreToolUse" or shell_is_users(os.environ)
        heed_user_only()
        if is_answered:
            answer = answer_event(event, data, afterwards)
    except BaseException as error:  # noqa: BLE001 - nothing may reach the session
        log_failure(event, error)
    try:
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
        for step in afterwards:
            step()
    except Exception:  # noqa: BLE001 - nobody is listening any more
        pass
    os._exit(0)  # no interpreter shutdown: it could still fail, and it takes time


def read_input() -> dict[str, Any]:
    """The event on stdin; raises `ValueError` if there is none or it is not a JSON object."""
    data = sys.stdin.buffer.read(MAX_INPUT_BYTES) if sys.stdin is not None else b""
    value = parse_json(data.decode("utf-8", "replace") or "null")
    if not isinstance(value, dict):
        raise ValueError("no JSON object on stdin")
    return value


def answer_event(
    event: str, data: dict[str, Any], afterwards: list[Callable[[], None]]
) -> dict[str, Any]:
    """Spool `data` and return what the client is told; `afterwards` gets what to do once it is told.

    Raises whatever goes wrong.
    """
    if os.environ.get(CHILD_VARIABLE) or os.environ.get(DISABLE_VARIABLE):
        return {}
    directory = _text(data.get("cwd")) or os.environ.get("CLAUDE_PROJECT_DIR") or os.getcwd()
    home = Home.from_environment()
    project = Project.remembering(os.environ.get("CLAUDE_PROJECT_DIR") or directory, home)
    if project.is_off:
        return _off(home, project) if event == "SessionStart" else {}
    if event == "PreToolUse":
        # After a `cd` into another project the same command would read that one's memory.
        return _allow_recall(data) if Project.remembering(directory, home) == project else {}
    if event == "UserPromptSubmit" and _text(data.get("prompt")).startswith(MACHINE_PROMPT):
        return {}
    settings = _settings(home)
    if settings["exclude"] and _is_excluded(settings["exclude"], directory, project):
        return {}
    problem = None
    try:
        record = spool_event(home, event, data, project)
    except OSError as error:  # the answer below needs no writable home
        log_failure(event, error)
        record, problem = {}, error
    if event == "SessionStart":
        return _session_start(home, project, _text(data.get("transcript_path")), problem)
    if event == "UserPromptSubmit":
        return _prompt_submit(home, project, record, afterwards)
    return {}


def spool_event(
    home: Home, event: str, data: dict[str, Any], project: Project
) -> dict[str, Any]:
    """Keep what matters of the event, redacted, have waiting work done, and return what was kept.

    Raises `OSError`.
    """
    from memkit.ipc import launch, spool
    from memkit.privacy.financial import FINANCIAL
    from memkit.privacy.redact import SKIP, redact, skips, without_private, without_unopened

    settings = _settings(home)
    financial = [FINANCIAL] if settings["redact_financial"] else []
    try:
        patterns = _patterns([*settings["redact"], *financial])
    except ValueError as error:
        log_failure("settings", error)
        settings["known"], patterns = False, []
    record: dict[str, Any] = {"event": event, "time": time.time(), "project": project.root}
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
            if said == SKIP:
                record[name] = SKIP
            elif settings["known"]:  # else the worker takes it from the transcript, by the new settings
                record[name] = redact(said, patterns)
    if record.get("session"):
        spool.put(home, record)
    try:
        launch.hand_over(home, bool(settings["service"]))
    except OSError as error:  # the event is kept, and the next hook tries again
        log_failure(event, error)
    return record


def _off(home: Home, project: Project) -> dict[str, Any]:
    """What a session is told where memkit is off, once in each project: the marker may be a stranger's."""
    said = os.path.join(home.run, "off-said", digest16(project.root))
    if os.path.exists(said):
        return {}
    make_private_directory(os.path.dirname(said))
    os.close(os.open(said, os.O_WRONLY | os.O_CREAT, PRIVATE_FILE))
    line = (
        "memkit is off in this project, because there is a file {}; nothing of it is remembered. "
        "`memkit on` switches it on."
    )
    return {"systemMessage": line.format(os.path.join(project.root, OFF_MARKER))}


def _is_excluded(patterns: list[Any], directory: str, project: Project) -> bool:
    from memkit.privacy.exclusion import Exclusion

    known = [pattern for pattern in patterns if isinstance(pattern, str)]
    return Exclusion(known, project.root).covers_session(directory)


def _patterns(given: list[Any]) -> list[Pattern[str]]:
    """The user's own patterns. Raises `ValueError` for one that this Python does not know."""
    try:
        return [re.compile(str(pattern)) for pattern in given]
    except re.error as error:
        raise ValueError(f"capture.redact: {error}") from error


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _session_start(
    home: Home, project: Project, transcript: str, problem: OSError | None
) -> dict[str, Any]:
    """What a session starts with; `problem` is why its event could not be kept."""
    from memkit.hook import notices
    from memkit.hook.import_offer import import_offer
    from memkit.hook.own_entries import HOOK_BYTES, OwnEntries
    from memkit.hook.session_facts import session_facts

    limit = int(_settings(home)["session_characters"])
    answer: dict[str, Any] = {}
    if limit > 0:
        own = OwnEntries(home, project.root, HOOK_BYTES)
        answer = _context("SessionStart", session_facts(project, limit, own))
    lines = notices.take(home, project.root)
    if problem is not None:
        lines.insert(0, "memkit: this session is not remembered: " + unwritable(problem, home.root))
    try:
        first = [_environment_notice(home), import_offer(home, transcript)]
        lines = [*filter(None, first), *lines]
    except OSError as error:  # an unwritable home must not cost the session its facts
        log_failure("SessionStart", error)
    if lines:
        answer["systemMessage"] = "\n".join(lines)
    return answer


def _prompt_submit(
    home: Home,
    project: Project,
    record: dict[str, Any],
    afterwards: list[Callable[[], None]],
) -> dict[str, Any]:
    from memkit.hook.session_facts import prompt_hint

    settings = _settings(home)
    if settings["inject"] == "off" or not settings["known"]:
        return {}
    text = None
    if settings["inject"] == "pointers" and settings["service"]:
        text = _pointers(home, project, record, afterwards)
    if text is None:  # nobody could tell whether there is something on this
        text = prompt_hint(project, time.strftime("%Y-%m-%d"))
    return _context("UserPromptSubmit", text) if text else {}


def _pointers(
    home: Home,
    project: Project,
    record: dict[str, Any],
    afterwards: list[Callable[[], None]],
) -> str | None:
    """What the service has to say on a prompt, "" for nothing; None if it cannot tell in time.

    The service is told `afterwards` that its pointers were shown: one that nobody saw is offered again.
    """
    from memkit.ipc import client

    arguments = {
        "root": project.root,
        "session": record.get("session", ""),
        "prompt": record.get("prompt", "")[:PROMPT_CHARACTERS],
        "acknowledges": True,
    }
    try:
        reply = client.request(home, "pointers", arguments, POINTER_SECONDS)
    except (client.ServiceUnavailable, client.RequestRefused):
        return None
    if reply.get("ids"):
        shown = {"session": arguments["session"], "ids": reply["ids"]}
        afterwards.append(lambda: client.notify(home, "shown", shown, POINTER_SECONDS))
    return _text(reply.get("text")) if reply.get("warm") else None


def _allow_recall(data: dict[str, Any]) -> dict[str, Any]:
    """Let Claude run the commands of the memory-recall skill unprompted.

    The command itself is checked, never the name of a skill: a repository can define skills and
    commands of the same names.
    """
    from memkit.hook.recall_command import is_recall_command

    if data.get("tool_name") != "Bash" or not is_recall_command(data.get("tool_input")):
        return {}
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "this command only reads this project's memory",
        }
    }


def _context(event: str, text: str) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}


def _settings(home: Home) -> dict[str, Any]:
    """The few settings hooks need, as `memkit.settings.load` last wrote them (TOML needs Python 3.11).

    If `config.toml` has changed since, it is read here; if that fails, the settings are not `known`.
    """
    settings = dict(DEFAULT_SETTINGS)
    try:
        source = file_version(home.config_file)
        if source is not None:
            settings.update(_published(home))
            if settings.pop("source", None) != source:
                settings["known"] = False
                settings = {**DEFAULT_SETTINGS, **_written(home)}
    except ImportError:  # no reader of TOML before Python 3.11: the worker publishes the file soon
        pass
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the files: no text is written then
        settings["known"] = False
        log_failure("settings", error)
    said = os.environ.get("MEMKIT_SERVICE_ENABLED", "").strip().lower()
    if said:
        settings["service"] = said not in ("0", "false", "f", "no", "n", "off")
    for name, default in DEFAULT_SETTINGS.items():
        if type(settings[name]) is not type(default):
            settings[name] = default
            settings["known"] = False
    return settings


def _published(home: Home) -> dict[str, Any]:
    try:
        with open(home.hook_settings, encoding="utf-8") as file:
            published = parse_json(file.read())
    except (OSError, ValueError):  # not written yet, or damaged: it counts as out of date
        return {}
    return published if isinstance(published, dict) else {}


def _written(home: Home) -> dict[str, Any]:
    """The same from `config.toml`. Raises `ImportError` before Python 3.11, `ValueError`, `OSError`."""
    import tomllib

    with open(home.config_file, "rb") as file:
        data = file.read(MAX_SETTINGS_BYTES + 1)
    if len(data) > MAX_SETTINGS_BYTES:
        raise ValueError(f"{home.config_file} is too large")
    given = tomllib.loads(data.decode("utf-8-sig"))
    found = {name: given.get(section, {}).get(name) for name, section in _SECTIONS.items()}
    found["service"] = given.get("service", {}).get("enabled")
    found = {name: value for name, value in found.items() if value is not None}
    for name in ("redact", "exclude"):
        if not all(isinstance(value, str) for value in found.get(name, [])):
            raise ValueError(f"{name} in {home.config_file} is no list of texts")
    return found


def _environment_notice(home: Home) -> str | None:
    """A line for the person while memkit's Python environment is missing; once for each reason."""
    from memkit import environment
    from memkit.ipc import launch

    said = os.path.join(home.run, "environment-notice")
    if launch.environment_is_ready(home) and environment.environment_python(
        home.root, launch.REPOSITORY
    ):
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
        notice = f"memkit could not build its Python environment: {failure.message}"
        if launch.environment_is_ready(home):
            notice += " It goes on with the one from before the update."
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
):  # `python3 -m memkit.hook.events Stop`, where there is no hooks/ directory
    run(sys.argv[1])
