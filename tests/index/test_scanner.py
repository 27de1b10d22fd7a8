from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memkit.index.scanner import scan
from tests.ci import examples


def write(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def sources(root: Path, paths: Sequence[str] = (".",), exclude: Sequence[str] = ()) -> list[str]:
    return [file.source for file in scan(root, paths, exclude=exclude)]


def test_markdown_only_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path, "b.md", "a.markdown", "c/d.md", "C.MD", "e.txt", "md", "f.md.bak", "g.mdx", "a/z.md")
    assert sources(tmp_path) == ["C.MD", "a.markdown", "a/z.md", "b.md", "c/d.md"]
    for file in scan(tmp_path, ["."]):
        assert file.path == tmp_path / file.source


def test_only_configured_paths_and_each_file_once(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "docs/a.md", "docs/deep/b.md", "other/c.md", "docs/d.txt")
    assert sources(tmp_path, ["docs/deep", "README.md", "docs", "docs/../docs/a.md"]) == [
        "README.md", "docs/a.md", "docs/deep/b.md",
    ]  # fmt: skip
    assert sources(tmp_path, ["docs/d.txt"]) == []
    assert sources(tmp_path, []) == []


def test_hidden_files_are_skipped_except_configured_paths(tmp_path: Path) -> None:
    write(tmp_path, ".memkit/memory/2026-11-20.md", ".memkit/memory/.draft.md", ".memkit/memory/.git/x.md")
    write(tmp_path, ".hidden.md", ".github/a.md", "a.md")
    assert sources(tmp_path) == ["a.md"]
    assert sources(tmp_path, [".", ".memkit/memory", ".hidden.md"]) == [
        ".hidden.md", ".memkit/memory/2026-11-20.md", "a.md",
    ]  # fmt: skip


def test_a_path_outside_the_root_has_its_absolute_name(tmp_path: Path) -> None:
    write(tmp_path, "project/a.md", "shared/b.md")
    root, shared = tmp_path / "project", tmp_path / "shared"
    expected = sorted(["a.md", f"{shared.as_posix()}/b.md"])
    assert sorted(sources(root, [".", "../shared"])) == expected
    assert sorted(sources(root, [str(root), str(shared)])) == expected
    (tmp_path / "link").symlink_to(root)  # a root behind a link gives files the same names
    assert sources(tmp_path / "link", [str(root)]) == sources(tmp_path / "link") == ["a.md"]


def test_links_do_not_lead_outside(tmp_path: Path) -> None:
    write(tmp_path, "secret/s.md", "project/docs/a.md", "project/other.md", "project-secret/s.md")
    docs = tmp_path / "project/docs"
    (docs / "out").symlink_to(tmp_path / "secret")
    (docs / "out.md").symlink_to(tmp_path / "secret/s.md")
    (docs / "up.md").symlink_to("../other.md")
    (docs / "beside").symlink_to(tmp_path / "project-secret")
    (docs / "gone.md").symlink_to("nowhere.md")
    assert sources(tmp_path / "project", ["docs"]) == ["docs/a.md"]


def test_links_inside_are_followed_and_a_file_keeps_its_own_name(tmp_path: Path) -> None:
    write(tmp_path, "real/z.md", "real/.kept/k.md", "notes.txt", "directory.md/a.md")
    (tmp_path / "a.md").symlink_to("real/z.md")
    (tmp_path / "b").symlink_to("real")
    (tmp_path / "kept").symlink_to("real/.kept")
    (tmp_path / "text.md").symlink_to("notes.txt")
    os.mkfifo(tmp_path / "pipe.md")
    assert sources(tmp_path, [".", "pipe.md"]) == ["directory.md/a.md", "kept/k.md", "real/z.md", "text.md"]
    assert sources(tmp_path, ["kept"]) == ["kept/k.md"]


def test_link_loops_end(tmp_path: Path) -> None:
    write(tmp_path, "a/b/c.md")
    (tmp_path / "a/b/up").symlink_to("..")
    (tmp_path / "a/self").symlink_to("self")
    (tmp_path / "a/self.md").symlink_to("self.md")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    assert sources(tmp_path) == ["a/b/c.md"]
    assert sources(tmp_path, ["a/self", "one"]) == []


def test_a_configured_path_below_the_project_may_not_lead_out_of_it(tmp_path: Path) -> None:
    write(tmp_path, "private/a.md", "private/sub/b.md", "project/x.md")
    (tmp_path / "project/memory").symlink_to(tmp_path / "private")
    (tmp_path / "project/a.md").symlink_to(tmp_path / "private/a.md")
    assert sources(tmp_path / "project", ["memory", "memory/sub", "a.md"]) == []
    (tmp_path / "shortcut").symlink_to(tmp_path / "project")
    assert sources(tmp_path / "shortcut", ["x.md", "memory"]) == ["x.md"]
    absolute = str(tmp_path / "private")  # a person named it
    assert len(sources(tmp_path / "project", [absolute])) == 2


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ([], ["a.md", "docs/a.md", "docs/old/b.md", "docs/old/deep/c.md", "old.md"]),
        (["old"], ["a.md", "docs/a.md", "old.md"]),
        (["a.md"], ["docs/old/b.md", "docs/old/deep/c.md", "old.md"]),
        (["/a.md"], ["docs/a.md", "docs/old/b.md", "docs/old/deep/c.md", "old.md"]),
        (["old*"], ["a.md", "docs/a.md"]),
        (["old*/"], ["a.md", "docs/a.md", "old.md"]),
        (["docs/old/*.md"], ["a.md", "docs/a.md", "old.md"]),
        (["**/a.md"], ["docs/old/b.md", "docs/old/deep/c.md", "old.md"]),
        (["docs/"], ["a.md", "old.md"]),
        (["*"], []),
        (["[", "", "/"], ["a.md", "docs/a.md", "docs/old/b.md", "docs/old/deep/c.md", "old.md"]),
    ],
)
def test_exclude(tmp_path: Path, patterns: list[str], left: list[str]) -> None:
    write(tmp_path, "a.md", "old.md", "docs/a.md", "docs/old/b.md", "docs/old/deep/c.md")
    assert sources(tmp_path, exclude=patterns) == left
    assert sources(tmp_path, ["docs", "a.md", "old.md"], exclude=patterns) == left


def test_missing_paths_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert sources(tmp_path, ["nowhere", "x" * 5000, "a\0b"]) == []
    assert "nowhere" in caplog.text


def test_a_directory_that_cannot_be_read_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "a.md")
    # A path longer than the system takes is refused to every user, root included.
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=descriptor)
        deeper = os.open("d" * 250, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = deeper
    os.close(descriptor)
    assert sources(tmp_path) == ["a.md"]
    assert "cannot read " in caplog.text


def test_names_that_are_not_utf8_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "line\nbreak.md", "naïve 漢字.md")
    try:
        (tmp_path / os.fsdecode(b"latin-\xe9.md")).write_text("x")
        (tmp_path / os.fsdecode(b"dir-\xe9")).mkdir()
        (tmp_path / os.fsdecode(b"dir-\xe9") / "x.md").write_text("x")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    for _ in range(2):  # once each, however often they are listed
        assert sources(tmp_path) == ["line\nbreak.md", "naïve 漢字.md"]
    assert caplog.text.count("its name is not UTF-8") == 2


names = st.text("ab.", min_size=1, max_size=4).filter(lambda name: name.strip("."))


@settings(max_examples=examples(100))
@given(st.sets(st.lists(names, min_size=1, max_size=4).map(tuple), max_size=10))
def test_all_visible_files(tmp_path_factory: pytest.TempPathFactory, tree: set[tuple[str, ...]]) -> None:
    root = tmp_path_factory.mktemp("tree")
    write(root, *("/".join(f"{part}_" for part in path) + ".md" for path in sorted(tree)))
    visible = [path for path in tree if not any(part.startswith(".") for part in path)]
    assert sources(root) == sorted("/".join(f"{part}_" for part in path) + ".md" for path in visible)
