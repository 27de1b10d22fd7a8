"""The user's own Claude Code: `claude -p`, which needs no key, only a login.

The command line turns off everything but the answer: tools, hooks, plugins, memory files, and the session
on disk. The hooks would do nothing anyway: `MEMKIT_CHILD` tells them that memkit made the call.

Claude Code reports an error as a result whose text is the error's, in older versions without any other
sign. memkit must never take that text for the model's answer.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Mapping
from typing import Any

from memkit import llm, processes
from memkit.embedding import excerpt
from memkit.files import make_private_directory
from memkit.hook.events import CHILD_VARIABLE
from memkit.ipc.launch import outside_session
from memkit.llm import Reply, Task, TokenUsage, anthropic_usage, as_structure
from memkit.paths import Home
from memkit.settings import SummarizeSettings
from memkit.state import parse_json
from memkit.text import encodable

NAME = "claude-cli"

DEFAULT_MODEL = "haiku"

_OPTIONS = (
    ("--safe-mode",),
    ("--setting-sources", "user"),
    ("--strict-mcp-config",),
    ("--disable-slash-commands",),
    ("--max-turns", "1"),
    ("--permission-mode", "default"),  # as root, Claude Code refuses a `bypassPermissions` of the settings
)
"""Options that older versions lack. memkit repeats a call without the option that Claude Code refuses.

The user's settings stay, because they may hold the login: `--setting-sources ""` and `--bare` would
lose it. `--safe-mode` disables the rest of the settings, but not their variables, so `--settings` repeats
those of memkit. One turn is one request; each further one would read all the material again.
"""

_ONLY_TOOL = "Answer with one call of the tool StructuredOutput and without any other text."
"""Claude Code offers the model this tool for the answer, but does not force it to call a tool."""

_UNKNOWN = re.compile(r"unknown option '(--[a-z-]+)")

_MAX_INSTRUCTIONS_BYTES = 100_000
"""Linux allows at most 128 KiB in one argument."""

_ENVIRONMENT = {
    CHILD_VARIABLE: "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    # Claude Code must not repeat the request. It still continues an answer that was cut short or empty.
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_EFFORT_LEVEL": "low",  # thinking costs as much as the answer, and can cut it short
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "MAX_THINKING_TOKENS": "0",  # for models without effort levels
}

_LOGIN_ADVICE = "run `claude` and log in with /login"

# The start of Claude Code's own error texts, of 2.1.197 and of old versions.
_NO_LOGIN = re.compile(
    r"Not logged in|Please run /login|Invalid API key|Failed to authenticate|OAuth token|"
    r"Your account does not have access|Credit balance is too low|There's an issue with the selected model"
)
_LIMIT = re.compile(
    r"You've (hit|reached) your|Claude (AI|Code)? ?usage limit|[Uu]sage limit reached|"
    r"API Error:? .{0,40}(\b429\b|[Rr]ate limit)|[Rr]ate limit reached"
)
_REFUSAL = re.compile(r"API Error: .{0,40}unable to respond to this request")
_TOO_LONG = re.compile(r"(API Error: )?Prompt is too long")
_CUT_SHORT = re.compile(r"API Error: Claude's response exceeded the \d+ output token maximum")
_ERROR = re.compile(r"API Error\b|Request timed out|Execution error")
_NOT_SENT = re.compile(
    r"ConnectionRefused|FailedToOpenSocket|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH"
)


class ClaudeCliProvider:
    """`claude -p`, run in an empty directory of `home` without the variables of any session."""

    name = NAME

    def __init__(
        self, program: str, settings: SummarizeSettings, environ: Mapping[str, str], home: Home
    ) -> None:
        self.model = settings.model or DEFAULT_MODEL
        self._program = program
        self._timeout = settings.timeout_seconds
        self._directory = home.nowhere
        self._environ = outside_session(environ)
        self._variables = {**_ENVIRONMENT, "API_TIMEOUT_MS": str(int(settings.timeout_seconds * 1000))}
        if settings.base_url:  # not on the command line, because it may hold a password
            self._environ["ANTHROPIC_BASE_URL"] = settings.base_url

    def ask(self, task: Task) -> Reply:
        """Make one call; see `Provider.ask`."""
        try:
            ended = self._run(task)
        except subprocess.TimeoutExpired:
            raise llm.timeout_error(self.name, self._timeout) from None
        except processes.TooMuchOutputError:
            raise llm.UnusableReplyError(
                f"{self._program} wrote far more than an answer", usage=None
            ) from None
        except (OSError, ValueError) as error:
            raise llm.NotConfiguredError(
                f"{self._program} does not start ({excerpt(str(error))}); reinstall Claude Code"
            ) from None
        return read_result(ended, task.schema, self.model)

    def _run(self, task: Task) -> subprocess.CompletedProcess[str]:
        make_private_directory(self._directory)
        variables = {**self._variables, "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(task.max_tokens)}
        environ = {**self._environ, **variables}
        settings = json.dumps({"disableAllHooks": True, "env": variables})
        options = [*_OPTIONS, ("--settings", settings)]
        while True:
            # The material goes through stdin: no process list shows it.
            command = [*self._command(task), *(word for option in options for word in option)]
            ended = processes.run_to_end(
                command, environ, self._directory, self._timeout, encodable(task.material)
            )
            if ended.returncode in (126, 127):  # as a shell reports an interpreter that is missing
                raise OSError(ended.stderr)
            unknown = _UNKNOWN.search(ended.stderr)
            if ended.stdout or unknown is None:
                return ended
            # Claude Code has refused the command line and called no model.
            if unknown[1] not in [option[0] for option in options]:
                raise llm.NotConfiguredError(
                    f"{self._program} does not know {unknown[1]}; update Claude Code with `claude update`"
                )
            options = [option for option in options if option[0] != unknown[1]]

    def _command(self, task: Task) -> list[str]:
        """Without them the transcript could make the model act, or leave a session that memkit remembers."""
        instructions = f"{encodable(task.instructions)}\n\n{_ONLY_TOOL}"
        if len(instructions.encode()) > _MAX_INSTRUCTIONS_BYTES:
            raise llm.NotConfiguredError(
                f"the instructions are too long for {self._program}; shorten summarize.prompt_file to "
                f"{_MAX_INSTRUCTIONS_BYTES} bytes"
            )
        return [
            *(self._program, "-p", "--output-format", "json", "--no-session-persistence"),
            *("--json-schema", json.dumps(task.schema), "--tools", ""),
            # With "=", so that no value of the user's passes for an option.
            *(f"--system-prompt={instructions}", f"--model={self.model}"),
        ]


def read_result(ended: subprocess.CompletedProcess[str], schema: Mapping[str, Any], model: str) -> Reply:
    """Return the answer that Claude Code printed. Raise a `ModelError` if there is none."""
    result = _result(ended.stdout)
    if result is None:
        reason = excerpt(ended.stderr or f"status {ended.returncode}")
        raise llm.UnavailableError(
            f"claude ended without a result ({reason}); try `claude -p hello`", usage=None
        )
    usage = _usage(result)
    text = result.get("result")
    error = _error(result, text if isinstance(text, str) else "", model, usage)
    if error is not None:
        # Claude Code reports no tokens of a request that got no answer.
        error.usage = usage if usage.tokens_in else error.usage
        raise error
    value = as_structure(result.get("structured_output"), schema)
    if value is None:
        why = "it has the wrong structure" if text else "it is empty"
        raise llm.unusable(NAME, model, why, usage)
    models = result.get("modelUsage")
    if isinstance(models, dict) and len(models) == 1:
        model = next(iter(models))  # its full name
    return Reply(value, usage, model)


def _result(output: str) -> dict[str, Any] | None:
    """Return the result object. With `verbose` in the user's settings the output is a list of events."""
    try:
        printed = parse_json(output)
    except ValueError:
        return None
    for event in reversed(printed if isinstance(printed, list) else [printed]):
        if isinstance(event, dict) and event.get("type") == "result":
            return event
    return None


def _error(result: Mapping[str, Any], text: str, model: str, usage: TokenUsage) -> llm.ModelError | None:
    reason = excerpt(text)
    status = result.get("api_error_status")
    if result.get("stop_reason") == "refusal" or _REFUSAL.match(text):
        return llm.refused(NAME, model, usage)
    if _CUT_SHORT.match(text):
        return llm.unusable(NAME, model, "it was cut short", usage)
    if _TOO_LONG.match(text):
        return llm.ModelError(f"{NAME} rejects the request: {reason}")
    if isinstance(status, int) and status >= 400:
        return llm.http_error(NAME, model, status, reason, _LOGIN_ADVICE)
    if _NO_LOGIN.match(text):
        return llm.NotConfiguredError(
            f"claude cannot be used ({reason}); {_LOGIN_ADVICE}, or set summarize.model"
        )
    if _LIMIT.match(text):
        return llm.RateLimitedError(f"{NAME} limits the rate of calls: {reason}; memkit tries again later")
    if str(result.get("subtype", "")).startswith("error_max_"):  # turns, or tries at the structure
        return llm.unusable(NAME, model, "it has the wrong structure", usage)
    if result.get("is_error") or _ERROR.match(text):
        return llm.UnavailableError(
            f"{NAME} is unavailable: {reason or result.get('subtype')}",
            TokenUsage() if _NOT_SENT.search(text) else None,
        )
    return None


def _usage(result: Mapping[str, Any]) -> TokenUsage:
    usage = result.get("usage")
    if not isinstance(usage, dict):
        return TokenUsage()
    cost = result.get("total_cost_usd")
    usd = float(cost) if isinstance(cost, (int, float)) and 0 <= cost < math.inf else None
    return anthropic_usage(usage, usd)
