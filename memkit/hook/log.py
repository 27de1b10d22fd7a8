"""What went wrong in a hook, a line of JSON each.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
import os
import time

from memkit.files import make_private_directory
from memkit.paths import Home

MAX_LOG_BYTES = 1024 * 1024


def log_failure(event: str, error: BaseException) -> None:
    """Append one line to `log/hooks.log`, which `memkit status` counts."""
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
    except OSError:  # a full or read-only disk: there is nowhere left to say it
        pass
