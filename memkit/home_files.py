"""The one table of the files in the memory home, and of those in a project's `.memkit` directory.

Backup, forget, audit, uninstall, and doctor read it. A pattern is a path relative to the home (or to the
root of the project); `*` matches within one name, `**` at the end matches everything below.

Standard library only, Python 3.9 syntax.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from glob import escape, glob
from typing import NamedTuple

STAMP = "[0-9a-f]" * 16

TEMPORARY = ".*.tmp"
"""An unfinished file of a writer that was killed. It can be next to any file of the table."""


class FileKind(NamedTuple):
    """One row of the table.

    `version` says where a file states the version of its format; "" means that it states none. `is_derived`
    means that memkit rebuilds the file, or needs it for a moment only. `has_text` means that it may hold
    text of conversations, in plain or compressed form. `is_public` means that it holds nothing about the
    user, like a download.
    """

    pattern: str
    purpose: str
    version: str = ""
    is_derived: bool = False
    has_text: bool = False
    in_backup: bool = False
    is_public: bool = False


HOME_FILES = (
    FileKind("config.toml", "your settings and keys", in_backup=True),
    FileKind("ledger.jsonl", "the cost of each model call", "version in each line", in_backup=True),
    FileKind("forgotten.json", "IDs of what you had forgotten", "version", in_backup=True),
    FileKind("serve-keys.json", "hashes of the keys of the HTTP API", "version"),
    FileKind("extras.json", "optional packages that you want", "version", in_backup=True),
    FileKind("owner", "the random ID of this home's rows on a Chroma server"),
    FileKind("archive/*.jsonl.zst", "original exchanges of a session", "version in the first line",
             has_text=True, in_backup=True),
    FileKind("archive/replaced/*/*.md", "memory files before a compaction", has_text=True, in_backup=True),
    FileKind("archive/replaced/*/undo.json", "IDs of the facts that a compaction changed", "version"),
    FileKind("archive/before-restore/**", "files that a restore replaced", has_text=True),
    FileKind("sessions/*.json", "how far each transcript was read", "version", has_text=True, in_backup=True),
    FileKind("summaries/*.json", "segments that wait for a summary", "version", in_backup=True),
    FileKind("summaries/*.lock", "locks of the summaries"),
    FileKind("summaries/announced", "when a session said that summaries are on"),
    FileKind("projects/registry.json", "links, names, and moves of projects", "version", in_backup=True),
    FileKind("projects/*.paths.json", "paths you added to a project's index", "version", in_backup=True),
    FileKind("projects/*.topics.json", "members of topics, and labels of yours and of a model", "version",
             has_text=True, in_backup=True),
    FileKind("projects/*.json", "the root of a project", in_backup=True),
    FileKind("projects/*.own", "fingerprints of entries that this home wrote", in_backup=True),
    FileKind("projects/*.adopted", "marks an old memory as this home's own"),
    FileKind("projects/*.identity", "the last name of a project's index"),
    FileKind("projects/registry.json.lock", "lock of the registry"),
    FileKind("projects/topics.json.lock", "lock of the topics"),
    FileKind("sync/machine", "the name of this machine in the place of `memkit sync`"),
    FileKind("sync/key.txt", "your age key for an encrypted place", in_backup=True),
    FileKind("sync/state.json", "what `memkit sync` sent and took", "version"),
    FileKind("sync/git/**", "what is in a git place", is_derived=True, has_text=True),
    FileKind("sync/lock", "lock of `memkit sync`", is_derived=True),
    FileKind("journal.lock", "lock of your own memory", is_derived=True),
    FileKind(".restore-*/**", "an unpacked backup", is_derived=True, has_text=True),
    FileKind("index/chroma/**", "vectors", is_derived=True, has_text=True),
    FileKind("index/snapshots/*/topics.json", "topics", "version", is_derived=True, has_text=True),
    FileKind("index/snapshots/*/manifest", "which segments a search reads", "format", is_derived=True),
    FileKind("index/snapshots/*/copied", "what Chroma has of the index", "version", is_derived=True),
    FileKind("index/snapshots/**", "what searches read", "format", is_derived=True, has_text=True),
    FileKind("index/timeline/**", "what each day of a memory holds, in short", "version", is_derived=True,
             has_text=True),
    FileKind("models/all-MiniLM-L6-v2/**", "the local model", is_derived=True, is_public=True),
    FileKind("log/*.log", "logs", is_derived=True, has_text=True),
    FileKind("log/*.log.[0-9]", "older logs", is_derived=True, has_text=True),
    FileKind("log/events.jsonl", "counts of searches", is_derived=True, has_text=True),
    FileKind("log/events.jsonl.1", "older counts of searches", is_derived=True, has_text=True),
    FileKind("spool/tmp/*.json", "events that a hook is writing", "schema", is_derived=True, has_text=True),
    FileKind("spool/new/*.json", "events that wait", "schema", is_derived=True, has_text=True),
    FileKind("spool/claimed/*.json", "events in work", "schema", is_derived=True, has_text=True),
    FileKind("spool/failed/*.json", "events that memkit gave up", "schema", is_derived=True, has_text=True),
    FileKind(f"env/{STAMP}/**", "a Python environment", is_derived=True, is_public=True),
    FileKind(f"env/*-{STAMP}/**", "a Python environment", is_derived=True, is_public=True),
    FileKind("env/.building-*/**", "an unfinished environment", is_derived=True, is_public=True),
    FileKind("env/failed.json", "why an environment could not be built", is_derived=True, is_public=True),
    FileKind("env/.lock", "lock of the environments", is_derived=True, is_public=True),
    FileKind("run/jobs.json", "the runs of each job", "version", is_derived=True, has_text=True),
    FileKind("run/jobs.lock", "lock of the jobs", is_derived=True),
    FileKind("run/*.captured", "since and up to when an agent's turns were captured", is_derived=True),
    FileKind("run/hooks.json", "settings for the hooks", is_derived=True),
    FileKind("run/live/**", "sessions that are open", is_derived=True),
    FileKind("run/shown/**", "pointers that a session has seen", is_derived=True),
    FileKind("run/tally/**", "how many sessions each day of a project has", "version", is_derived=True),
    FileKind("run/unindexed/**", "projects with changes to index", is_derived=True),
    FileKind("run/notices/**", "what the next session reports", is_derived=True),
    FileKind("run/nowhere/**", "an empty working directory for `claude`", is_derived=True),
    FileKind("run/import.jsonl", "files that an import has read", is_derived=True),
    FileKind("run/import-offered/**", "projects where memkit offered an import", is_derived=True),
    FileKind("run/off-said/**", "projects where memkit reported that it is off", is_derived=True),
    FileKind("run/team-said/**", "who memkit reported to share a memory", is_derived=True),
    FileKind("run/team/**", "what people share, as of the default branch upstream", is_derived=True),
    FileKind("run/*-notice", "when memkit reported its start or its environment", is_derived=True),
    FileKind("run/checked", "when a hook last looked for waiting events", is_derived=True),
    FileKind("run/left.json", "a worker that a hook left to the service", is_derived=True),
    FileKind("run/serve-keys.lock", "lock of the keys of the HTTP API", is_derived=True),
    FileKind("run/open-*.html", "leads the browser to the page of `memkit serve --open`", is_derived=True),
    FileKind("run/service.*", "how to reach the service", is_derived=True),
    FileKind("run/import.lock", "lock of the import", is_derived=True),
    FileKind("run/*.holder", "who holds a lock", is_derived=True),
    FileKind("run/*.queue", "who gets a lock next", is_derived=True),
    FileKind("run/index.lock", "lock of the index", is_derived=True),
    FileKind("run/capture.lock", "lock of capture", is_derived=True),
)  # fmt: skip
"""All files except the memories. Uninstall removes them in this order: what memkit needs comes last."""

PROJECT_FILES = (
    FileKind(".memkit/memory/**", "the memory", has_text=True, in_backup=True),
    FileKind(".memkit/off", "when memkit was turned off here", in_backup=True),
    FileKind(".memkit/off-times", "periods in which memkit was off here", in_backup=True),
    FileKind(".memkit/.gitignore", "keeps the memory out of git", is_derived=True),
    FileKind(".memkit/journal.lock", "lock of the memory", is_derived=True),
)
"""The files of one project. Your own memory is `memory/` in the home. A project without a directory has its
`.memkit` in `projects/NAME/` of the home. Days in OpenClaw's folder are OpenClaw's files, too. What people
share in `.memkit/team` belongs to the repository: no backup holds it, and no uninstall removes it."""


def kind_of(path: str, table: tuple[FileKind, ...] = HOME_FILES) -> FileKind | None:
    """Return the row for `path` (relative, with `/`), or None if memkit makes no such file."""
    parts = path.split("/")
    for kind in table:
        if _matches(parts, kind.pattern.split("/")):
            return kind
    return None


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if pattern[-1] == "**":
        pattern = pattern[:-1]
        if len(parts) <= len(pattern):
            return False
        parts = parts[: len(pattern)]
    return len(parts) == len(pattern) and all(map(fnmatchcase, parts, pattern))


def find_files(root: str, kind: FileKind) -> Iterator[str]:
    """Yield the files of one kind below the home `root`, sorted. Do not follow links to files."""
    recursive = kind.pattern.endswith("**")
    found = glob(os.path.join(escape(root), *kind.pattern.split("/")), recursive=recursive)
    for path in sorted(found):
        name = os.path.relpath(path, root).replace(os.sep, "/")
        if os.path.isfile(path) and not os.path.islink(path) and kind_of(name) is kind:
            yield path


def remove_obstacles(root: str) -> Iterator[str]:
    """Remove links and directories that stand where memkit rebuilds a file, and yield their paths.

    Leave the target of a link alone, and what a link leads to outside of the home `root`. Raise `OSError`.
    """
    for kind in HOME_FILES:
        is_file = kind.is_derived and not kind.pattern.endswith("**")
        if not is_file or not kind.pattern.startswith(("run/", "index/")):
            continue
        for path in glob(os.path.join(escape(root), *kind.pattern.split("/"))):
            folder = os.path.dirname(path)
            is_real = os.path.realpath(folder) == os.path.realpath(root) + folder[len(root) :]
            if is_real and os.path.islink(path):
                with suppress(FileNotFoundError):  # removed by another process
                    os.unlink(path)
                yield path
            elif is_real and os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)  # if it stays, the error of its user names it
                yield path


def top_names(table: tuple[FileKind, ...] = HOME_FILES) -> dict[str, list[FileKind]]:
    """Return the rows by the first name of their patterns, in the order of the table."""
    found: dict[str, list[FileKind]] = {}
    for kind in table:
        found.setdefault(kind.pattern.partition("/")[0], []).append(kind)
    return found
