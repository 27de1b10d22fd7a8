"""Who shares: the author's folder, and whether the user trusts what a clone's authors share."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import unicodedata

from memkit.errors import MemkitError
from memkit.files import write_durably
from memkit.hook.git import own_git_directory, read_git_file
from memkit.hook.team import TOKEN_FILE
from memkit.paths import Home
from memkit.projects import changing
from memkit.projects.git import run_git

MOST_TOKENS = 100
"""The memory homes that may trust one clone."""

_NAME_CHARACTERS = 40
_TOKENS_BYTES = 64 * 1024


def author_folder(root: str) -> str:
    """Return the name of the folder for what this user shares: by git's `user.name` and `user.email`.

    Four digits of a hash of the address tell people of the same name apart. Raise `MemkitError` outside of a
    repository, and if git has neither.
    """
    if own_git_directory(root) is None:
        raise MemkitError(f"{root} is no git repository, and memkit shares through git")
    name, email = (_setting(root, one) for one in ("user.name", "user.email"))
    if not name and not email:
        raise MemkitError(
            "git does not know who you are; run `git config --global user.name NAME`, and user.email"
        )
    readable = _plain(name) or _plain(email.partition("@")[0]) or "author"
    key = unicodedata.normalize("NFC", email or name).casefold().encode("utf-8", "replace")
    return f"{readable[:_NAME_CHARACTERS].strip('-')}-{hashlib.sha256(key).hexdigest()[:4]}"


def _setting(root: str, name: str) -> str:
    answer = run_git(root, "config", "--get", name)
    return answer[1].decode("utf-8", "replace").strip() if answer is not None and answer[0] == 0 else ""


def _plain(text: str) -> str:
    """Return the ASCII letters and digits of a name, in words joined by hyphens."""
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")


def trust(home: Home, root: str) -> None:
    """Have memkit search what is shared in the clone at `root`. Raise `MemkitError`."""
    directory = own_git_directory(root)
    if directory is None:
        raise MemkitError(f"{root} is no git repository, and people share through git")
    path, token = os.path.join(directory, TOKEN_FILE), secrets.token_hex(16)
    tokens = read_git_file(path, _TOKENS_BYTES).split()[-MOST_TOKENS + 1 :]
    try:
        write_durably(path, "\n".join([*tokens, token, ""]).encode("ascii", "replace"))
    except OSError as error:
        raise MemkitError(f"cannot write {path}: {error.strerror or error}") from error
    with changing(home) as registry:
        registry.trusted[root] = token


def distrust(home: Home, root: str) -> None:
    """Search no longer what is shared in the clone at `root`. Raise `MemkitError`."""
    with changing(home) as registry:
        registry.trusted.pop(root, None)
