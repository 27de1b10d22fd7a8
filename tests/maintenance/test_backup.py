"""The format of a backup. Any other file is refused as a whole."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from memkit.archive.archive import Archive
from memkit.errors import MemkitError, NewerFileError
from memkit.maintenance import backup
from memkit.maintenance.backup import BackedUpProject, Header, create, unpack
from memkit.maintenance.restore import open_backup
from memkit.paths import Home
from memkit.settings.load import Settings

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "backups"

HEADER = {
    "format": "memkit backup", "version": 1, "created": 1.0, "memkit": "0.1.0",
    "projects": [{"root": "/home/you/shop", "under_home": ""}],
}  # fmt: skip


def packed(members: list[tarfile.TarInfo | tuple[str, bytes]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            tar.addfile(info, io.BytesIO(member[1]))
    return zstandard.ZstdCompressor(write_checksum=True).compress(buffer.getvalue())


def whole(name: str, data: bytes = b"text", **header: object) -> bytes:
    """A valid backup with one member, except for what the test changes."""
    sums = {name: hashlib.sha256(data).hexdigest()}
    return packed(
        [
            ("memkit-backup.json", json.dumps({**HEADER, **header}).encode()),
            (name, data),
            ("checksums.json", json.dumps(sums).encode()),
        ]
    )


Try = Callable[[bytes], str]


@pytest.fixture
def complaint(tmp_path: Path) -> Try:
    def try_it(data: bytes) -> str:
        path, staging = tmp_path / "b.tar.zst", tmp_path / "staging"
        path.write_bytes(data)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        with pytest.raises((MemkitError, NewerFileError)) as raised:
            unpack(path, staging)
        outside = [one for one in tmp_path.rglob("*") if one not in (path, staging)]
        assert all(one.parent == staging and one.name.isdigit() for one in outside)
        return str(raised.value)

    return try_it


def test_a_file_comes_back_unchanged(tmp_path: Path) -> None:
    source, staging, path = tmp_path / "day", tmp_path / "staging", tmp_path / "b.tar.zst"
    source.write_bytes(bytes(range(256)) * 9000)
    staging.mkdir()
    name = "projects/0/memory/" + "ö" * 60 + "/2026-11-20.md"
    header = Header(5.0, "0.1.0", (BackedUpProject("/a/\udcff"),))
    with create(path, header) as writer:
        writer.add(name, source)
    found = unpack(path, staging)
    assert found.header == header
    assert found.members[name].read_bytes() == source.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [*tmp_path.glob(".*")] == []


def test_a_failed_backup_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "b.tar.zst"
    path.write_bytes(b"the one before")
    with pytest.raises(MemkitError, match="no backup was made"), create(path, Header(1, "", ())) as writer:
        writer.add("home/config.toml", tmp_path / "missing")
    assert path.read_bytes() == b"the one before"
    assert sorted(tmp_path.iterdir()) == [path]


def test_other_members_and_names_are_refused(complaint: Try) -> None:
    for name in (
        "../evil", "/etc/passwd", "home/../evil", "home/archive/../../evil", "home/archive/a/b",
        "home/run/service.json", "home/env/x", "home/config.toml/x", "home/projects/x/y.json",
        "home/spool/new/a.json", "home/run/live/a.json", "home/archive/.hidden",
        "projects/0/memory/../off", "projects/0/memory//a.md", "projects/0/memory/a\\..\\b",
        "projects/0/memory/.git/config", "projects/0/memory/.", "projects/1/memory/a.md",
        "projects/0/journal.lock", "projects/0/memory",
    ):  # fmt: skip
        assert "into a backup" in complaint(whole(name)), name
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        link = tarfile.TarInfo("home/archive/a")
        link.type, link.linkname = kind, "/etc/passwd"
        members = [("memkit-backup.json", json.dumps(HEADER).encode()), link]
        assert "is not a regular file" in complaint(packed(members))
    for name in ("..", ".", "a/b", "../x", "a\\b"):
        projects = [{"root": "/x", "under_home": name}]
        assert "not the name of a project" in complaint(whole("home/config.toml", projects=projects))


def test_a_truncated_or_changed_backup_is_refused(complaint: Try) -> None:
    data = whole("home/config.toml", b"k = 1\n" * 50)
    for end in range(0, len(data), max(1, len(data) // 23)):
        assert "damaged" in complaint(data[:end])
    header = ("memkit-backup.json", json.dumps(HEADER).encode())
    one = ("home/config.toml", b"k")
    end = ("checksums.json", json.dumps({"home/config.toml": hashlib.sha256(b"k").hexdigest()}).encode())
    for members, reason in (
        ([header, one, one, end], "twice"),
        ([header, one], "its end is missing"),
        ([header, ("home/config.toml", b"j"), end], "checksums do not match"),
        ([header, end], "checksums do not match"),
        ([header, one, ("home/ledger.jsonl", b""), end], "checksums do not match"),
        ([header, one, end, one], "after its end"),
        ([one, end], "does not begin as a backup"),
        ([("memkit-backup.json", b"[]"), end], "does not begin as a backup"),
    ):
        assert reason in complaint(packed(members))


def test_other_files_are_refused(complaint: Try, tmp_path: Path) -> None:
    assert "not a backup of memkit" in complaint(b"# a day\n")
    with pytest.raises(MemkitError, match="No such file"):
        unpack(tmp_path / "missing", tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MemkitError, match="not a regular file"):
        unpack(tmp_path / "pipe", tmp_path)


@pytest.fixture
def refused_unwritten(complaint: Try, tmp_path: Path) -> Try:
    """The error for a backup; nothing of it stays unpacked."""

    def try_it(data: bytes) -> str:
        said = complaint(data)
        assert [*(tmp_path / "staging").iterdir()] == []
        return said

    return try_it


def test_a_bomb_is_refused(refused_unwritten: Try) -> None:
    info = tarfile.TarInfo("home/archive/a")
    info.size = 6 * 10**9
    header = tarfile.TarInfo("memkit-backup.json")
    text = json.dumps(HEADER).encode()
    header.size = len(text)
    start = header.tobuf() + text.ljust(512, b"\0") + info.tobuf()
    data = zstandard.ZstdCompressor().compress(start + bytes(10**6))
    assert "unpacks to more than" in refused_unwritten(data)


def test_members_are_limited_in_number_and_size(refused_unwritten: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    start = ("memkit-backup.json", json.dumps(HEADER).encode())
    members = [(f"home/archive/{number}.jsonl.zst", bytes(3000)) for number in range(4)]
    giant, sparse = tarfile.TarInfo("home/archive/a"), tarfile.TarInfo("home/archive/a")
    giant.pax_headers = {"comment": "x" * 5_000_000}
    sparse.pax_headers = {"GNU.sparse.map": "0,1", "GNU.sparse.size": "100000000"}
    assert "more than its members announce" in refused_unwritten(packed([start, giant]))
    assert "is not a regular file" in refused_unwritten(packed([start, sparse]))
    monkeypatch.setattr(backup, "_ALWAYS_BYTES", 10_000)
    monkeypatch.setattr(backup, "_MAX_RATIO", 0)
    assert "unpacks to more than" in refused_unwritten(packed([start, *members]))
    monkeypatch.setattr(backup, "_MAX_MEMBERS", 3)
    assert "more than 3 files" in refused_unwritten(packed([start, *members]))
    assert refused_unwritten(whole("home/new-kind", version=2)).endswith("this one knows 1); update memkit")


def test_a_backup_larger_than_the_free_space_is_refused(refused_unwritten: Try, monkeypatch: pytest.MonkeyPatch) -> None:
    room = shutil.disk_usage("/")._replace(free=10)
    monkeypatch.setattr(backup.shutil, "disk_usage", lambda _: room)
    assert "make room" in refused_unwritten(whole("home/config.toml"))


def test_a_backup_of_an_earlier_version_can_be_restored(tmp_path: Path) -> None:
    """Version 0.1.0 wrote it, with a file of each kind that belongs in a backup."""
    home, root = Home(str(tmp_path / "home")), tmp_path / "shop"
    root.mkdir()
    with open_backup(home, FIXTURES / "0.1.0.tar.zst") as found:
        user, shop = found.header.projects
        assert user.is_user
        found.move({shop.root: str(root)})
        report = found.apply(force=False, with_settings=True, settings_of=lambda _: Settings())
    assert (report.written, report.skipped, report.problems) == (12, [], [])
    assert Path(home.memory, "MEMORY.md").read_text() == "# Memory\n\nI prefer tabs.\n"
    assert Path(root, ".memkit", "memory", "notes", "ö.md").read_text() == "# Note\n"
    assert Path(root, ".memkit", "off-times").read_text() == "1 2\n"
    assert Path(home.config_file).is_file()
    assert len(list(Archive(home).sessions())) == 1
    assert len(list(Path(home.replaced).glob("*/*.md"))) == 1
