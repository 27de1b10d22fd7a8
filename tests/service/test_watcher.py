"""The watcher, on real files."""

from __future__ import annotations

import errno
import gc
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memkit.paths import Home
from memkit.projects.project import Project
from memkit.service import watcher as watcher_module
from memkit.service.watcher import Watcher
from memkit.settings import Settings, WatchSettings
from tests.ci import only_in_ci

GENEROUS_SECONDS = 60.0
MEMORY = Path(".memkit", "memory")


class Watched:
    """A project under watch, and what is told of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.memory = root / MEMORY
        self.reported: queue.Queue[str] = queue.Queue()
        self.watcher = Watcher(self.reported.put)

    def watch(self, *paths: Path | str, exclude: tuple[str, ...] = ()) -> None:
        self.watcher.watch(str(self.root), [Path(p) for p in paths or [MEMORY]], exclude)

    def write(self, name: str, text: str = "text") -> Path:
        path = self.memory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def expect(self, root: Path | None = None) -> None:
        while self.reported.get(timeout=GENEROUS_SECONDS) != str(root or self.root):
            pass

    def expect_all(self) -> int:
        """It is told, how often in all."""
        self.expect()
        return 1 + len(self.drain())

    def drain(self) -> list[str]:
        """What is told of changes up to now: all that comes before a last change elsewhere."""
        last = self.root.parent / "last"
        if str(last) not in roots(self.watcher):
            last.mkdir(exist_ok=True)
            self.watcher.watch(str(last), [Path(".")])
        replace(last / "last.md", os.urandom(8).hex(), "last.tmp")
        return list(iter(lambda: self.reported.get(timeout=GENEROUS_SECONDS), str(last)))


def roots(watcher: Watcher) -> list[str]:
    return list(watcher._memories)


def refuse(number: int) -> Callable[[Watcher], None]:
    """Return what stands in for an observer that cannot be started."""

    def fail(watcher: Watcher) -> None:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "LIST_SECONDS", 0.03)


@pytest.fixture(params=["events", "listing"])
def watched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    """A project that is watched by events as far as they go, or by listing alone."""
    root = tmp_path.resolve() / "project"
    root.mkdir()
    if request.param == "listing":
        monkeypatch.setattr(Watcher, "_start_observer", refuse(errno.ENOSPC))
    watched = Watched(root)
    try:
        yield watched
    finally:
        watched.watcher.close()


@pytest.fixture
def busy(watched: Watched) -> Watched:
    for name in ("a.md", "b.markdown", "deep/c.md"):
        watched.write(name)
    watched.watch()
    return watched


def replace(path: Path, text: str, temporary: str) -> None:
    beside = path.with_name(temporary)
    beside.write_text(text)
    os.replace(beside, path)


def edit_in_secret(path: Path) -> None:
    """Change the content, but neither the size nor the time of modification."""
    before = path.stat()
    path.write_text("TEXT")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("more")


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "create": lambda memory, away: (memory / "new.md").write_text("new"),
    "edit": lambda memory, away: (memory / "a.md").write_text("EDIT"),
    "edit in secret": lambda memory, away: edit_in_secret(memory / "a.md"),
    "append": lambda memory, away: append(memory / "deep" / "c.md"),
    "empty": lambda memory, away: (memory / "b.markdown").write_text(""),
    "delete": lambda memory, away: (memory / "a.md").unlink(),
    "rename": lambda memory, away: (memory / "a.md").rename(memory / "z.md"),
    "rename to what is no memory": lambda memory, away: (memory / "a.md").rename(memory / "a.bak"),
    "vim": lambda memory, away: (
        (memory / "4913").touch(), (memory / "4913").unlink(), (memory / "a.md").rename(memory / "a.md~"),
        (memory / "a.md").write_text("text"), (memory / "a.md~").unlink(),
    ),
    "emacs": lambda memory, away: replace(memory / "a.md", "text", "#a.md#"),
    "visual studio code": lambda memory, away: replace(memory / "a.md", "text", ".a.md.tmp"),
    "move a file out": lambda memory, away: (memory / "a.md").rename(away / "a.md"),
    "move a file in": lambda memory, away: (away / "in.md").rename(memory / "in.md"),
    "move a directory out": lambda memory, away: (memory / "deep").rename(away / "deep"),
    "move a directory in": lambda memory, away: (away / "tree").rename(memory / "tree"),
    "rename a directory": lambda memory, away: (memory / "deep").rename(memory / "other"),
    "hide a directory": lambda memory, away: (memory / "deep").rename(memory / ".deep"),
    "a deep tree": lambda memory, away: shutil.copytree(away / "tree", memory / "x" / "y" / "z"),
    "delete a tree": lambda memory, away: shutil.rmtree(memory / "deep"),
    "delete all": lambda memory, away: shutil.rmtree(memory.parent),
    "move all": lambda memory, away: memory.parent.rename(away / "all"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changes(busy: Watched, tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if change != "move all" and "events" in tmp_path.name:  # without an event, as none is sent
        monkeypatch.setattr(busy.watcher, "_debounce_ms", 30)
        monkeypatch.setattr(watcher_module, "LIST_SECONDS", 3600.0)
        busy.drain()
    away = tmp_path / "away"
    (away / "tree" / "below").mkdir(parents=True)
    (away / "in.md").write_text("in")
    (away / "tree" / "below" / "x.md").write_text("x")
    CHANGES[change](busy.memory, away)
    busy.expect()


def test_irrelevant_files_are_not_reported(busy: Watched) -> None:
    for name in (".a.md.swp", "4913", "a.md~", ".#a.md", "#a.md#", "a.md.tmp", ".hidden/x.md", "x.txt"):
        busy.write(name)
        (busy.memory / name).unlink()
    (busy.memory / "empty").mkdir()
    (busy.root / "README.md").write_text("not in the memory")
    (busy.memory / "a.md").read_text()
    os.listdir(busy.memory)
    assert busy.drain() == []


def test_excluded(watched: Watched) -> None:
    watched.write("a.md")
    watched.watch(exclude=("drafts/", "*.tmp.md"))
    watched.write("drafts/b.md")
    watched.write("c.tmp.md")
    assert watched.drain() == []
    watched.write("d.md")
    watched.expect()


@only_in_ci
def test_five_hundred_files_are_few_bursts(busy: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watcher_module, "LIST_SECONDS", 0.5)

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        subprocess.run(["git", "-C", busy.root, *identity, *arguments], check=True, capture_output=True)

    git("init", "-q", "-b", "one")
    git("add", ".")
    git("commit", "-q", "-m", "one")
    git("checkout", "-q", "-b", "two")
    for number in range(500):
        busy.write(f"{number % 7}/{number}.md", f"{number}")
    git("add", ".")
    git("commit", "-q", "-m", "two")
    busy.expect_all()
    git("checkout", "-q", "one")
    assert busy.expect_all() < 20
    git("checkout", "-q", "two")
    assert busy.expect_all() < 20


def test_a_memory_that_comes_and_goes(watched: Watched) -> None:
    watched.watch()
    for _ in range(2):
        watched.write("deep/a.md")
        watched.expect_all()
        watched.write("deep/a.md", "edited")
        watched.expect_all()
        shutil.rmtree(watched.root / ".memkit")
        watched.expect_all()


def test_a_memory_deleted_and_created_again_or_replaced_in_one_burst(busy: Watched, tmp_path: Path) -> None:
    shutil.rmtree(busy.root / ".memkit")
    (busy.memory / "deep").mkdir(parents=True)  # many a file system gives it the same inodes
    busy.expect_all()
    busy.write("deep/d.md", "in the new one")
    busy.expect_all()
    (tmp_path / "new" / "memory" / "deep").mkdir(parents=True)
    (busy.root / ".memkit").rename(tmp_path / "old")
    (tmp_path / "new").rename(busy.root / ".memkit")
    busy.expect_all()
    busy.write("deep/d.md", "in the new one")
    busy.expect_all()
    busy.memory.rename(tmp_path / "away")
    busy.expect_all()
    (tmp_path / "away").rename(busy.memory)
    busy.expect_all()
    busy.write("a.md", "edited")
    busy.expect()


@pytest.mark.parametrize("watched", ["events"], indirect=True)
def test_a_file_that_comes_and_goes_in_one_burst(busy: Watched) -> None:
    """A search between the two may have had it indexed."""
    busy.drain()
    busy.write("short-lived.md").unlink()
    busy.expect()


def test_links(watched: Watched) -> None:
    real = watched.root / ".elsewhere" / "notes"
    for name in ("one", "two"):
        (real / name).mkdir(parents=True)
    (real / "one" / "a.md").write_text("a")
    (real / ".store").mkdir()
    (real / ".store" / "b.md").write_text("b")
    (real / "shown").symlink_to(real / ".store")
    (watched.root / "notes").symlink_to(real)
    watched.watch("notes")
    (real / "one" / "a.md").write_text("edited")
    watched.expect()
    (real / ".store" / "c.md").write_text("through a link")
    watched.expect()
    (watched.root / "notes").unlink()
    watched.expect()
    (watched.root / "notes").symlink_to(real / "one")
    watched.expect()
    (real / "one" / "d.md").write_text("after the link was set anew")
    watched.expect()


def test_a_loop_of_links_ends(busy: Watched) -> None:
    (busy.memory / "deep" / "up").symlink_to(busy.memory)
    (busy.memory / "deep" / "self").symlink_to("self")
    busy.write("a.md", "edited")
    busy.expect()


def test_single_files(watched: Watched, tmp_path: Path) -> None:
    outside = tmp_path.resolve() / "outside.md"
    inside = watched.root / "README.md"
    outside.write_text("outside")
    watched.watch(outside, "README.md")
    (watched.root / "other.md").write_text("other")
    (tmp_path / "other.md").write_text("other")
    assert watched.drain() == []
    inside.write_text("inside")
    watched.expect()
    replace(outside, "replaced", "outside.md.tmp")
    watched.expect()
    inside.unlink()
    watched.expect()
    inside.write_text("again")
    watched.expect()


def test_paths_are_replaced_and_dropped(watched: Watched) -> None:
    for name in ("one", "two"):
        (watched.root / name).mkdir()
    watched.watch("one")
    watched.watch("two")
    watched.watch("two")
    (watched.root / "one" / "a.md").write_text("a")
    assert watched.drain() == []
    (watched.root / "two" / "a.md").write_text("a")
    watched.expect_all()
    watched.watcher.unwatch(str(watched.root))
    watched.watcher.unwatch(str(watched.root))
    (watched.root / "two" / "b.md").write_text("b")
    assert watched.drain() == []
    assert roots(watched.watcher) == [str(watched.root.parent / "last")]


def test_projects_that_share_a_directory(watched: Watched, tmp_path: Path) -> None:
    shared = tmp_path.resolve() / "shared"
    other = tmp_path.resolve() / "other"
    for directory in (shared, other):
        directory.mkdir()
    watched.watch(shared)
    watched.watcher.watch(str(other), [shared / "a.md"])
    replace(shared / "a.md", "a", "a.tmp")
    assert {watched.reported.get(timeout=GENEROUS_SECONDS) for _ in range(2)} == {
        str(watched.root), str(other),
    }  # fmt: skip
    watched.watcher.unwatch(str(watched.root))
    (shared / "a.md").write_text("edited")
    watched.expect(other)


def test_a_change_during_the_call_leads_to_another(tmp_path: Path) -> None:
    memory = tmp_path / MEMORY
    memory.mkdir(parents=True)
    called, finish = queue.Queue[str](), threading.Event()

    def changed(root: str) -> None:
        called.put(root)
        assert finish.wait(GENEROUS_SECONDS)
        raise ValueError("which does not end the watching")

    watcher = Watcher(changed)
    try:
        watcher.watch(str(tmp_path), [MEMORY])
        (memory / "a.md").write_text("a")
        called.get(timeout=GENEROUS_SECONDS)
        (memory / "a.md").write_text("edited while it runs")
        finish.set()
        called.get(timeout=GENEROUS_SECONDS)
    finally:
        finish.set()
        watcher.close()


def test_a_drive_that_hangs_stops_no_other_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, other = str(tmp_path / "slow"), str(tmp_path / "other")
    hangs, release = threading.Event(), threading.Event()
    list_files = watcher_module._list_files

    def hang(root: str, memory: watcher_module._Memory) -> dict[str, tuple[int, ...]]:
        if root == slow and threading.current_thread().name == "watcher":
            hangs.set()
            assert release.wait(GENEROUS_SECONDS)
        return list_files(root, memory)

    monkeypatch.setattr(watcher_module, "_list_files", hang)
    watcher = Watcher(print)
    try:
        watcher.watch(slow, [MEMORY])
        assert hangs.wait(GENEROUS_SECONDS)
        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(watcher.watch, other, [MEMORY]).result(GENEROUS_SECONDS / 2)
                pool.submit(watcher.unwatch, slow).result(GENEROUS_SECONDS / 2)
            finally:
                release.set()
        assert roots(watcher) == [other]
    finally:
        watcher.close()


def test_the_callback_may_change_what_is_watched(tmp_path: Path) -> None:
    root, closed = tmp_path.resolve(), threading.Event()

    def changed(root: str) -> None:
        watcher.watch(root, [Path("notes")])
        watcher.unwatch(root)
        watcher.close()
        closed.set()

    watcher = Watcher(changed)
    watcher.watch(str(root), [Path(".")])
    (root / "a.md").write_text("a")
    assert closed.wait(GENEROUS_SECONDS)
    watcher.close()
    assert roots(watcher) == []


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_closed_watcher_leaves_nothing_open(tmp_path: Path) -> None:
    def in_use() -> set[object]:
        return {*threading.enumerate(), *os.listdir("/proc/self/fd")}

    Watcher(print).close()
    gc.collect()  # earlier tests may have left some that end meanwhile
    before = in_use()
    watcher = Watcher(print)
    for name in ("one", "two"):
        (tmp_path / name / "a").mkdir(parents=True)
        watcher.watch(str(tmp_path / name), [Path("a"), Path("b.md")])
    assert any(isinstance(one, threading.Thread) for one in in_use() - before)
    watcher.close()
    watcher.close()
    assert in_use() <= before
    with pytest.raises(RuntimeError):
        watcher.watch(str(tmp_path), [])


def test_changes_are_found_where_it_cannot_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (errno.EMFILE, errno.EACCES):
        monkeypatch.setattr(Watcher, "_start_observer", refuse(number))
        watched = Watched(tmp_path)
        caplog.clear()
        try:
            watched.watch()
            watched.write(f"{number}.md")
            watched.expect()
        finally:
            watched.watcher.close()
        assert "changes are found only every 0.03 s" in caplog.text


def test_a_stream_of_changes_is_reported_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "LIST_SECONDS", 0.2)  # shorter than the pause that ends a burst
    watched = Watched(tmp_path)
    watched.watch(".")
    done = threading.Event()

    def change() -> None:
        while not done.wait(0.01):
            append(tmp_path / "a.md")

    writer = threading.Thread(target=change)
    writer.start()
    try:
        watched.expect()
        watched.expect()
    finally:
        done.set()
        writer.join()
        watched.watcher.close()


def test_the_pause_that_ends_a_burst_is_a_setting(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    settings = Settings(watch=WatchSettings(debounce_ms=20))
    watched.write("a.md")
    try:
        watched.watcher.watch_memory(Project(str(tmp_path)), Home(str(tmp_path / "home")), settings)
        assert watched.watcher._debounce_ms == 20
        watched.write("b.md")
        watched.expect()
    finally:
        watched.watcher.close()


LIMITED = """
import queue, sys
from pathlib import Path
from memkit.service import watcher as module

Path("/proc/sys/user/max_inotify_watches").write_text("6")
module.LIST_SECONDS = 0.05
root, reported = Path(sys.argv[1]), queue.Queue()
watcher = module.Watcher(reported.put)
watcher.watch(str(root), [Path("notes")])
for number in range(10):
    (root / "notes" / str(number)).mkdir()
    (root / "notes" / str(number) / "a.md").write_text("a")
reported.get(timeout=60)
while True:
    try:
        reported.get(timeout=0.3)
    except queue.Empty:
        break
(root / "notes" / "9" / "a.md").write_text("edited where no watch is")
reported.get(timeout=60)
watcher.close()
"""


def test_the_real_limit(tmp_path: Path) -> None:
    """In a user namespace, whose limits are its own."""
    (tmp_path / "notes").mkdir()
    inside = ["unshare", "--user", "--map-root-user"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here")
    done = subprocess.run(
        [*inside, sys.executable, "-c", LIMITED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
