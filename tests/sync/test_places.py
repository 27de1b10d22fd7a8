"""Places that are hostile, encrypted, or another host, and the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from memkit.errors import MemkitError
from memkit.hook.entries import OwnEntries, is_own_turn
from memkit.maintenance.places import digest, key_file, make_key, open_place
from memkit.paths import Home
from tests.builders import git
from tests.sync.machines import Machine, same

EVIL = "evil-0bad"
SHOP = "day {} git example.com/team/shop"


@pytest.fixture
def laptop(tmp_path: Path) -> Machine:
    (tmp_path / "place" / "machines" / EVIL / "objects").mkdir(parents=True)
    return Machine(tmp_path, "laptop", f"folder {tmp_path / 'place'}")


def plant(tmp_path: Path, text: bytes, **manifest: object) -> str:
    """Have the evil machine list an object; return its name."""
    folder, name = tmp_path / "place" / "machines" / EVIL, digest(text)
    (folder / "objects" / name[:2]).mkdir(exist_ok=True)
    (folder / "objects" / name[:2] / name).write_bytes(text)
    (folder / "manifest").write_text(json.dumps({"machine": EVIL, "objects": {SHOP.format("2026-03-04"): name}} | manifest))
    return name


DAY = b"# 2026-03-04\n\n## 10:00 Hi <!-- session:5e55 turn:abcd1234 -->\n**Answered** Hello.\n"


def test_nothing_in_a_place_is_trusted(laptop: Machine, tmp_path: Path) -> None:
    laptop.work(1)
    before = laptop.memory
    outside = tmp_path / "outside"
    outside.write_bytes(DAY)
    name = plant(tmp_path, DAY)
    path = tmp_path / "place" / "machines" / EVIL / "objects" / name[:2] / name
    for hostile in (
        lambda: path.unlink() or path.symlink_to(outside),
        lambda: path.unlink() or path.write_bytes(b"other bytes"),
        lambda: plant(tmp_path, DAY, objects={SHOP.format("../../x"): name}),
        lambda: plant(tmp_path, DAY, objects={SHOP.format("2026-03-04"): "../../../outside"}),
        lambda: plant(tmp_path, DAY, objects={"session ../x": name}),
        lambda: plant(tmp_path, DAY, forgotten={"turns": "all of them", "periods": [{"until": "x"}]}),
        lambda: plant(tmp_path, DAY, forgotten={"periods": [{"until": 9e12}]}),
        lambda: plant(tmp_path, DAY, forgotten={"turns": ["\ud800"]}),
        lambda: plant(tmp_path, DAY, objects={SHOP.format("9999-12-31"): digest(DAY)}),
        lambda: plant(tmp_path, DAY, version=99),
        lambda: plant(tmp_path, DAY.replace(b"-03-", b"-04-")),
        lambda: plant(tmp_path, b"\xff\xfe" + DAY),
        lambda: plant(tmp_path, b"\x28\xb5\x2f\xfd" + os.urandom(99), objects={"session 5e55": digest(b"\x28")}),
        lambda: os.truncate(tmp_path / "place" / "machines" / EVIL / "manifest", 65 * 1024 * 1024),
    ):  # fmt: skip
        hostile()
        for _ in range(2):  # it is reported until it is gone
            (problem,) = laptop.sync().problems
            assert "\n" not in problem
        assert laptop.memory == before
    (tmp_path / "place" / "machines" / EVIL / "manifest").unlink()
    (tmp_path / "place" / "machines" / "linked-0bad").symlink_to(tmp_path)
    laptop.sync()
    assert laptop.memory == before
    plant(tmp_path, DAY)  # at last, a fine one
    laptop.sync()
    assert "abcd1234" in laptop.turns
    assert not list(tmp_path.glob("**/x*"))


def test_nothing_outside_a_place_is_removed(laptop: Machine, tmp_path: Path) -> None:
    laptop.work(1)
    laptop.sync()
    (own,) = {one.name for one in (tmp_path / "place" / "machines").iterdir()} - {EVIL}
    objects = tmp_path / "place" / "machines" / own / "objects"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ("a" * 64)).write_text("keep me")
    (objects / "aa").symlink_to(tmp_path / "mine")
    (objects / "zz").mkdir()
    (objects / "zz" / "folder").mkdir()
    laptop.work(2)
    assert laptop.sync().sent
    assert (tmp_path / "mine" / ("a" * 64)).exists()
    (tmp_path / "mine" / "aa").mkdir()
    (tmp_path / "mine" / "aa" / ("a" * 64)).write_text("keep me")
    objects.rename(tmp_path / "moved")
    objects.symlink_to(tmp_path / "mine")  # as a place of another program is laid out
    laptop.work(3)
    with pytest.raises((MemkitError, OSError)):
        laptop.sync()
    assert (tmp_path / "mine" / "aa" / ("a" * 64)).exists()
    assert (tmp_path / "mine" / ("a" * 64)).read_text() == "keep me"


def test_a_repository_on_this_machine_runs_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    git(tmp_path, "init", "-q", "--bare", str(place))
    hook = place / "hooks" / "post-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    for url in (str(place), place.as_uri()):
        laptop = Machine(tmp_path / url.replace("/", "-"), "laptop", f"git {url}")
        laptop.work(1)
        assert laptop.sync().sent
    assert not (tmp_path / "ran").exists()


def test_a_place_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    laptop, desk = (Machine(tmp_path, name, f"folder {place}") for name in ("laptop", "desk"))
    laptop.work(1)
    laptop.sync()
    shutil.rmtree(place / "machines")
    laptop.work(2)
    laptop.sync()
    desk.sync()
    assert same(laptop, desk)


def test_a_stranger_keeps_no_turn_out(laptop: Machine, tmp_path: Path) -> None:
    desk = Machine(tmp_path, "desk", f"folder {tmp_path / 'place'}")
    desk.work(1)
    desk.sync()
    laptop.sync()
    turn = desk.work(2)
    plant(tmp_path, DAY.replace(b"abcd1234", turn.encode()))
    desk.sync()
    laptop.sync()
    assert "desk-2-answer" in dict(laptop.entries)[turn]


def test_what_a_place_brings_is_redacted_and_counts_as_no_own_entry(laptop: Machine, tmp_path: Path) -> None:
    secret = "AKIA" + "Q3EGRXYZ2LMNOPQR"
    plant(tmp_path, DAY.replace(b"Hello.", f"Hello. \x1b[31m {secret}".encode()))
    laptop.sync()
    (day,) = Path(laptop.project.memory).glob(f"*.{EVIL}.md")
    assert "redacted:" in day.read_text() and secret not in day.read_text() and "\x1b" not in day.read_text()
    own = OwnEntries(laptop.home, laptop.project.root)
    assert not is_own_turn("### " + day.read_text().split("## ", 1)[1], own)
    (Path(laptop.project.memory) / "2026-03-09.md").write_bytes(b"# 2026-03-09\n" + b"a " * 5_000_000)
    (problem,) = laptop.sync().problems
    assert "is larger than 8,000,000 bytes" in problem


@pytest.mark.parametrize("address", ["git ext::sh -c x", "git --upload-pack=x", "ssh -oProxyCommand=x", "ssh a b", "folder /missing/x", ""])
def test_an_address_runs_nothing(tmp_path: Path, address: str) -> None:
    with pytest.raises(MemkitError):
        open_place(address, Home(str(tmp_path)))


@pytest.mark.parametrize("kind", ["folder", "git"])
def test_an_encrypted_place_tells_nothing(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("pyrage")
    place = tmp_path / "place"
    place.mkdir()
    if kind == "git":
        subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    laptop, desk = (Machine(tmp_path, name, f"{kind}+age {place}") for name in ("laptop", "desk"))
    laptop.work(1)
    desk.work(2)
    make_key(laptop.home)
    key = Path(key_file(laptop.home))
    assert key.stat().st_mode & 0o777 == 0o600
    laptop.sync()
    make_key(desk.home)  # another key
    (problem,) = desk.sync().problems
    assert "not encrypted with the key of this machine" in problem
    Path(key_file(desk.home)).write_text(f"# created: today\n{key.read_text()}")
    for machine in (desk, laptop, desk):
        assert not machine.sync().problems
    assert same(laptop, desk)
    assert (laptop.sync().sent, desk.sync().sent) == (0, 0)
    if kind == "folder":
        for path in place.rglob("*"):
            assert path.is_dir() or path.read_bytes().startswith(b"age-encryption.org/v1")
        assert "shop" not in " ".join(map(str, place.rglob("*")))
        own, evil = place / "machines" / laptop.machine, place / "machines" / EVIL
        shutil.copytree(own, evil)
        laptop.work(3)
        laptop.sync()
        desk.sync()
        shutil.copy(evil / "manifest", own / "manifest")  # one that it had, and one of another machine
        assert sum("or older than" in problem for problem in desk.sync().problems) == 2


def test_places_can_change(laptop: Machine, tmp_path: Path) -> None:
    laptop.work(1)
    laptop.sync()
    (tmp_path / "other").mkdir()
    desk = Machine(tmp_path, "desk", f"folder {tmp_path / 'other'}")
    laptop.settings = desk.settings
    laptop.sync()
    desk.sync()
    assert same(laptop, desk)
