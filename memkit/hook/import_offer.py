"""What a person is told once in each project: how many sessions from before memkit could be imported.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import os
import re

from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home

_FOLDER = re.compile(r"^[\w-]{1,200}$", re.ASCII)
_TRANSCRIPT = ".jsonl"


def import_offer(home: Home, transcript: str) -> str | None:
    """A line on the sessions beside `transcript` that memkit does not know; None if there is none.

    Looked for once: from then on the answer for this folder of the client is None. Costs two listings
    of directories then, and the look at one name later. Raises `OSError`.
    """
    folder, own = os.path.split(transcript)
    name = os.path.basename(folder)
    if not _FOLDER.match(name):  # how the client writes a project's path; it becomes a name of ours
        return None
    directory = os.path.join(home.run, "import-offered")
    said = os.path.join(directory, name)
    if os.path.exists(said):
        return None
    count = len(_sessions(folder, _TRANSCRIPT) - _sessions(home.sessions, ".json") - {own})
    make_private_directory(directory)
    try:
        os.close(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
    except FileExistsError:  # another session that starts at this moment says it
        return None
    if not count:
        return None
    earlier = "1 earlier session" if count == 1 else f"{count} earlier sessions"
    verb = "is" if count == 1 else "are"
    return "memkit: {} of this project {} not in its memory; `memkit import` brings {} in.".format(
        earlier, verb, "it" if count == 1 else "them"
    )


def _sessions(directory: str, suffix: str) -> set[str]:
    """The transcripts that the files of a directory stand for, as the client names them."""
    try:
        names = os.listdir(directory)
    except OSError:
        return set()
    # Older clients kept the work of sub-agents beside their session's.
    return {
        name[: -len(suffix)] + _TRANSCRIPT
        for name in names
        if name.endswith(suffix) and not name.startswith("agent-")
    }
