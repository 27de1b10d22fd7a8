"""Where the service of a memory home listens, and how one connects to it.

A Unix socket `run/service.sock`, or one in a short directory of its own if the path is longer than
the system allows. Where there are no Unix sockets: a TCP port of the loopback interface; the port
and the token that every request must carry stand in `run/service.json`.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import sys
from typing import Optional, Tuple

from memkit.paths import (
    PRIVATE_DIRECTORY,
    PRIVATE_FILE,
    Home,
    make_private_directory,
    write_durably,
)

MAX_SOCKET_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103
"""The length of `sun_path` less the closing zero: unix(7) on Linux, unix(4) on macOS and the BSDs."""

SHORT_PARENT = "/tmp"
"""Not the directory of `TMPDIR`: service and client would not meet if theirs differ."""

BACKLOG = 128
LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 32
MAX_TOKEN_FILE_BYTES = 4096


def uses_unix_sockets() -> bool:
    """Whether the service of this platform listens on a Unix socket, not on TCP."""
    return hasattr(socket, "AF_UNIX") and os.name == "posix"


def socket_path(home: Home) -> str:
    """The path of the Unix socket of `home`, short enough for the system; nothing is created."""
    if len(os.fsencode(home.service_socket)) <= MAX_SOCKET_PATH_BYTES:
        return home.service_socket
    if sys.platform == "win32":  # where it listens on TCP
        raise NotImplementedError
    import hashlib  # 2 ms that only a home with a very long path pays

    digest = hashlib.sha256(os.fsencode(home.root)).hexdigest()[:12]
    name = "memkit-{}-{}".format(os.getuid(), digest)
    return os.path.join(SHORT_PARENT, name, os.path.basename(home.service_socket))


def listen(home: Home) -> Tuple[socket.socket, Optional[str]]:
    """A listening socket for `home`, and the token that requests must carry (None: needs none).

    The caller holds `home.service_lock`, so a socket that is already there is a dead service's and
    is removed. Raises `OSError`; `PermissionError` if the short directory is not ours alone.
    """
    make_private_directory(home.run)
    remove(home)
    return _listen_unix(home) if uses_unix_sockets() else _listen_tcp(home)


def connect(home: Home, timeout_seconds: float) -> Tuple[socket.socket, Optional[str]]:
    """A connection to the service of `home`, and the token to send with the request, if any.

    Raises `FileNotFoundError` or `ConnectionRefusedError` if no service listens, `socket.timeout`
    or `BlockingIOError` if it does not accept in time, another `OSError` if it cannot be reached.
    """
    if not uses_unix_sockets():
        port, token = _read_token_file(home.service_token)
        return socket.create_connection((LOOPBACK, port), timeout_seconds), token
    if sys.platform == "win32":  # where it listens on TCP
        raise NotImplementedError
    path = socket_path(home)
    if path != home.service_socket:
        _require_private_directory(os.path.dirname(path))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_seconds)
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    return connection, None


def remove(home: Home) -> None:
    """Remove what `listen` left in the file system. The caller holds `home.service_lock`."""
    _remove_file(home.service_token)
    if not uses_unix_sockets():
        return
    path = socket_path(home)
    if path == home.service_socket:
        _remove_file(path)
        return
    directory = os.path.dirname(path)
    try:
        _require_private_directory(directory)
    except FileNotFoundError:
        return
    _remove_file(path)
    os.rmdir(directory)


def _listen_unix(home: Home) -> Tuple[socket.socket, None]:
    if sys.platform == "win32":  # where it listens on TCP
        raise NotImplementedError
    path = socket_path(home)
    if path != home.service_socket:
        os.mkdir(os.path.dirname(path), PRIVATE_DIRECTORY)  # fails if another took the name
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        os.chmod(path, PRIVATE_FILE)  # before `listen`: until then every connection is refused
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening, None


def _listen_tcp(home: Home) -> Tuple[socket.socket, str]:
    import secrets  # 5 ms that only a service pays

    token = secrets.token_hex(TOKEN_BYTES)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((LOOPBACK, 0))
        listening.listen(BACKLOG)
        content = {"port": listening.getsockname()[1], "token": token}
        write_durably(home.service_token, json.dumps(content).encode("ascii"))
    except BaseException:
        listening.close()
        raise
    return listening, token


def _read_token_file(path: str) -> Tuple[int, str]:
    with open(path, "rb") as file:
        data = file.read(MAX_TOKEN_FILE_BYTES)
    try:
        content = json.loads(data)
        port, token = content["port"], content["token"]
    except (ValueError, RecursionError, TypeError, KeyError) as error:
        raise OSError(errno.EINVAL, "the file is damaged", path) from error
    if type(port) is not int or not 0 < port < 65536 or not isinstance(token, str):
        raise OSError(errno.EINVAL, "the file is damaged", path)
    return port, token


def _require_private_directory(path: str) -> None:
    """Raise `PermissionError` unless `path` is a directory (no link) that only we may enter."""
    if sys.platform == "win32":  # where it listens on TCP
        raise NotImplementedError
    found = os.lstat(path)
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.getuid()
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise PermissionError(errno.EPERM, "not a directory of ours alone", path)


def _remove_file(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
