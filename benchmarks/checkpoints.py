"""Make a set of questions about real coding sessions from a repository that keeps them on a branch.

Some repositories keep the transcripts of their coding agents on `entire/checkpoints/v1`, and each commit
names its checkpoint in a trailer. A commit's subject asks for the sessions behind that commit; a file asks
for the sessions that edited it. No model chose the labels.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BRANCH = "refs/heads/entire/checkpoints/v1"
TRAILER = "%(trailers:key=Entire-Checkpoint,valueonly,separator=%x2C)"
LEAST_WORDS = 3
"""A shorter subject says too little to find anything by."""

EDIT = re.compile(
    rb'"name":"(?:Edit|Write|MultiEdit|NotebookEdit)".{0,200}?"(?:file|notebook)_path":"([^"]+)"'
)


@dataclass
class Checkpoint:
    """One session as a checkpoint has it: its metadata, and its transcript as size and Git object."""

    facts: dict[str, Any]
    transcript: tuple[int, str]


def write_questions(clone: Path, folder: Path) -> None:
    """Write `sessions/ID.jsonl`, each session's longest transcript, and `questions.json` into `folder`."""
    sessions: dict[str, tuple[int, str]] = {}
    behind, touched = defaultdict(set), defaultdict(set)
    for one in _checkpoints(clone):
        name = one.facts["session_id"]
        sessions[name] = max(sessions.get(name, (0, "")), one.transcript)
        behind[one.facts["checkpoint_id"]].add(name)
        for file in one.facts.get("files_touched") or []:
            touched[file].add(name)
    (folder / "sessions").mkdir(parents=True, exist_ok=True)
    ids: dict[str, str] = {}
    edited: dict[str, set[str]] = defaultdict(set)
    # Two of them may have one ID in their transcripts; the longest one stays.
    for name, (_, transcript) in sorted(sessions.items(), key=lambda one: one[1]):
        content = _git(clone, "cat-file", "blob", transcript)
        found = re.search(rb'"sessionId":\s*"([0-9a-f-]{36})"', content)
        if found is None or b'"parentUuid"' not in content:
            continue  # the transcript of another agent
        ids[name] = found.group(1).decode()
        edited[ids[name]] |= _edited(content)
        (folder / "sessions" / f"{ids[name]}.jsonl").write_bytes(content)
    files = []
    for file, names in sorted(touched.items()):
        # A checkpoint also names files that others changed meanwhile.
        known = {ids[name] for name in names if name in ids}
        if gold := sorted(one for one in known if any(path.endswith(file) for path in edited[one])):
            files.append({"path": file, "sessions": gold})
    commits = []
    for subject, checkpoints in sorted(_subjects(clone).items()):
        names = set().union(*(behind[checkpoint] for checkpoint in checkpoints))
        if gold := sorted({ids[name] for name in names if name in ids}):
            commits.append({"query": subject, "sessions": gold})
    questions = json.dumps({"commits": commits, "files": files}, indent=1)
    (folder / "questions.json").write_text(questions, encoding="utf-8")


def _checkpoints(clone: Path) -> list[Checkpoint]:
    metadata: dict[str, str] = {}
    transcripts: dict[str, tuple[int, str]] = {}
    for line in _git(clone, "ls-tree", "-r", "-l", BRANCH).decode().splitlines():
        left, path = line.split("\t")
        _, _, name, size = left.split()
        folder = path.rpartition("/")[0]
        if path.endswith("/metadata.json"):
            metadata[folder] = name
        elif path.endswith(".jsonl") and size.isdigit():  # a partial clone lacks some
            transcripts[folder] = max(transcripts.get(folder, (0, "")), (int(size), name))
    found = []
    for folder in sorted(metadata.keys() & transcripts.keys()):
        facts = json.loads(_git(clone, "cat-file", "blob", metadata[folder]))
        if facts.get("session_id"):
            found.append(Checkpoint(facts, transcripts[folder]))
    return found


def _subjects(clone: Path) -> dict[str, set[str]]:
    """Return the checkpoints of each commit's subject. One subject may stand for several commits."""
    found: dict[str, set[str]] = defaultdict(set)
    log = _git(clone, "log", "--all", f"--format=%s%x00{TRAILER}").decode("utf-8", "replace")
    for line in log.splitlines():
        subject, _, checkpoints = line.partition("\0")
        words = re.findall(r"[a-z0-9]{2,}", subject.lower())
        if len(words) >= LEAST_WORDS and not subject.startswith("Merge"):
            found[subject].update(one.strip() for one in checkpoints.split(","))
    return found


def _edited(transcript: bytes) -> set[str]:
    lines = (line for line in transcript.splitlines() if b'"tool_use"' in line)
    return {path.decode("utf-8", "replace") for line in lines for path in EDIT.findall(line)}


def _git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, check=True).stdout
