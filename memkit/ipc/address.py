"""Where the service of a memory home listens, and how one connects to it.

A Unix socket `run/service.sock`. If that path is longer than the system allows, or the file system has no
sockets: one in a private directory of a random name, below `XDG_RUNTIME_DIR` or `/tmp`; its name stands
in `run/service.json`. Where there are no Unix sockets: a TCP port of the loopback interface; the port and
the token that every request must carry stand in `run/service.json`.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import stat
import sys

from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json

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
    """Where the service of `home` listens, as far as its files tell; nothing is created."""
    directory = _short_directory(home)
    if directory is None:
        return home.service_socket
    return os.path.join(directory, os.path.basename(home.service_socket))


def listen(home: Home) -> tuple[socket.socket, str | None]:
    """A listening socket for `home`, and the token that requests must carry (None: needs none).

    The caller holds `home.service_lock`, so a socket that is already there is a dead service's and
    is removed. Raises `OSError` if the system lets us listen nowhere.
    """
    make_private_directory(home.run)
    remove(home)
    return _listen_unix(home) if uses_unix_sockets() else _listen_tcp(home)


def connect(home: Home, timeout_seconds: float) -> tuple[socket.socket, str | None]:
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
    elif len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:  # and no short directory: nobody listens
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
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
    directory = _short_directory(home) if uses_unix_sockets() else None
    if directory is not None:
        try:
            _require_private_directory(directory)
            _remove_file(os.path.join(directory, os.path.basename(home.service_socket)))
            os.rmdir(directory)
        except OSError:  # gone, or somebody else's: it has a random name, so it is in nobody's way
            pass
    _remove_file(home.service_token)
    if uses_unix_sockets():
        _remove_file(home.service_socket)


def _listen_unix(home: Home) -> tuple[socket.socket, None]:
    """Listen in the home, or where that cannot be, in a directory of a random name that the home tells."""
    if len(os.fsencode(home.service_socket)) <= MAX_SOCKET_PATH_BYTES:
        try:
            return _bind(home.service_socket), None
        except OSError:  # a file system that has no sockets
            pass
    import tempfile  # 8 ms that only such a home pays

    failure: OSError | None = None
    for parent in _short_parents():
        try:
            directory = tempfile.mkdtemp(prefix="memkit-", dir=parent)
        except OSError as error:
            failure = error
            continue
        try:
            content = json.dumps({"directory": directory}).encode("ascii")
            write_durably(home.service_token, content)
            return _bind(os.path.join(directory, os.path.basename(home.service_socket))), None
        except OSError as error:
            failure = error
            remove(home)
            with contextlib.suppress(OSError):
                os.rmdir(directory)
    raise failure or OSError(errno.ENOENT, "there is no place for a socket")


def _short_parents() -> list[str]:
    """Where a private directory may be made whose path is short: the user's own place first."""
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    parents = []
    try:
        if os.path.isabs(own):
            _require_private_directory(own)
            parents.append(own)
    except OSError:  # not there, or open to others
        pass
    return [*parents, SHORT_PARENT]


def _bind(path: str) -> socket.socket:
    if sys.platform == "win32":  # where it listens on TCP
        raise NotImplementedError
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
        os.chmod(path, PRIVATE_FILE)  # before `listen`: until then every connection is refused
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


def _short_directory(home: Home) -> str | None:
    """The directory outside the home in which its service listens; None if it listens in the home."""
    try:
        with open(home.service_token, "rb") as file:
            directory = parse_json(file.read(MAX_TOKEN_FILE_BYTES))["directory"]
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return directory if isinstance(directory, str) and os.path.isabs(directory) else None


def _listen_tcp(home: Home) -> tuple[socket.socket, str]:
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


def _read_token_file(path: str) -> tuple[int, str]:
    with open(path, "rb") as file:
        data = file.read(MAX_TOKEN_FILE_BYTES)
    try:
        content = parse_json(data)
        port, token = content["port"], content["token"]
    except (ValueError, TypeError, KeyError) as error:
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
