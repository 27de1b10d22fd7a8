"""The paths of the memory home, and names of files in projects.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os

MEMORY_DIRECTORY = os.path.join(".memkit", "memory")
"""The memory of a project, relative to its root."""

TEAM_DIRECTORY = os.path.join(".memkit", "team")
"""The folder of entries that people share through the repository, relative to the root of a project."""

OPENCLAW_DAYS, OPENCLAW_FACTS = "memory", "MEMORY.md"
"""Where OpenClaw keeps its memory in a project: a directory with `YYYY-MM-DD.md`, and lasting facts."""

OFF_MARKER = os.path.join(".memkit", "off")
"""memkit does not remember a project with this file. `memkit off` writes it, with the time."""

OFF_TIMES = os.path.join(".memkit", "off-times")
"""The periods in which memkit was off in a project: two numbers a line, in seconds since the epoch."""


# Windows keeps the names of devices, with any suffix, for itself.
_PLAIN_NAME = r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])$)[A-Za-z0-9][A-Za-z0-9_@-]{0,79}"


class Home:
    """The paths in one memory home (`MEMKIT_HOME`, by default `~/.memkit`). This class creates no files.

    `memkit.home_files` describes the files.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.config_file = os.path.join(root, "config.toml")
        self.spool = os.path.join(root, "spool")
        self.archive = os.path.join(root, "archive")
        self.replaced = os.path.join(self.archive, "replaced")
        self.before_restore = os.path.join(self.archive, "before-restore")
        self.sessions = os.path.join(root, "sessions")
        self.summaries = os.path.join(root, "summaries")
        self.announced = os.path.join(self.summaries, "announced")
        self.forgotten = os.path.join(root, "forgotten.json")
        self.ledger = os.path.join(root, "ledger.jsonl")
        self.extras = os.path.join(root, "extras.json")
        self.owner = os.path.join(root, "owner")
        self.serve_keys = os.path.join(root, "serve-keys.json")
        self.projects = os.path.join(root, "projects")
        self.memory = os.path.join(root, "memory")
        self.index = os.path.join(root, "index")
        self.models = os.path.join(root, "models")
        self.environments = os.path.join(root, "env")
        self.sync = os.path.join(root, "sync")
        self.sync_repository = os.path.join(self.sync, "git")
        self.run = os.path.join(root, "run")
        self.live = os.path.join(self.run, "live")
        self.index_lock = os.path.join(self.run, "index.lock")
        self.capture_lock = os.path.join(self.run, "capture.lock")
        self.import_lock = os.path.join(self.run, "import.lock")
        self.service_socket = os.path.join(self.run, "service.sock")
        self.service_process = os.path.join(self.run, "service.pid")
        self.service_lock = os.path.join(self.run, "service.lock")
        self.service_token = os.path.join(self.run, "service.json")
        self.service_problem = os.path.join(self.run, "service.problem")
        self.pointer_history = os.path.join(self.run, "shown")
        self.left = os.path.join(self.run, "left.json")
        self.checked = os.path.join(self.run, "checked")
        self.hook_settings = os.path.join(self.run, "hooks.json")
        self.nowhere = os.path.join(self.run, "nowhere")
        self.log = os.path.join(root, "log")
        self.events_file = os.path.join(self.log, "events.jsonl")
        self.hook_log = os.path.join(self.log, "hooks.log")
        self.worker_log = os.path.join(self.log, "worker.log")
        self.log_file = os.path.join(self.log, "memkit.log")

    def __repr__(self) -> str:
        return f"Home({self.root!r})"

    @classmethod
    def from_environment(cls) -> Home:
        """Return the home that `MEMKIT_HOME` names, or `~/.memkit`."""
        root = os.environ.get("MEMKIT_HOME") or os.path.join("~", ".memkit")
        return cls(os.path.abspath(os.path.expanduser(root)))


def is_plain_name(name: str) -> bool:
    """Return whether an untrusted name, with any suffix, is a safe file name on every platform."""
    import re  # the launcher does not need it

    return bool(re.fullmatch(_PLAIN_NAME, name))
