"""Where the machines of a person leave what they remember: a folder, a git repository, or a host with ssh.

A place holds `machines/NAME/` for each machine, which alone writes there: `manifest`, and
`objects/ab/SHA256` for each file that the manifest lists, named after its bytes. So nothing ever conflicts,
and half a copy is noticed.

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
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, Protocol

from memkit.errors import MemkitError
from memkit.files import (
    MOST_BYTES,
    PRIVATE_FILE,
    durable_together,
    inside,
    make_private_directory,
    read_regular,
    write_durably,
)
from memkit.hook.entries import MACHINE
from memkit.paths import Home
from memkit.processes import find_program, no_window
from memkit.text import one_line

OBJECT = re.compile("[0-9a-f]{64}")

_MACHINE = re.compile(MACHINE)
_MANIFEST = re.compile(rf"machines/({MACHINE})/manifest")
_OBJECT_PATH = re.compile("objects/[0-9a-f]{2}/([0-9a-f]{64})")
_SECONDS = 3600.0
"""The longest that git or ssh may take."""

_FOLDER_ON_HOST = "memkit-sync"
_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*", re.ASCII)


class Place(Protocol):
    """One place. Its methods raise `MemkitError` and `OSError`."""

    def manifests(self) -> Mapping[str, bytes]:
        """Return the manifest of each machine."""

    def objects(self, machine: str, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Yield name and bytes of those of `names` that are there, unchecked, in any order."""

    def put(
        self, machine: str, objects: Mapping[str, bytes], manifest: bytes, listed: Collection[str]
    ) -> None:
        """Store `objects`, then the manifest, then remove all objects that it does not list."""


def digest(data: bytes) -> str:
    """Return the name of an object."""
    return hashlib.sha256(data).hexdigest()


def is_encrypted(address: str) -> bool:
    """Return whether the place, by its address as in `sync.place`, gets everything encrypted."""
    return address.partition(" ")[0].endswith("+age")


def open_place(address: str, home: Home) -> Place:
    """Return the place with this address, as in `sync.place`. Raise `MemkitError` if it is not one."""
    kind, _, where = address.partition(" ")
    kind = kind.removesuffix("+age")
    if kind == "folder":
        where = os.path.expanduser(where)
        if not os.path.isdir(where):
            raise MemkitError(f"there is no folder {where}; create it, or connect its drive")
        return _Folder(where)
    if kind == "git":
        if where.startswith("-") or "::" in where or not where.isprintable():
            raise MemkitError(f"{where} is not an address of a git repository that memkit uses")
        return _Repository(where, home)
    if not kind:
        raise MemkitError("there is no place to sync with; name one, as in `memkit sync folder PATH`")
    if not _HOST.fullmatch(where):
        raise MemkitError(f"{where} is not HOST or USER@HOST; put ports and keys into ~/.ssh/config")
    return _Host(where)


def _path_of(name: str) -> str:
    return f"objects/{name[:2]}/{name}"


def _with_paths(objects: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    return [(_path_of(name), data) for name, data in objects.items()]


class _Folder:
    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)

    def manifests(self) -> Mapping[str, bytes]:
        found = {}
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(os.path.join(self._root, "machines")):
                if _MACHINE.fullmatch(name):
                    found[name] = b""
                    with contextlib.suppress(OSError):  # reported as no manifest
                        found[name] = self._read(name, "manifest")
        return found

    def objects(self, machine: str, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            with contextlib.suppress(OSError):  # reported as missing: maybe a program still copies it
                yield name, self._read(machine, _path_of(name))

    def put(
        self, machine: str, objects: Mapping[str, bytes], manifest: bytes, listed: Collection[str]
    ) -> None:
        with durable_together():
            for name, data in _with_paths(objects):
                self._write(machine, name, data)
        self._write(machine, "manifest", manifest)
        for path in Path(self._root, "machines", machine, "objects").glob("*/*"):
            if path.name not in listed:
                path.unlink(missing_ok=True)

    def _path(self, machine: str, name: str) -> str:
        path = os.path.join(self._root, "machines", machine, *name.split("/"))
        return inside(path, self._root, is_real=True)

    def _read(self, machine: str, name: str) -> bytes:
        return read_regular(self._path(machine, name), MOST_BYTES)

    def _write(self, machine: str, name: str, data: bytes) -> None:
        path = self._path(machine, name)
        make_private_directory(os.path.dirname(path))
        write_durably(path, data)


class _Repository:
    """Each machine has a branch with one commit without a parent, so what it forgets is in no history.

    `git` finds out what the other side has by the parents of commits. That our commits are recorded as cut
    off (`shallow`) makes it look at their files instead: else everything would be sent each time.
    """

    def __init__(self, url: str, home: Home) -> None:
        self._url = url
        self._directory = home.sync_repository
        self._git = find_program("git") or _fail("git is not installed")
        for left in Path(self._directory).rglob("*.lock"):  # by a killed git
            left.unlink(missing_ok=True)
        try:
            self._run("rev-parse", "--git-dir")
        except MemkitError:  # missing, or half made or half deleted
            shutil.rmtree(self._directory, ignore_errors=True)
            make_private_directory(self._directory)
            self._run("init", "--quiet", "--bare", "--template=", self._directory)

    def manifests(self) -> Mapping[str, bytes]:
        self._run(
            "fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules",
            "--", self._url, "+refs/heads/memkit/*:refs/memkit/*",
        )  # fmt: skip
        names = [name for name in self._tips() if _MACHINE.fullmatch(name)]
        return dict(self._blobs({f"refs/memkit/{name}:manifest": name for name in names}))

    def objects(self, machine: str, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        return self._blobs({f"refs/memkit/{machine}:{_path_of(name)}": name for name in names})

    def put(
        self, machine: str, objects: Mapping[str, bytes], manifest: bytes, listed: Collection[str]
    ) -> None:
        before = self._tips().get(machine, "")
        lines = [b"commit refs/own\ncommitter memkit <> now\ndata 0\ndeleteall\n"]
        for path, blob in self._files(before).items():
            match = _OBJECT_PATH.fullmatch(path)
            if match and match[1] in listed and match[1] not in objects:
                lines.append(f"M 100644 {blob} {path}\n".encode("ascii"))
        for path, data in [*_with_paths(objects), ("manifest", manifest)]:
            lines += [f"M 100644 inline {path}\ndata {len(data)}\n".encode("ascii"), data, b"\n"]
        importing = ("fast-import", "--quiet", "--force", "--date-format=now")
        self._run(*importing, data=b"".join(lines))
        branch = f"refs/heads/memkit/{machine}"
        self._run(
            "push", "--quiet", f"--force-with-lease={branch}:{before}", "--", self._url, f"+refs/own:{branch}"
        )
        self._run("update-ref", f"refs/memkit/{machine}", "refs/own")
        self._run("update-ref", "-d", "refs/own")
        self._run("gc", "--auto", "--quiet", "--prune=now")

    def _tips(self) -> dict[str, str]:
        lines = self._run("for-each-ref", "--format=%(refname) %(objectname)", "refs/memkit").split()
        names = [name.removeprefix("refs/memkit/") for name in lines[::2]]
        tips = dict(zip(names, lines[1::2], strict=True))
        shallow = "".join(f"{tip}\n" for tip in sorted({*tips.values()}))
        write_durably(os.path.join(self._directory, "shallow"), shallow.encode("ascii"))
        return tips

    def _files(self, commit: str) -> dict[str, str]:
        found = {}
        for row in self._run("ls-tree", "-rz", commit).split("\0")[:-1] if commit else ():
            about, _, path = row.partition("\t")
            found[path] = about.split()[2]
        return found

    def _blobs(self, wanted: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        asked = "".join(f"{one}\n" for one in wanted).encode("ascii")
        names = {}
        for row, name in zip(
            self._run("cat-file", "--batch-check", data=asked).splitlines(), wanted.values(), strict=True
        ):
            blob, kind, size, *_ = [*row.split(), "", ""]
            if kind == "blob" and int(size) <= MOST_BYTES:
                names[blob] = name
        asked = "".join(f"{blob}\n" for blob in names).encode("ascii")
        with io.BytesIO(self._run_raw("cat-file", "--batch", data=asked)) as output:
            for name in names.values():
                size = output.readline().split()[2].decode("ascii")
                yield name, output.read(int(size))
                output.read(1)

    def _run(self, *arguments: str, data: bytes = b"") -> str:
        return os.fsdecode(self._run_raw(*arguments, data=data))

    def _run_raw(self, *arguments: str, data: bytes = b"") -> bytes:
        settings = (
            "core.hooksPath=" + os.devnull, "protocol.ext.allow=never", "core.fsmonitor=false",
            "gc.autoDetach=false", "core.symlinks=false",
        )  # fmt: skip
        options = [part for setting in settings for part in ("-c", setting)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_DIR": self._directory, "LC_ALL": "C"}
        return _output([self._git, *options, *arguments], "git", data, env=environment)


class _Host:
    """A folder in the home of a host, through ssh and tar. All names in commands match strict patterns."""

    def __init__(self, host: str) -> None:
        self._command = [find_program("ssh") or _fail("ssh is not installed"), "-oBatchMode=yes", "--", host]

    def manifests(self) -> Mapping[str, bytes]:
        output = self._run(f"cd {_FOLDER_ON_HOST} 2>/dev/null && tar cf - machines/*/manifest 2>/dev/null; :")
        found = {}
        for name, data in _members(output):
            match = _MANIFEST.fullmatch(name)
            if match:
                found[match[1]] = data
        return found

    def objects(self, machine: str, names: Collection[str]) -> Iterator[tuple[str, bytes]]:
        asked = "".join(f"{_path_of(name)}\n" for name in names)
        script = f"cd {_FOLDER_ON_HOST}/machines/{machine} && tar cf - -T - 2>/dev/null; :"
        output = self._run(script, asked.encode("ascii"))
        for name, data in _members(output):
            match = _OBJECT_PATH.fullmatch(name)
            if match:
                yield match[1], data

    def put(
        self, machine: str, objects: Mapping[str, bytes], manifest: bytes, listed: Collection[str]
    ) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, data in [*_with_paths(objects), ("new", manifest)]:
                member = tarfile.TarInfo(path)
                member.size, member.mode = len(data), PRIVATE_FILE
                archive.addfile(member, io.BytesIO(data))
        folder = f"{_FOLDER_ON_HOST}/machines/{machine}"
        stored = self._run(
            f"umask 077 && mkdir -p {folder}/objects && cd {folder} && tar xf - && mv new manifest && "
            "find objects -type f",
            buffer.getvalue(),
        )
        matches = map(_OBJECT_PATH.fullmatch, stored.decode("ascii", "replace").split())
        strays = [match[0] for match in matches if match and match[1] not in listed]
        if strays:
            self._run(f"cd {folder} && xargs rm -f --", "\n".join(strays).encode("ascii"))

    def _run(self, script: str, data: bytes = b"") -> bytes:
        return _output([*self._command, script], "ssh", data)


def _members(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the regular files in a tar archive from a host. Nothing is unpacked."""
    try:
        with tarfile.open(fileobj=io.BytesIO(output), mode="r:") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isreg() and member.size <= MOST_BYTES else None
                if file is not None:
                    yield member.name, file.read()
    except tarfile.ReadError as error:
        if output:
            raise MemkitError(f"the host sent no archive: {one_line(str(error))}") from error


def _output(command: list[str], program: str, data: bytes, **options: Any) -> bytes:
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=_SECONDS, **options, **no_window()
        )
    except subprocess.TimeoutExpired as error:
        raise MemkitError(f"{program} took longer than {_SECONDS / 60:.0f} minutes") from error
    if done.returncode:
        reason = one_line(done.stderr.decode("utf-8", "replace"), 300) or f"status {done.returncode}"
        raise MemkitError(f"{program} could not reach the place: {reason}")
    output: bytes = done.stdout
    return output


def _fail(reason: str) -> NoReturn:
    raise MemkitError(f"{reason}, which this place needs")
