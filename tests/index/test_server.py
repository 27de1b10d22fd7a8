"""The index on a Chroma server and in Chroma Cloud: a real server, with a proxy in front of it."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import chromadb
import msgspec
import pytest
from chromadb.api.models.Collection import Collection

from memkit.doctor import open_subject
from memkit.doctor.index import check_server
from memkit.embedding.models import space
from memkit.errors import IndexStoreError
from memkit.index import is_up_to_date, read_files
from memkit.index import server as server_module
from memkit.index.catalog import collection_name
from memkit.index.mirror import delete_collection, waiting_chunks
from memkit.index.store import Store
from memkit.maintenance.backup import back_up
from memkit.maintenance.restore import open_backup
from memkit.paths import Home
from memkit.settings.load import Settings
from tests.chroma_server import ChromaServer, Proxy, chroma_server, free_port, silent_server
from tests.index.test_store import QUERIES, NoEmbedder, windows
from tests.memory import DAYS, FakeEmbedder, Memory, make_memory


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChromaServer]:
    with chroma_server(tmp_path_factory.mktemp("server")) as running:
        yield running


SLOW_SECONDS = 30.0
"""What a busy machine may take to answer."""


@pytest.fixture
def server(running: ChromaServer, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", SLOW_SECONDS)
    server_module.reset()
    return running.uri


def cloned(root: Path, server: str, *days: str, repository: str = "gateway", **files: str) -> Memory:
    """A clone of one repository, with a memory home of its own and these days."""
    memory = make_memory(root, {name: DAYS[name] for name in days} | files, index={"uri": server})
    git = ["git", "-C", memory.project.root]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "config", "user.name", f"Author {root.name}"], check=True)
    remote = ["remote", "add", "origin", f"https://example.com/team/{repository}.git"]
    subprocess.run([*git, *remote], check=True)
    return memory


def configure(memory: Memory, text: str) -> None:
    Path(memory.home.config_file).parent.mkdir(parents=True, exist_ok=True)
    Path(memory.home.config_file).write_text(text)


def collection_of(server: str, memory: Memory) -> Collection:
    name = collection_name(memory.project, memory.home, space(memory.settings.embedding))
    client = chromadb.HttpClient("127.0.0.1", int(server.rpartition(":")[2]))
    found = client.get_collection(name, embedding_function=None)
    client.close()
    return found


def rows_on(server: str, memory: Memory) -> dict[str, dict[str, Any]]:
    """All rows of the memory's collection, whoever wrote them: id to metadata."""
    got = collection_of(server, memory).get(include=["metadatas"])
    return dict(zip(got["ids"], [dict(one) for one in got["metadatas"] or []], strict=True))


def assert_costs_nothing(memory: Memory) -> None:
    memory.embedder = NoEmbedder()
    report = memory.sync(compare=True)
    assert (report.added, report.deleted, report.embedded, report.unsent) == (0, 0, 0, 0)


def test_server_tier(tmp_path: Path, server: str) -> None:
    """A server holds the same index, and gives it back without embedding anything."""
    embedded = make_memory(tmp_path, DAYS)
    embedded.embedder.window = 60  # type: ignore[union-attr]
    embedded.sync()
    home, chosen = Home(str(tmp_path / "other")), {"uri": server}
    remote = make_memory(tmp_path, home=home, index=chosen, embedder=FakeEmbedder(window=60))
    remote.sync()
    assert remote.contents() == embedded.contents()
    assert remote.answers(QUERIES) == embedded.answers(QUERIES)
    assert not Path(remote.home.index, "chroma").exists()

    shutil.rmtree(remote.home.index)  # nothing but the server is left
    remote.sync()
    assert remote.contents() == embedded.contents()

    remote.path("2026-11-19.md").unlink()
    remote.sync()
    embedded.sync()
    before = embedded.contents()
    assert remote.contents() == before
    assert_costs_nothing(remote)

    embedded.settings = remote.settings  # a new server is filled from the snapshot, which has the vectors
    files = read_files(embedded.project, embedded.home, embedded.settings)
    assert not is_up_to_date(embedded.snapshot, files, embedded.settings)
    embedded.embedder = NoEmbedder()
    embedded.sync()
    assert_costs_nothing(embedded)
    assert is_up_to_date(embedded.snapshot, files, embedded.settings)
    assert embedded.contents() == before
    assert len(rows_on(server, embedded)) >= len(before)


def test_an_appended_turn_reads_little(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHROMA_API_KEY", "ck-cloud")  # it goes to no other server than the cloud
    with closing(Proxy(server)) as proxy:
        memory = cloned(tmp_path / "one", proxy.uri, *DAYS, repository="appended")
        memory.sync()
        memory.write("2026-11-21.md", DAYS["2026-11-20.md"].replace("2026-11-20", "2026-11-21"))
        proxy.calls.clear()
        report = memory.sync()
        assert report.added
        assert (proxy.calls["get"], proxy.calls["query"], proxy.calls["upsert"]) == (1, 0, 1)
        assert_costs_nothing(memory)
        assert not any("ck-cloud" in str(one) for one in proxy.headers)


def test_two_homes_share_a_server(tmp_path: Path, server: str) -> None:
    first = cloned(tmp_path / "one", server, "2026-11-18.md", "2026-11-19.md")
    second = cloned(tmp_path / "two", server, "2026-11-19.md", "2026-11-20.md")
    first.sync()
    second.sync()
    contents = first.contents(), second.contents()
    assert contents[0].keys() & contents[1].keys()  # the day they have in common
    found = rows_on(server, first)
    assert found == rows_on(server, second)
    people = {(one["owner"], one["author"]) for one in found.values()}
    assert sorted(author for _, author in people) == ["Author one", "Author two"]
    assert len({owner for owner, _ in people}) == 2
    assert len(found) == len(contents[0]) + len(contents[1])
    for memory, before in zip((first, second, first), (*contents, contents[0]), strict=True):
        shutil.rmtree(Path(memory.home.index))  # only what the server has is left
        memory.embedder = FakeEmbedder()
        memory.sync()
        assert_costs_nothing(memory)
        assert memory.contents() == before

    first.path("2026-11-19.md").unlink()
    first.embedder = FakeEmbedder()
    assert first.sync().deleted == 3
    assert_costs_nothing(second)
    first.sync(rebuild=True)
    assert_costs_nothing(second)
    shutil.rmtree(Path(first.project.memory))
    first.sync()
    assert len(rows_on(server, second)) == len(contents[1])
    name = collection_name(second.project, second.home, space(second.settings.embedding))
    delete_collection(first.home, server, name)
    assert_costs_nothing(second)
    delete_collection(second.home, server, name)
    assert rows_on(server, second) == {}


def test_token(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings name a variable; its value opens the server, and stands nowhere else."""
    with closing(Proxy(server, "team-token")) as proxy:
        memory = cloned(tmp_path / "one", proxy.uri, *DAYS, repository="token")
        assert "refuses the token" in memory.sync().away
        assert proxy.refused == 1
        assert proxy.calls.total() == 0
        configure(memory, "index.token_env = 'TEAM_CHROMA'\n")
        assert "TEAM_CHROMA" in memory.sync().away
        monkeypatch.setenv("TEAM_CHROMA", "wrong-token")
        report = memory.sync()
        assert "refuses the token" in report.away
        assert "wrong-token" not in report.away
        monkeypatch.setenv("TEAM_CHROMA", "team-token")
        report = memory.sync()
        assert (report.away, report.unsent) == ("", 0)
        assert len(rows_on(server, memory)) == len(memory.contents())
        # In the background there are no variables of the user's shell: the user's settings have it.
        monkeypatch.delenv("TEAM_CHROMA")
        configure(memory, "keys.chroma = 'team-token'\nindex.token_env = 'TEAM_CHROMA'\n")
        memory.write("2026-11-21.md", "# 2026-11-21\n\nThe door code changes weekly.\n")
        assert memory.sync().away == ""
        for path in Path(memory.home.index).rglob("*"):
            assert not path.is_file() or b"team-token" not in path.read_bytes()
    with closing(Proxy(server, "team-token", "X-Team")) as proxy:
        memory.settings = msgspec.convert({"index": {"uri": proxy.uri}}, Settings)
        configure(memory, "keys.chroma = 'team-token'\nindex.token_header = 'X-Team'\n")
        assert memory.sync().away == ""


def test_managed_cloud(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chroma Cloud's header, tenant, and database; and its quotas for everything that memkit does there."""
    admin = chromadb.AdminClient(
        chromadb.Settings(
            chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host="127.0.0.1",
            chroma_server_http_port=int(server.rpartition(":")[2]),
        )
    )  # fmt: skip
    admin.create_tenant("team-7")
    admin.create_database("memory", "team-7")
    identity = {"user_id": "u", "tenant": "team-7", "databases": ["memory"]}
    with closing(Proxy(server, "ck-team", "X-Chroma-Token", identity)) as proxy:
        monkeypatch.setattr(server_module, "CLOUD_ADDRESS", proxy.uri)
        monkeypatch.delenv("CHROMA_API_KEY", raising=False)
        long = "".join(f"# Part {n}\n\n" + f"line {n} of a long file\n" * 9 for n in range(320))
        long += f"# {'A heading of any length ' * 300}\n\nby a stranger\n\n"
        long += "```\n" + "a line of code in a fence\n" * 900 + "```\n"
        memory = cloned(tmp_path / "one", "cloud", *DAYS, repository="cloud", **{"long.md": long})
        memory.embedder = FakeEmbedder(window=300)
        assert "Chroma Cloud needs a key; run `memkit config set keys.chroma`" in memory.sync().away
        configure(memory, "keys.chroma = 'ck-team'\n")
        report = memory.sync()
        assert (report.away, report.unsent) == ("", 0)
        assert report.chunks > 320
        assert max(map(windows, memory.snapshot.rows())) > 5
        assert set(proxy.places) == {"team-7/memory"}
        before = memory.contents()
        shutil.rmtree(Path(memory.home.index))
        memory.sync()
        assert memory.contents() == before
        assert_costs_nothing(memory)
        configure(memory, "keys.chroma = 'ck-team'\nindex.database = 'other'\n")
        assert "other" in memory.sync(compare=True).away  # there is no such database
        configure(memory, "keys.chroma = 'ck-team'\n")
        name = collection_name(memory.project, memory.home, space(memory.settings.embedding))
        delete_collection(memory.home, "cloud", name)
        assert proxy.calls["get"] > 4
        assert proxy.calls["upsert"] > 1
        assert proxy.calls["delete"] > 1
        assert proxy.violations == []
        assert proxy.most_at_once <= 10


def test_isolation_by_uri(tmp_path: Path, server: str) -> None:
    """Another server, or another database, holds nothing of this one."""
    port = int(server.rpartition(":")[2])
    settings = chromadb.Settings(
        chroma_api_impl="chromadb.api.fastapi.FastAPI", chroma_server_host="127.0.0.1",
        chroma_server_http_port=port,
    )  # fmt: skip
    chromadb.AdminClient(settings).create_database("second")
    memory = cloned(tmp_path / "one", server, *DAYS, repository="isolated")
    memory.sync()
    first = rows_on(server, memory)
    configure(memory, "index.database = 'second'\n")
    memory.settings = msgspec.convert({"index": {"uri": server, "database": "second"}}, Settings)
    memory.write("2026-11-21.md", "# 2026-11-21\n\nOnly the second database knows the door code.\n")
    memory.sync()
    assert rows_on(server, memory) == first
    client = chromadb.HttpClient("127.0.0.1", port, database="second")
    name = collection_name(memory.project, memory.home, space(memory.settings.embedding))
    second = client.get_collection(name, embedding_function=None)
    assert second.count() == len(memory.contents()) > len(first)
    # Both places are of one home: what it deletes in one stays in the other.
    shutil.rmtree(memory.project.memory)
    memory.sync()
    assert second.count() == 0
    client.close()
    assert rows_on(server, memory) == first


@pytest.mark.parametrize("state", ["refuses", "is silent"])
def test_without_the_server_everything_is_found_here(tmp_path: Path, state: str) -> None:
    server_module.reset()
    with silent_server() as silent:
        uri = silent if state == "is silent" else f"http://127.0.0.1:{free_port()}"
        memory = make_memory(tmp_path, DAYS, index={"uri": uri})
        started = time.monotonic()
        report = memory.sync()
        assert uri in report.away
        assert "\n" not in report.away
        assert report.unsent == report.chunks == len(memory.contents()) > 0
        assert memory.search("which port").results
        memory.write("2026-11-21.md", "# 2026-11-21\n\nThe door code changes weekly.\n")
        assert memory.sync().unsent == report.unsent + 1  # and is not asked again so soon
        assert time.monotonic() - started < 20  # Chroma's own client would wait forever
        with pytest.raises(IndexStoreError) as caught:
            Store(memory.home, uri, "memkit-test")
        assert uri in str(caught.value)


def test_what_the_server_missed_is_sent_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only that: nothing is embedded again, and rows that did not change are not read."""
    monkeypatch.setattr(server_module, "ANSWER_SECONDS", SLOW_SECONDS)
    (tmp_path / "data").mkdir()
    with chroma_server(tmp_path / "data") as running, closing(Proxy(running.uri)) as proxy:
        server_module.reset()
        memory = cloned(tmp_path / "one", proxy.uri, *DAYS)
        proxy.faults = 1.0
        assert memory.sync().unsent == len(memory.contents())
        proxy.faults = 0.0
        memory.embedder = NoEmbedder()
        server_module.reset()
        assert memory.sync().unsent == 0
        all_rows = len(memory.contents())
        assert len(rows_on(running.uri, memory)) == all_rows

        running.stop()
        memory.embedder = FakeEmbedder()
        memory.write("2026-11-21.md", "# 2026-11-21\n\nThe door code changes weekly.\n")
        memory.path("2026-11-18.md").unlink()
        report = memory.sync()
        assert report.unsent == 2  # an entry, and a file that is gone
        assert "502" in report.away
        memory.write("2026-11-22.md", "# 2026-11-22\n\nThe door code changed today.\n")
        assert memory.sync().unsent == 3

        server_module.reset()
        running.start()
        memory.embedder = NoEmbedder()
        proxy.calls.clear()
        report = memory.sync()
        assert (report.unsent, report.away) == (0, "")
        assert proxy.calls["get"] == 3  # one for each file that waited
        rows = rows_on(running.uri, memory)
        assert len(rows) == len(memory.contents()) < all_rows + 2
        assert not [one for one in rows.values() if "2026-11-18" in one["source"]]
        assert waiting_chunks(memory.snapshot.directory, memory.snapshot.entries) == 0
        assert_costs_nothing(memory)


def test_doctor_says_whether_the_server_answers_and_what_waits(tmp_path: Path, server: str) -> None:
    memory = cloned(tmp_path / "one", server, *DAYS, repository="doctor")
    configure(memory, f"index.uri = '{server}'\n")
    memory.sync()
    subject = open_subject(memory.home, memory.project)
    assert [*check_server(subject)] == []
    server_module.reset()
    away = f"http://127.0.0.1:{free_port()}"
    configure(memory, f"index.uri = '{away}'\n")
    memory.settings = msgspec.convert({"index": {"uri": away}}, Settings)
    waiting = memory.sync().unsent
    (found,) = check_server(open_subject(memory.home, memory.project))
    assert found.code == "server-away"
    assert f"{waiting} chunks" in found.what
    assert waiting == len(memory.contents())
    configure(memory, f"index.uri = '{server}'\n")  # it is back, and has not been sent anything
    (found,) = check_server(open_subject(memory.home, memory.project))
    assert found.code == "server-waiting"
    configure(memory, "index.uri = 'http://chroma.example.com:8000'\n")
    codes = [one.code for one in check_server(open_subject(memory.home, memory.project))]
    assert codes == ["server-unencrypted", "server-away"]


def test_a_restored_home_is_another_one(tmp_path: Path, server: str) -> None:
    """The machine of the backup may live on: two with one id would delete each other's rows."""
    memory = cloned(tmp_path / "one", server, *DAYS, repository="restored")
    memory.sync()
    backup = tmp_path / "backup.tar.zst"
    back_up(memory.home, [memory.project], backup)
    restored = cloned(tmp_path / "two", server, repository="restored")
    with open_backup(restored.home, backup) as found:
        found.move({memory.project.root: restored.project.root})
        found.apply(force=False, settings_of=lambda _: restored.settings)
    restored.sync()
    assert restored.contents().keys() == memory.contents().keys()
    assert Path(restored.home.owner).read_text() != Path(memory.home.owner).read_text()
    assert len(rows_on(server, restored)) == len(rows_on(server, memory)) == len(memory.contents())
    assert_costs_nothing(memory)
