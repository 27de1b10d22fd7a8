"""Where the machines of a person leave what they remember: a folder, or a git repository, maybe on a host.

A place holds `machines/NAME/` for each machine, which alone writes there (a git place, a branch for each):
`manifest`, and `objects/ab/DIGEST` for each object that the manifest lists. So nothing ever conflicts.

Nothing in a place is trusted: names match strict patterns, sizes are bounded, no link is followed, and an
object counts only if it has the digest in its name.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property, lru_cache
from pathlib import Path

from memkit.environment.extras import require
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

_MANIFEST = "manifest"
_OBJECT_PATH = re.compile("objects/[0-9a-f]{2}/([0-9a-f]{64})")
_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*", re.ASCII)
_SECONDS = 3600.0
_READ_AT_ONCE = MOST_BYTES

_RECEIVE = (
    f"git -c core.hooksPath={os.devnull} -c core.alternateRefsCommand=true -c receive.autogc=false "
    "receive-pack"
)
"""A repository on this machine runs nothing: its settings and hooks are those of whoever can write there."""


def digest(data: bytes, key: bytes = b"") -> str:
    """Return the name of an object. With a key, who lacks it cannot even check a guess at the content."""
    return hashlib.blake2b(data, digest_size=32, key=key).hexdigest()


def open_place(address: str, home: Home) -> Place:
    """Return the place with this address, as in `sync.place`. Raise `MemkitError` if it is not one."""
    kind, _, where = address.partition(" ")
    kind, _, is_sealed = kind.partition("+")
    key = key_file(home) if is_sealed else ""
    if kind == "folder":
        where = os.path.expanduser(where)
        if not os.path.isdir(where):
            raise MemkitError(f"there is no folder {where}; create it, or connect its drive")
        return Place(_Folder(where), key)
    if kind == "ssh" and _HOST.fullmatch(where):
        return Place(_Repository(f"{where}:memkit-sync.git", home), key)
    if kind != "git" or where.startswith("-") or "::" in where or not where.isprintable():
        raise MemkitError(f"memkit cannot sync with {where or 'no place'}; see `memkit sync --help`")
    return Place(_Repository(where, home), key)


def make_repository(host: str) -> None:
    """Make the repository on a host that ssh reaches. Doing it twice changes nothing."""
    open_place(f"ssh {host}", Home(""))
    _run(["ssh", "-oBatchMode=yes", "--", host, "git init --quiet --bare memkit-sync.git"])


def key_file(home: Home) -> str:
    """Return the path of the age key for encrypted places, which all machines of the person have."""
    return os.path.join(home.sync, "key.txt")


def make_key(home: Home) -> None:
    """Make the key unless there is one."""
    require("sync", "an encrypted place needs", "pyrage")
    import pyrage

    if not os.path.lexists(key_file(home)):
        make_private_directory(home.sync)
        write_durably(key_file(home), f"{pyrage.x25519.Identity.generate()}\n".encode("ascii"))


class _Age:
    """Encrypts with the key in a file. Raises `MemkitError`."""

    def __init__(self, path: str) -> None:
        require("sync", "an encrypted place needs", "pyrage")
        import pyrage

        self._age = pyrage
        try:
            words = read_regular(path, 10_000).decode("ascii", "replace").split()
            secret = next(one for one in words if one.startswith("AGE-SECRET-KEY-"))
            self._identity = pyrage.x25519.Identity.from_str(secret)
        except Exception as error:  # pyrage has no common class of errors
            raise MemkitError(f"{path} holds no age key; copy the file from your other machine") from error
        self.secret = hashlib.sha256(secret.encode("ascii")).digest()

    def seal(self, data: bytes) -> bytes:
        return bytes(self._age.encrypt(data, [self._identity.to_public()]))

    def open(self, data: bytes) -> bytes:
        try:
            return bytes(self._age.decrypt(data, [self._identity]))
        except self._age.DecryptError as error:
            raise MemkitError("it is not encrypted with the key of this machine") from error


class Place:
    """A place, with encryption at its edge if there is a key. Raises `MemkitError`, `OSError`."""

    def __init__(self, store: _Folder | _Repository, key: str) -> None:
        self._store = store
        self._key = key

    @cached_property
    def _age(self) -> _Age | None:
        return _Age(self._key) if self._key else None

    def machines(self) -> list[str]:
        """Bring what the place has, and return the names of all machines."""
        return sorted(filter(re.compile(MACHINE).fullmatch, self._store.machines()))

    def manifest(self, machine: str) -> bytes:
        """Return the manifest of a machine."""
        for _, data in self._store.read(machine, [_MANIFEST]):
            return self._age.open(data) if self._age else data
        raise MemkitError("it has no manifest that can be read")

    def name_of(self, data: bytes) -> str:
        """Return the name that an object has here."""
        return digest(data, self._age.secret if self._age else b"")

    def read(self, machine: str, names: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        """Yield those of the objects of a machine that are there, whole, in any order."""
        for _, data in self._store.read(machine, map(_path_of, names)):
            with contextlib.suppress(MemkitError):  # half copied
                data = self._age.open(data) if self._age else data
                yield self.name_of(data), data

    def put(self, machine: str, manifest: bytes, objects: Mapping[str, bytes], listed: Set[str]) -> None:
        """Store objects by name, then the manifest. Remove all objects that are not `listed`."""
        seal = self._age.seal if self._age else bytes
        files = {_path_of(name): seal(data) for name, data in objects.items()}
        self._store.put(machine, {**files, _MANIFEST: seal(manifest)}, listed)


def _path_of(name: str) -> str:
    return f"objects/{name[:2]}/{name}"


class _Folder:
    """A folder that another program syncs, or that is on a network."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def machines(self) -> list[str]:
        return [one.name for one in Path(self._root, "machines").glob("*")]

    def read(self, machine: str, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        for path in paths:
            with contextlib.suppress(OSError):  # missing, a link, or still being copied
                yield path, read_regular(self._path(machine, path))

    def put(self, machine: str, files: Mapping[str, bytes], listed: Set[str]) -> None:
        for paths in (files.keys() - {_MANIFEST}, [_MANIFEST]):
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


class _Repository:
    """A private git repository. The branch of a machine has one commit: no history keeps what was forgotten.

    To find out what the other side has, git follows the parents of commits, and ours have none. Recorded as
    cut off (`shallow`), they have it compare their files: else it would send everything each time.
    """

    def __init__(self, url: str, home: Home) -> None:
        self._url = url
        self._directory = home.sync_repository

    def machines(self) -> list[str]:
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
        return list(tips)

    def read(self, machine: str, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
        files, asked, size = self._files(self._tips()[machine]), list[str](), 0
        for path in filter(files.__contains__, paths):
            asked.append(path)
            size += files[path][1]
            if size > _READ_AT_ONCE:
                yield from self._blobs(files, asked)
                asked, size = [], 0
        yield from self._blobs(files, asked)

    def _blobs(self, files: Mapping[str, tuple[str, int]], asked: list[str]) -> Iterator[tuple[str, bytes]]:
        names = "".join(f"{files[path][0]}\n" for path in asked).encode("ascii")
        with io.BytesIO(self._git("cat-file", "--batch", data=names)) as output:
            for path in asked:
                size = int(output.readline().split()[2])
                yield path, output.read(size)
                output.read(1)

    def put(self, machine: str, files: Mapping[str, bytes], listed: Set[str]) -> None:
        before = self._tips().get(machine, "")
        parts = [b"commit refs/own\ncommitter memkit <> now\ndata 0\ndeleteall\n"]
        for path, (blob, _) in self._files(before).items() if before else ():
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
    def _files(self, commit: str) -> dict[str, tuple[str, int]]:
        """Return blob and size of each file of a commit, by path, without links and what is too large."""
        found = {}
        for row in os.fsdecode(self._git("ls-tree", "-rzl", commit)).split("\0")[:-1]:
            about, _, path = row.partition("\t")
            mode, _, blob, size = about.split()
            if mode == "100644" and int(size) <= MOST_BYTES:
                found[path] = blob, int(size)
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
