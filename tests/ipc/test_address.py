from __future__ import annotations

import errno
import json
import os
import socket
import stat
from pathlib import Path

import pytest

from memkit.files import make_private_directory
from memkit.ipc import address
from memkit.paths import Home


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def assert_it_answers(home: Home, listening: socket.socket, token: str | None) -> None:
    """A connection made by the address is the one that arrives at the listening socket."""
    connection, sent = address.connect(home, 10)
    with connection, listening.accept()[0] as accepted:
        assert sent == token
        connection.sendall(b"hello")
        assert accepted.recv(5) == b"hello"


def test_a_unix_socket_that_only_its_owner_may_use(home):
    listening, token = address.listen(home)
    with listening:
        assert token is None
        assert mode(home.service_socket) == 0o600
        assert mode(home.run) == 0o700
        assert_it_answers(home, listening, None)
    address.remove(home)
    assert os.listdir(home.run) == []


@pytest.mark.usefixtures("over_tcp")
def test_without_unix_sockets_a_port_and_a_token(home):
    listening, token = address.listen(home)
    with listening:
        assert token is not None and len(token) == 64
        assert listening.getsockname()[0] == "127.0.0.1"
        assert mode(home.service_token) == 0o600
        assert_it_answers(home, listening, token)
    address.remove(home)
    assert os.listdir(home.run) == []


@pytest.mark.usefixtures("over_tcp")
def test_every_service_has_another_token(home):
    tokens = set()
    for _ in range(3):
        listening, token = address.listen(home)
        with listening:
            tokens.add(token)
            content = json.loads(Path(home.service_token).read_text())
            assert content == {"version": 1, "port": listening.getsockname()[1], "token": token}
    assert len(tokens) == 3


@pytest.mark.usefixtures("any_transport")
def test_a_stale_address_is_replaced(home):
    with pytest.raises(FileNotFoundError):
        address.connect(home, 10)
    address.listen(home)[0].close()  # as one that was killed: what it made is still there
    with pytest.raises(ConnectionRefusedError):
        address.connect(home, 10)
    listening, token = address.listen(home)
    with listening:
        assert_it_answers(home, listening, token)
    address.remove(home)
    address.remove(home)  # twice is harmless


@pytest.mark.usefixtures("over_tcp")
def test_a_damaged_token_file_is_an_error_of_the_system(home):
    make_private_directory(home.run)
    for content in (
        b"", b"\xff\x00", b"[1]", b"{}", b'{"port": "1", "token": "a"}', b'{"port": 1}', b'{"port": true, "token": "a"}',
        b'{"port": 65536, "token": "a"}', b'{"port": 1, "token": 1}', b"[" * 4096,
    ):  # fmt: skip
        Path(home.service_token).write_bytes(content)
        with pytest.raises(OSError, match="damaged") as caught:
            address.connect(home, 10)
        assert caught.value.errno == errno.EINVAL


def home_with_socket_path_of(root: str, length: int) -> Home:
    rest = length - len(os.path.join(root, "x", "run", "service.sock")) + 1
    return Home(os.path.join(root, "x" * rest))


@pytest.fixture
def short_parent(home: Home, monkeypatch: pytest.MonkeyPatch) -> str:
    parent = os.path.join(home.root, "s")
    os.mkdir(parent, 0o700)
    monkeypatch.setattr(address, "SHORT_PARENT", parent)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return parent


@pytest.fixture
def long_home(home: Home, short_parent: str) -> Home:
    return home_with_socket_path_of(home.root, address.MAX_SOCKET_PATH_BYTES + 1)


def test_the_longest_path_the_system_takes_is_used(home, short_parent):
    longest = home_with_socket_path_of(home.root, address.MAX_SOCKET_PATH_BYTES)
    assert len(longest.service_socket) == address.MAX_SOCKET_PATH_BYTES
    listening, _ = address.listen(longest)
    with listening:
        assert os.path.exists(longest.service_socket)
        assert os.listdir(short_parent) == []


def test_a_longer_path_is_replaced_by_a_short_private_one(long_home, short_parent):
    listening, _ = address.listen(long_home)
    with listening:
        (name,) = os.listdir(short_parent)
        assert name.startswith("memkit-")
        directory = os.path.join(short_parent, name)
        assert mode(directory) == 0o700
        assert mode(os.path.join(directory, "service.sock")) == 0o600
        assert_it_answers(long_home, listening, None)
    listening, _ = address.listen(long_home)  # in place of the stale one
    with listening:
        assert os.listdir(short_parent) != [name]
        assert len(os.listdir(short_parent)) == 1
        assert_it_answers(long_home, listening, None)
    address.remove(long_home)
    assert os.listdir(short_parent) == []
    with pytest.raises(FileNotFoundError):
        address.connect(long_home, 10)


def test_the_runtime_directory_of_the_user_comes_first(long_home, short_parent, tmp_path_factory, monkeypatch):
    own = Path(long_home.root).parent / "own"
    own.mkdir(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(own))
    with address.listen(long_home)[0] as listening:
        assert len(os.listdir(own)) == 1
        assert os.listdir(short_parent) == []
        assert_it_answers(long_home, listening, None)
    own.chmod(0o777)  # no place for a secret any more
    with address.listen(long_home)[0] as listening:
        assert len(os.listdir(short_parent)) == 1
        assert_it_answers(long_home, listening, None)


def test_a_file_system_without_sockets(home, short_parent, monkeypatch):
    bind = address._bind

    def refuse(path):
        if path == home.service_socket:
            raise OSError(errno.EOPNOTSUPP, "no sockets here", path)
        return bind(path)

    monkeypatch.setattr(address, "_bind", refuse)
    with address.listen(home)[0] as listening:
        assert_it_answers(home, listening, None)
    address.remove(home)
    assert os.listdir(short_parent) == []


def test_two_long_homes_have_separate_sockets_or_none(long_home, short_parent, monkeypatch):
    other = Home(long_home.root[:-1] + "y")
    sockets = [address.listen(one)[0] for one in (long_home, other)]
    assert address.socket_path(long_home) != address.socket_path(other)
    for one, listening in zip((long_home, other), sockets, strict=True):
        listening.close()
        address.remove(one)
    monkeypatch.setattr(address, "SHORT_PARENT", os.path.join(short_parent, "gone"))
    with pytest.raises(FileNotFoundError):
        address.listen(long_home)
    assert os.listdir(long_home.run) == []


def open_to_others(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o755)


def link(directory: Path) -> None:
    target = directory.with_name("target")
    target.mkdir(0o700)
    directory.symlink_to(target)


def file(directory: Path) -> None:
    directory.touch(0o600)


def of_another_user(directory: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root may give a directory away")
    directory.mkdir(0o700)
    os.chown(directory, 65534, 65534)


@pytest.mark.parametrize("lay", [open_to_others, link, file, of_another_user])
def test_a_short_directory_that_is_not_private_is_not_used(long_home, short_parent, lay):
    """Whoever takes the name of one that is gone gains nothing, and loses nothing."""
    address.listen(long_home)[0].close()
    directory = Path(address.socket_path(long_home)).parent
    Path(address.socket_path(long_home)).unlink()
    directory.rmdir()
    lay(directory)
    before = sorted(os.listdir(short_parent))
    with pytest.raises(PermissionError, match="not a private directory of this user"):
        address.connect(long_home, 10)
    address.remove(long_home)
    assert sorted(os.listdir(short_parent)) == before
    with address.listen(long_home)[0] as listening:
        assert Path(address.socket_path(long_home)).parent != directory
        assert_it_answers(long_home, listening, None)
    address.remove(long_home)
    assert sorted(os.listdir(short_parent)) == before
