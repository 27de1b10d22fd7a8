"""A host behind a real sshd on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from memkit.errors import MemkitError
from memkit.maintenance.places import make_repository
from tests.sync.machines import Machine, same

SSHD = shutil.which("sshd", path=os.environ["PATH"] + os.pathsep + "/usr/sbin")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder in which commands on the host run."""
    if SSHD is None or not (os.geteuid() or Path("/run/sshd").is_dir()):
        pytest.skip("no sshd")
    folder, keys = tmp_path / "host", tmp_path / "keys"
    folder.mkdir()
    keys.mkdir()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(keys / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (keys / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1\nPort {port}\nHostKey {keys}/host\nAuthorizedKeysFile {keys}/user.pub\n"
        f"PidFile none\nStrictModes no\nUsePAM no\nForceCommand cd {folder} && sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
    )
    (keys / "config").write_text(
        f"Host vault\n HostName 127.0.0.1\n Port {port}\n IdentityFile {keys}/user\n IdentitiesOnly yes\n"
        f" StrictHostKeyChecking no\n UserKnownHostsFile {keys}/known\n"
    )
    wrapper = keys / "ssh"  # ssh reads its configuration from the user's real home
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {keys}/config "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{keys}{os.pathsep}{os.environ['PATH']}")
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(keys / "sshd_config")], stderr=subprocess.PIPE)
    assert server.stderr is not None
    assert b"listening" in server.stderr.readline()
    yield folder
    server.terminate()
    server.communicate()


def test_three_machines_through_ssh(host: Path, tmp_path: Path) -> None:
    machines = [Machine(tmp_path, name, "ssh vault") for name in ("laptop", "desk", "server")]
    laptop, desk, _ = machines
    make_repository("vault")
    for number, machine in enumerate(machines):
        machine.work(number)
    for machine in [*machines, *machines]:
        assert not machine.sync().problems
    assert same(*machines)
    desk.forget(laptop.turns[0])
    for machine in [*machines, *machines]:
        assert not machine.sync().problems
    assert same(*machines)


def test_a_host_that_is_away(tmp_path: Path, host: Path) -> None:
    laptop = Machine(tmp_path, "laptop", "ssh nowhere.invalid")
    laptop.work(1)
    with pytest.raises(MemkitError, match="git could not reach the place"):
        laptop.sync()
