"""Measure how often Claude asks the memory by itself, for each value of `recall.session_start`.

    python benchmarks/triggers.py [--variants guide,entries,both,off] [--prompts 8] [--model NAME]
        [--pointers] [--claude PATH] [--json]

Runs the real Claude Code with the plugin, in a home of its own for each prompt: `--prompts` whose answer is
in the memory, and as many that need nothing. Counts the sessions in which Claude called the memory-recall
skill or a memkit command that reads. `--pointers` leaves pointers beside the prompt on; they answer some
prompts.

Needs a key (ANTHROPIC_API_KEY, or CLAUDE_CODE_OAUTH_TOKEN of a subscription) or a login in ~/.claude, which
is copied for the time of the run. Each prompt is one short session: about 20,000 tokens, mostly input. The
figures of a run with another model or version of Claude Code do not compare.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(REPOSITORY)]

from memkit.agents.claude_code.omitted import asks_memory  # noqa: E402
from memkit.environment import environment_directory  # noqa: E402
from memkit.hook.entries import note_own  # noqa: E402
from memkit.paths import MEMORY_DIRECTORY, Home  # noqa: E402

VARIANTS = ("guide", "entries", "both", "off")
SECONDS = 300.0
MOST_TURNS = "8"
_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_BASE_URL")
_LOGIN = Path(".claude", ".credentials.json")

REMEMBERED = (
    (
        "Which port should the staging gateway use?",
        "7443, because the ingress controller has 443 on that host.",
        "Open a tunnel to the staging gateway. Which port do I need?",
    ),
    (
        "The nightly build fails with ENOSPC.",
        "The runner's cache was full; `ci/prune-cache --older 7d` fixed it.",
        "The nightly build fails again with ENOSPC. What should I do?",
    ),
    (
        "Should amounts be floats?",
        "We decided on integer cents everywhere, after the rounding bug of invoice 4711.",
        "I want to change the amounts in the billing module to floats. Is that fine?",
    ),
    (
        "How do we deploy on Fridays?",
        "Not at all: releases go out Monday to Thursday, as agreed with support.",
        "Prepare the release for this Friday as discussed.",
    ),
    (
        "Why did login break?",
        "A route was renamed in PolicyController; the redirect in routes.yaml was missing.",
        "Login returns 404 after the last merge. Find out why.",
    ),
    (
        "Which library for CSV import?",
        "We tried papaparse and dropped it: it lost quoted newlines. We use csv-parse.",
        "Let us use papaparse for the new CSV import.",
    ),
    (
        "What does the customer Orion need?",
        "Orion needs the export as XLSX with German headers, by March.",
        "Write down what Orion asked for, so that I can plan the sprint.",
    ),
    (
        "Why is the search slow?",
        "The index on tenant_id was missing; migration 0042 adds it.",
        "Search is slow for large tenants. What have we found out so far?",
    ),
)
"""A question and an answer of an earlier session, and a prompt that needs them."""

UNRELATED = (
    "What is 2 + 2?",
    "Write a haiku about rain.",
    "Explain in one sentence what a mutex is.",
    "Translate “good morning” into French.",
    "Which command lists the files in a directory by size?",
    "Say hello.",
    "What does HTTP status 418 mean?",
    "Convert 30 degrees Celsius to Fahrenheit.",
)


@dataclass(frozen=True)
class Row:
    """The sessions of one variant, and in how many of them the memory was asked."""

    variant: str
    related: int
    asked_related: int
    unrelated: int
    asked_unrelated: int
    failed: int


class Stage:
    """A user with a key or a login, the plugin, and a project that remembers `REMEMBERED`."""

    def __init__(self, root: Path, claude: str, variant: str, *, with_pointers: bool) -> None:
        self._claude = claude
        self.home, self.project, memkit = root / "home", root / "project", root / "memkit"
        for directory in (self.home, self.project, memkit):
            directory.mkdir(mode=0o700)
        (memkit / "config.toml").write_text(
            '[embedding]\nprovider = "none"\n[summarize]\nprovider = "none"\n[service]\nidle_minutes = 0.1\n'
        )
        environment = Path(environment_directory(str(memkit), str(REPOSITORY)))
        environment.parent.mkdir(mode=0o700)
        environment.symlink_to(sys.prefix)
        self._remember(Home(str(memkit)))
        self.environment = _environment(self.home, memkit)
        # Hooks see what a command publishes, not the file.
        self._memkit("config", "set", "recall.session_start", variant)
        self._memkit("config", "set", "recall.inject", "pointers" if with_pointers else "off")
        self._memkit("index")

    def _remember(self, home: Home) -> None:
        directory = self.project / MEMORY_DIRECTORY
        directory.mkdir(parents=True)
        for number, (question, answer, _) in enumerate(REMEMBERED, start=1):
            day = f"2026-01-{number:02d}"
            text = (
                f"# {day}\n\n## 09:00 {question} <!-- session:5e55000{number} turn:5eed000{number} -->\n"
                f"**Answered** {answer}\n"
            )
            note_own(home, str(self.project), "", text)
            (directory / f"{day}.md").write_text(text)

    def _memkit(self, *arguments: str) -> None:
        command = [str(REPOSITORY / "bin" / "memkit"), *arguments]
        subprocess.run(command, cwd=self.project, env=self.environment, check=True, capture_output=True)

    def has_asked(self, prompt: str, model: str) -> bool:
        """Return whether Claude asked the memory about `prompt`. Raise `RuntimeError` if that failed."""
        chosen = ["--model", model] if model else []
        command = [
            self._claude, "-p", "--plugin-dir", str(REPOSITORY), "--output-format", "stream-json",
            "--verbose", "--max-turns", MOST_TURNS, *chosen, "--", prompt,
        ]  # fmt: skip
        try:
            done = subprocess.run(
                command, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"the session took more than {SECONDS:.0f} s") from error
        messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        result = next((one for one in messages if one.get("type") == "result"), {})
        if not result or (result.get("is_error") and result.get("subtype") == "success"):
            raise RuntimeError(str(result.get("result") or done.stderr or "no result")[:200])
        return any(asks_memory(name, given) for name, given in _calls(messages))

    def close(self) -> None:
        """Stop the service."""
        self._memkit("service", "stop")


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for message in messages:
        content = message.get("message", {}).get("content") if message.get("type") == "assistant" else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                found.append((str(block.get("name")), dict(block.get("input") or {})))
    return found


def _environment(home: Path, memkit: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "HTTPS_PROXY", *_KEYS) if name in os.environ}
    login = Path.home() / _LOGIN
    if not any(os.environ.get(name) for name in _KEYS[:3]) and login.is_file():
        copy = home / _LOGIN
        copy.parent.mkdir(mode=0o700)
        shutil.copyfile(login, copy)
        copy.chmod(0o600)
    return {
        **kept,
        "HOME": str(home),
        "MEMKIT_HOME": str(memkit),
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def measure(claude: str, variant: str, prompts: int, model: str, *, with_pointers: bool) -> Row:
    """Return the counts of one variant. A session that failed counts as neither."""
    counts = {True: [0, 0], False: [0, 0]}
    failed = 0
    asked = [(prompt, True) for _, _, prompt in REMEMBERED[:prompts]]
    asked += [(prompt, False) for prompt in UNRELATED[:prompts]]
    for prompt, is_related in asked:
        with tempfile.TemporaryDirectory(prefix="mk-", ignore_cleanup_errors=True) as root:
            stage = Stage(Path(os.path.realpath(root)), claude, variant, with_pointers=with_pointers)
            try:
                has_asked = stage.has_asked(prompt, model)
            except RuntimeError as error:
                print(f"{variant}: {prompt}: {error}", file=sys.stderr)
                failed += 1
                continue
            finally:
                stage.close()
        counts[is_related][0] += 1
        counts[is_related][1] += has_asked
    return Row(variant, *counts[True], *counts[False], failed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure how often Claude asks the memory by itself.")
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--prompts", type=int, default=len(REMEMBERED))
    parser.add_argument("--model", default="", help="a model of Claude Code, such as sonnet")
    parser.add_argument("--pointers", action="store_true", help="leave pointers beside the prompt on")
    parser.add_argument("--claude", default=shutil.which("claude") or "", help="the client's binary")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    variants = arguments.variants.split(",")
    if not arguments.claude or not set(variants) <= set(VARIANTS):
        print(f"name the client with --claude, and variants among {', '.join(VARIANTS)}", file=sys.stderr)
        return 2
    rows = [
        measure(arguments.claude, one, arguments.prompts, arguments.model, with_pointers=arguments.pointers)
        for one in variants
    ]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows]))
    else:
        heads = ("asked, answer in memory", "asked, nothing needed", "failed")
        print(f"{'session_start':<16}{heads[0]:>26}{heads[1]:>24}{heads[2]:>8}")
        for row in rows:
            related = f"{row.asked_related} of {row.related}"
            unrelated = f"{row.asked_unrelated} of {row.unrelated}"
            print(f"{row.variant:<16}{related:>26}{unrelated:>24}{row.failed:>8}")
    return 1 if any(row.failed for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
