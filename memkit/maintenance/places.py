"""Where the machines of a person leave what they remember: a folder, or a git repository, maybe on a host.

A place holds `machines/NAME/` for each machine, which alone writes there (a git place, a branch for each):
`manifest`, and `objects/ab/SHA256` for each file that the manifest lists, named after its bytes. So nothing
ever conflicts, and half a copy is noticed.

Nothing in a place is trusted: names match strict patterns, sizes are bounded, and no link is followed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from memkit.errors import MemkitError
from memkit.files import (
    MOST_BYTES,
    RefusedFileError,
    durable_together,
    entries_below,
    make_private_directory,
    read_regular,
    write_durably,
)
from memkit.hook.entries import MACHINE
from memkit.paths import Home
from memkit.processes import find_program, no_window
from memkit.text import one_line

MANIFEST = "manifest"

_MACHINE = re.compile(MACHINE)
_OBJECT_PATH = re.compile("objects/[0-9a-f]{2}/([0-9a-f]{64})")
_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*", re.ASCII)
_SECONDS = 3600.0

_RECEIVE = (
    f"git -c core.hooksPath={os.devnull} -c core.alternateRefsCommand=true -c receive.autogc=false "
    "receive-pack"
)
"""A repository on this machine runs nothing: its settings and hooks are those of whoever can write there."""


def digest(data: bytes) -> str:
    """Return the name of an object."""
    return hashlib.sha256(data).hexdigest()


def open_place(address: str, home: Home) -> Folder | Repository:
    """Return the place with this address, as in `sync.place`. Raise `MemkitError` if it is not one."""
    kind, _, where = address.partition(" ")
    kind = kind.removesuffix("+age")
    if kind == "folder":
        where = os.path.expanduser(where)
        if not os.path.isdir(where):
            raise MemkitError(f"there is no folder {where}; create it, or connect its drive")
        return Folder(where)
    if kind == "ssh" and _HOST.fullmatch(where):
        return Repository(f"{where}:memkit-sync.git", home)
    if kind != "git" or where.startswith("-") or "::" in where or not where.isprintable():
        raise MemkitError(f"memkit cannot sync with {where or 'no place'}; see `memkit sync --help`")
    return Repository(where, home)


def make_repository(host: str) -> None:
    """Make the repository on a host that ssh reaches. Doing it twice changes nothing."""
    open_place(f"ssh {host}", Home(""))
    _run(["ssh", "-oBatchMode=yes", "--", host, "git init --quiet --bare memkit-sync.git"])


def path_of(name: str) -> str:
    """Return where a machine keeps the object `name`."""
    return f"objects/{name[:2]}/{name}"


class Folder:
    """A folder that another program syncs, or that is on a network."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def manifests(self) -> dict[str, bytes]:
        """Return the manifest of each machine; b"" for one that cannot be read."""
        names = filter(_MACHINE.fullmatch, (one.name for one in Path(self._root, "machines").glob("*")))
        return {name: dict(self.read(name, [MANIFEST])).get(MANIFEST, b"") for name in names}

    def read(self, machine: str, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield those of the files of a machine that are there, in any order. Their bytes are unchecked."""
        for path in paths:
            with contextlib.suppress(OSError):  # missing, a link, or still being copied
                yield path, read_regular(self._path(machine, path))

    def put(self, machine: str, files: Mapping[str, bytes], listed: Collection[str]) -> None:
        """Store these files, the manifest last, and remove all objects that are not `listed`."""
        for paths in (files.keys() - {MANIFEST}, [MANIFEST]):
            with durable_together():
                for path in paths:
                    real = self._path(machine, path)
                    make_private_directory(os.path.dirname(real))
                    write_durably(real, files[path])
        objects = self._path(machine, "objects")
        for entry in entries_below(objects):  # follows no link
            path = f"objects/{os.path.relpath(entry.path, objects).replace(os.sep, '/')}"
            match = _OBJECT_PATH.fullmatch(path)
            if match and match[1] not in listed:
                os.unlink(entry.path)

    def _path(self, machine: str, path: str) -> str:
        found = os.path.join(self._root, "machines", machine, *path.split("/"))
        if os.path.realpath(found) != found:  # also no link inside of the place: it may be another machine's
            raise RefusedFileError(found, "a link leads there or from there")
        return found


class Repository:
    """A private git repository. The branch of a machine has one commit: no history keeps what was forgotten.

    To find out what the other side has, git follows the parents of commits, and ours have none. Recorded as
    cut off (`shallow`), they have it compare their files: else it would send everything each time.
    """

    def __init__(self, url: str, home: Home) -> None:
        self._url = url
        self._directory = home.sync_repository

    def manifests(self) -> dict[str, bytes]:
        """As for a folder."""
        for left in Path(self._directory).rglob("*.lock"):  # by a killed git
            left.unlink(missing_ok=True)
        try:
            self._git("rev-parse", "--git-dir")
        except MemkitError:  # missing, or half made or half deleted
            shutil.rmtree(self._directory, ignore_errors=True)
            make_private_directory(self._directory)
            self._git("init", "--quiet", "--bare", "--template=", self._directory)
        before = self._cut_off()
        options = ("--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        self._git("fetch", *options, "--", self._url, "+refs/heads/memkit/*:refs/memkit/*")
        tips = self._cut_off()
        if tips != before:
            self._drop_unused()
        names = filter(_MACHINE.fullmatch, tips)
        return {name: dict(self.read(name, [MANIFEST])).get(MANIFEST, b"") for name in names}

    def read(self, machine: str, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """As for a folder."""
        files = self._files(self._tips()[machine])
        found = {files[path]: path for path in paths if path in files}
        asked = "".join(f"{blob}\n" for blob in found).encode("ascii")
        with io.BytesIO(self._git("cat-file", "--batch", data=asked)) as output:
            for path in found.values():
                size = int(output.readline().split()[2])
                yield path, output.read(size)
                output.read(1)

    def put(self, machine: str, files: Mapping[str, bytes], listed: Collection[str]) -> None:
        """As for a folder."""
        before = self._tips().get(machine, "")
        parts = [b"commit refs/own\ncommitter memkit <> now\ndata 0\ndeleteall\n"]
        for path, blob in self._files(before).items() if before else ():
            match = _OBJECT_PATH.fullmatch(path)
            if match and match[1] in listed and path not in files:
                parts.append(f"M 100644 {blob} {path}\n".encode("ascii"))
        for path, data in files.items():
            parts += [f"M 100644 inline {path}\ndata {len(data)}\n".encode("ascii"), data, b"\n"]
        self._git("fast-import", "--quiet", "--force", "--date-format=now", data=b"".join(parts))
        branch = f"refs/heads/memkit/{machine}"
        lease = f"--force-with-lease={branch}:{before}"
        is_local = self._url.startswith("file:") or ":" not in self._url.split("/")[0]
        receive = [f"--receive-pack={_RECEIVE}"] * is_local
        self._git("push", "--quiet", *receive, lease, "--", self._url, f"+refs/own:{branch}")
        self._git("update-ref", f"refs/memkit/{machine}", "refs/own")
        self._git("update-ref", "-d", "refs/own")
        self._cut_off()  # `shallow` would keep the commit before
        self._drop_unused()

    def _drop_unused(self) -> None:
        """Remove what no branch has now: it may hold what was forgotten."""
        self._git("gc", "--quiet", "--prune=now")

    def _tips(self) -> dict[str, str]:
        form = "--format=%(refname:lstrip=2) %(objectname)"
        rows = os.fsdecode(self._git("for-each-ref", form, "refs/memkit")).splitlines()
        return dict(row.split(" ") for row in rows)

    def _cut_off(self) -> dict[str, str]:
        """Record the commits of all branches as `shallow`; return them by machine."""
        tips = self._tips()
        shallow = "".join(f"{tip}\n" for tip in sorted({*tips.values()}))
        write_durably(os.path.join(self._directory, "shallow"), shallow.encode("ascii"))
        return tips

    @lru_cache(maxsize=4)  # noqa: B019 - few of them are made, and none lives long
    def _files(self, commit: str) -> dict[str, str]:
        """Return the blob of each file of a commit, by path, without links and what is too large."""
        found = {}
        for row in os.fsdecode(self._git("ls-tree", "-rzl", commit)).split("\0")[:-1]:
            about, _, path = row.partition("\t")
            mode, _, blob, size = about.split()
            if mode == "100644" and int(size) <= MOST_BYTES:
                found[path] = blob
        return found

    def _git(self, *arguments: str, data: bytes = b"") -> bytes:
        settings = ("core.hooksPath=" + os.devnull, "protocol.ext.allow=never", "gc.autoDetach=false")
        options = [part for setting in settings for part in ("-c", setting)]
        return _run(["git", *options, *arguments], data, self._directory)


def _run(command: list[str], data: bytes = b"", git_directory: str = "") -> bytes:
    environment = {one: value for one, value in os.environ.items() if not one.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_DIR": git_directory, "LC_ALL": "C"}
    name = command[0]
    program = find_program(name)
    if program is None:
        raise MemkitError(f"this place needs {name}; install it")
    try:
        command[0] = program
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=_SECONDS, env=environment, **no_window()
        )
    except subprocess.TimeoutExpired as error:
        raise MemkitError(f"{name} took longer than {_SECONDS / 60:.0f} minutes") from error
    if done.returncode:
        reason = one_line(done.stderr.decode("utf-8", "replace"), 300) or f"status {done.returncode}"
        raise MemkitError(f"{name} could not reach the place: {reason}")
    output: bytes = done.stdout
    return output
