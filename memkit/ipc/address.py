"""The address of the service of a memory home: listen there, or connect to it.

- By default: the Unix socket `run/service.sock`.
- If that path is too long, or the file system has no sockets: a socket in a private directory with a random
  name, in `XDG_RUNTIME_DIR` or `/tmp`. `run/service.json` names the directory.
- Without Unix sockets: a TCP port of the loopback interface. `run/service.json` has the port and the token
  that every request must carry.

Standard library only, Python 3.9 syntax: hooks import this module.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import sys
from typing import Any

from memkit.errors import MemkitError
from memkit.files import PRIVATE_FILE, make_private_directory
from memkit.paths import Home
from memkit.state import read_state, write_state

VERSION = 1
"""The format version of `run/service.json`."""

MAX_SOCKET_PATH_BYTES = 107 if sys.platform.startswith("linux") else 103
"""The length of `sun_path` without the final zero: unix(7) on Linux, unix(4) on macOS and the BSDs."""

SHORT_PARENT = "/tmp"
"""Not `TMPDIR`: the service and its clients may have different ones."""

BACKLOG = 128
LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 32


def uses_unix_sockets() -> bool:
    """Return whether the service listens on a Unix socket here, and not on TCP."""
    return hasattr(socket, "AF_UNIX") and os.name == "posix"


def socket_path(home: Home) -> str:
    """Return the path of the service's socket. It need not exist."""
    directory = _short_directory(home)
    if directory is None:
        return home.service_socket
    return os.path.join(directory, os.path.basename(home.service_socket))


def listen(home: Home) -> tuple[socket.socket, str | None]:
    """Return a listening socket for `home`, and the token that requests must carry, if any.

    The caller holds `home.service_lock`. So an existing socket belongs to a dead service and is removed.
    Raise `OSError` if the system allows no socket.
    """
    make_private_directory(home.run)
    remove(home)
    return _listen_unix(home) if uses_unix_sockets() else _listen_tcp(home)


def connect(home: Home, timeout_seconds: float) -> tuple[socket.socket, str | None]:
    """Return a connection to the service of `home`, and the token to send with the request, if any.

    Raise `FileNotFoundError` or `ConnectionRefusedError` if no service listens, `socket.timeout` or
    `BlockingIOError` if it does not accept in time, and another `OSError` if it is unreachable.
    """
    if not uses_unix_sockets():
        port, token = _port_and_token(home)
        return socket.create_connection((LOOPBACK, port), timeout_seconds), token
    if sys.platform == "win32":  # for mypy: it listens on TCP there
        raise NotImplementedError
    path = socket_path(home)
    if path != home.service_socket:
        _require_private_directory(os.path.dirname(path))
    elif len(os.fsencode(path)) > MAX_SOCKET_PATH_BYTES:  # and no short directory: no service listens
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
    """Remove the files that `listen` made. The caller holds `home.service_lock`."""
    directory = _short_directory(home) if uses_unix_sockets() else None
    if directory is not None:
        # It may be gone or belong to another user. Its name is random, so it can stay.
        with contextlib.suppress(OSError):
            _require_private_directory(directory)
            _remove_file(os.path.join(directory, os.path.basename(home.service_socket)))
            os.rmdir(directory)
    _remove_file(home.service_token)
    if uses_unix_sockets():
        _remove_file(home.service_socket)


def _listen_unix(home: Home) -> tuple[socket.socket, None]:
    if len(os.fsencode(home.service_socket)) <= MAX_SOCKET_PATH_BYTES:
        try:
            return _bind(home.service_socket), None
        except OSError:  # a file system without sockets
            pass
    import tempfile  # 8 ms, and rarely needed

    failure: OSError | None = None
    for parent in _short_parents():
        try:
            directory = tempfile.mkdtemp(prefix="memkit-", dir=parent)
        except OSError as error:
            failure = error
            continue
        try:
            write_state(home.service_token, VERSION, {"directory": directory})
            return _bind(os.path.join(directory, os.path.basename(home.service_socket))), None
        except OSError as error:
            failure = error
            remove(home)
            with contextlib.suppress(OSError):
                os.rmdir(directory)
    raise failure or OSError(errno.ENOENT, "there is no directory for a socket")


def _short_parents() -> list[str]:
    own = os.environ.get("XDG_RUNTIME_DIR", "")
    with contextlib.suppress(OSError):  # missing, or open to others
        if os.path.isabs(own):
            _require_private_directory(own)
            return [own, SHORT_PARENT]
    return [SHORT_PARENT]


def _bind(path: str) -> socket.socket:
    if sys.platform == "win32":  # for mypy: it listens on TCP there
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


def _listen_tcp(home: Home) -> tuple[socket.socket, str]:
    import secrets  # 5 ms that clients do without

    token = secrets.token_hex(TOKEN_BYTES)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((LOOPBACK, 0))
        listening.listen(BACKLOG)
        content = {"port": listening.getsockname()[1], "token": token}
        write_state(home.service_token, VERSION, content)
    except BaseException:
        listening.close()
        raise
    return listening, token


def _short_directory(home: Home) -> str | None:
    with contextlib.suppress(MemkitError, OSError):
        directory = read_state(home.service_token, VERSION, lambda value: value.get("directory"))
        if isinstance(directory, str) and os.path.isabs(directory):
            return directory
    return None


def _port_and_token(home: Home) -> tuple[int, str]:
    try:
        found = read_state(home.service_token, VERSION, _checked)
    except MemkitError as error:
        raise OSError(errno.EINVAL, "the file is damaged", home.service_token) from error
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), home.service_token)
    return found


def _checked(content: dict[str, Any]) -> tuple[int, str]:
    port, token = content["port"], content["token"]
    if type(port) is not int or not 0 < port < 65536 or not isinstance(token, str):
        raise ValueError("it has no port and token")
    return port, token


def _require_private_directory(path: str) -> None:
    if sys.platform == "win32":  # for mypy: it listens on TCP there
        raise NotImplementedError
    found = os.lstat(path)
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != os.getuid()
        or stat.S_IMODE(found.st_mode) & 0o077
    ):
        raise PermissionError(errno.EPERM, "not a private directory of this user", path)


def _remove_file(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
