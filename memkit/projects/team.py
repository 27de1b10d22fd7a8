"""Who shares: the author's folder, trust in a clone's authors, and a copy of what they share."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import unicodedata

from memkit.errors import MemkitError
from memkit.files import make_private_directory, write_durably
from memkit.paths import Home
from memkit.projects import team_files
from memkit.projects.git import git_output, setting_of
from memkit.projects.git_files import SHORT_HASH, own_git_directory, read_git_file
from memkit.projects.registry import changing
from memkit.projects.team_files import TOKEN_FILE
from memkit.text import one_line, printable

MOST_TOKENS = 100
"""The memory homes that may trust one clone."""

_NAME_CHARACTERS = 40
_TOKENS_BYTES = 64 * 1024
_UPSTREAMS = [
    f"refs/remotes/{one}/{name}" for one in ("upstream", "origin") for name in ("HEAD", "main", "master")
]
"""Names of the upstream's default branch. Checking out a pull request changes none of them."""


def author_folder(root: str) -> str:
    """Return the name of the folder for what this user shares: by git's `user.name` and `user.email`.

    Four digits of a hash of the address tell people of the same name apart. Raise `MemkitError` outside of a
    repository, and if git has neither.
    """
    if own_git_directory(root) is None:
        raise MemkitError(f"{root} is not a git repository, and memkit shares through git")
    name, email = (setting_of(root, one) for one in ("user.name", "user.email"))
    if not name and not email:
        raise MemkitError(
            "git does not know who you are; run `git config --global user.name NAME`, and user.email"
        )
    readable = _plain(name) or _plain(email.partition("@")[0]) or "author"
    key = unicodedata.normalize("NFC", email or name).casefold().encode("utf-8", "replace")
    return f"{readable[:_NAME_CHARACTERS].strip('-')}-{hashlib.sha256(key).hexdigest()[:4]}"


def _plain(text: str) -> str:
    letters = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")


def trust(home: Home, root: str) -> None:
    """Have memkit search what is shared in the clone at `root`. Raise `MemkitError`."""
    directory = own_git_directory(root)
    if directory is None:
        raise MemkitError(f"{root} is not a git repository, and people share through git")
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
    # It is read only while the clone is trusted.
    shutil.rmtree(team_files.copy_of(home, root), ignore_errors=True)


def upstream_commit(root: str) -> str | None:
    """Return the fetched commit of the upstream's default branch; "" if there is none, None if unknown."""
    output = git_output(root, "for-each-ref", "--format=%(refname) %(objectname)", *_UPSTREAMS)
    if output is None:
        return None
    found = dict(line.split(" ") for line in os.fsdecode(output).splitlines())
    return next((found[name] for name in _UPSTREAMS if name in found), "")


def update_copy(home: Home, root: str) -> None:
    """Copy the team's files as of the upstream's default branch to `team_files.copy_of`.

    If git does not answer, the copy stays as it is. Raise `OSError`.
    """
    copy, known = team_files.copy_of(home, root), team_files.read_copied(home, root)
    commit = upstream_commit(root)
    if commit is None or commit == known.get("upstream"):
        return
    blobs = _blobs(root, commit) if commit else {}
    if blobs is None:
        return
    before = {source: one.get("blob") for source, one in known.get("files", {}).items()}
    for source, blob in list(blobs.items()):
        if before.get(source) == blob:
            continue
        content = git_output(root, "cat-file", "blob", blob)
        if content is None:  # as in a partial clone; the next commit tries again
            del blobs[source]
            continue
        path = os.path.join(copy, *source.split("/"))
        make_private_directory(os.path.dirname(path))
        write_durably(path, content)
    for source in before.keys() - blobs.keys():
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(copy, *source.split("/")))
    commits = _commits(root, commit) if blobs else {}
    files = {source: {"blob": blob, **commits.get(source, {})} for source, blob in blobs.items()}
    value = {"upstream": commit, "own": _own(root), "files": files}
    make_private_directory(copy)
    write_durably(os.path.join(copy, "copied.json"), json.dumps(value).encode())


def _blobs(root: str, commit: str) -> dict[str, str] | None:
    output = git_output(root, "ls-tree", "-rzl", commit, "--", team_files.TEAM + "/")
    if output is None:
        return None
    found = {}
    for row in os.fsdecode(output).split("\0")[:-1]:
        about, _, source = row.partition("\t")
        mode, _, blob, size = about.split()
        is_file = mode.startswith("100") and team_files.team_file(source) is not None  # no link
        if is_file and int(size) <= team_files.MOST_BYTES:
            found[source] = blob
    newest = sorted(found, key=team_files.by_day)[-team_files.MOST_FILES :]
    return {source: found[source] for source in newest}


def _commits(root: str, commit: str) -> dict[str, dict[str, str]]:
    """Leave out the oldest commits of a shallow clone: they hold all before them."""
    # No pager, no signatures, no programs for diffs: a repository's settings name those.
    output = git_output(
        root, "--no-pager", "log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv",
        "--no-color", "--no-mailmap", "--format=tformat:%x01%H%x02%an%x02%as", commit, "--", team_files.TEAM,
    )  # fmt: skip
    directory = own_git_directory(root)
    shallow = read_git_file(os.path.join(directory, "shallow"), _TOKENS_BYTES).split() if directory else []
    found: dict[str, dict[str, str]] = {}
    last: dict[str, str] = {}
    for part in os.fsdecode(output or b"").split("\0"):
        if part.startswith("\x01"):
            name, author, day = part[1:].split("\x02")
            by = one_line(printable(author), _NAME_CHARACTERS)
            known = {"commit": name[:SHORT_HASH], "by": by, "committed": day[:10]}
            last = {} if name in shallow else known
        elif source := part.strip("\n"):
            found.setdefault(source, last)
    return found


def _own(root: str) -> list[str]:
    try:
        return [author_folder(root), setting_of(root, "user.name")]
    except MemkitError:  # git does not know who it is
        return []
