"""The page: its link, its files, and attacks on both."""

from __future__ import annotations

import re
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import pytest
from starlette.testclient import TestClient

from memkit.errors import MemkitError
from memkit.serve import link as module
from memkit.serve.app import make_app
from memkit.serve.keys import Keys
from memkit.serve.link import SECONDS, Link, LinkError, redeem
from memkit.serve.server import LOOPBACK
from tests.memory import DAYS, Memory, make_memory
from tests.serve.conftest import Client, front_door
from tests.serve.running import RunningServer, run
from tests.service.running import wait_until


@pytest.fixture
def link() -> Link:
    return Link()


@pytest.fixture
def page(memory: Memory, keys: Keys, link: Link) -> Iterator[TestClient]:
    """A browser at the page, without a key; the memory home has none either."""
    app = make_app(lambda: front_door(memory), keys, LOOPBACK, 600, [link])
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def take_key(page: TestClient, link: Link) -> dict[str, str]:
    taken = page.post("/page/key", json={"token": link.token})
    assert taken.status_code == 200
    return {"Authorization": f"Bearer {taken.json()['key']}"}


def test_the_token_becomes_a_key_that_may_write(page: TestClient, link: Link, memory: Memory) -> None:
    assert page.get("/timeline").status_code == 401
    taken = page.post("/page/key", json={"token": link.token})
    assert taken.json()["project"] == {"name": "project", "root": "project"}
    own = {"Authorization": f"Bearer {taken.json()['key']}"}
    assert page.get("/timeline", headers=own).status_code == 200
    assert page.get("/overview", headers=own).status_code == 200
    assert page.get("/jobs", headers=own).status_code == 403
    assert not Path(memory.home.serve_keys).exists()
    for path in Path(memory.home.root).rglob("*"):
        with suppress(OSError):  # a directory, or gone: the index is being prepared
            data = path.read_bytes()
            assert taken.json()["key"].encode() not in data
            assert link.token.encode() not in data


def test_a_link_works_after_a_failure(keys: Keys, link: Link, memory: Memory) -> None:
    def fail_once() -> Memory:
        if not failures:
            failures.append("busy")
            raise MemkitError("the memory is busy")
        return memory

    failures: list[str] = []
    app = make_app(lambda: front_door(fail_once()), keys, LOOPBACK, 600, [link])
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        wait_until(lambda: client.get("/health").json()["status"] == "SERVING", "the memory is open")
        failures.clear()
        assert client.post("/page/key", json={"token": link.token}).status_code == 422
        take_key(client, link)


def test_the_page_erases_what_its_dry_run_listed_and_once(page: TestClient, link: Link, memory: Memory) -> None:
    page.headers.update(take_key(page, link))
    kept, gone = (page.post("/memory/store", json={"text": text}).json()["id"] for text in ("Keep.", "Go."))
    assert page.delete(f"/memory/{gone}").status_code == 403
    first = page.delete(f"/memory/{gone}", params={"dry_run": True}).json()
    assert (first["erased"], first["notes"]) == (False, [gone])
    shown = page.delete(f"/memory/{gone}", params={"dry_run": True}).json()["confirmation"]
    # Another ID erases nothing else.
    erased = page.delete(f"/memory/{kept}", params={"confirmation": shown})
    assert (erased.status_code, erased.json()["notes"]) == (200, [gone])
    for used in (shown, first["confirmation"], "x", ""):
        assert page.delete(f"/memory/{kept}", params={"confirmation": used}).status_code == 403
    shown = page.delete(f"/memory/{kept}", params={"dry_run": True}).json()["confirmation"]
    for one in ("x", shown):  # a wrong one takes the right one away
        assert page.delete(f"/memory/{kept}", params={"confirmation": one}).status_code == 403
    assert page.get(f"/memory/{kept}").status_code == 200
    assert page.get(f"/memory/{gone}").status_code == 404



def test_a_file_may_open_the_page_and_no_other_site_may_load_it(page: TestClient) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    assert page.get("/", headers={**foreign, "Sec-Fetch-Dest": "document"}).status_code == 200
    assert page.get("/", headers={**foreign, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert page.get("/page/app.js", headers={**foreign, "Sec-Fetch-Dest": "document"}).status_code == 403


def test_a_token_that_comes_twice_locks_the_page(page: TestClient, link: Link) -> None:
    own = take_key(page, link)
    again = page.post("/page/key", json={"token": link.token})
    assert again.status_code == 403
    assert "opened twice" in again.json()["detail"]
    assert page.get("/timeline", headers=own).status_code == 401
    assert page.post("/page/key", json={"token": link.token}).status_code == 403


def test_of_many_at_once_one_at_most_gets_a_key(link: Link) -> None:
    found: list[str] = []
    barrier = threading.Barrier(8)

    def take() -> None:
        barrier.wait()
        try:
            found.append(redeem([link], link.token))
        except LinkError:
            pass

    threads = [threading.Thread(target=take) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(found) == 1
    assert link.find(found[0]) is None  # the others were seven too many


def test_a_token_has_its_time() -> None:
    now = [0.0]
    late = Link(lambda: now[0])
    now[0] = SECONDS + 1
    with pytest.raises(LinkError, match="too old"):
        late.redeem()
    early = Link(lambda: now[0])
    now[0] += SECONDS - 1
    secret = early.redeem()
    now[0] += 100 * SECONDS  # the key has no such end
    assert early.find(secret) is not None


def test_another_token_is_refused_and_spends_nothing(page: TestClient, link: Link) -> None:
    for other in (link.token[:-1], link.token + "A", link.token.swapcase(), "x"):
        refused = page.post("/page/key", json={"token": other})
        assert refused.status_code == 403
        assert link.token not in refused.text
    take_key(page, link)
    answers = [page.post("/page/key", json={"token": "x"}).status_code for _ in range(70)]
    assert (answers[0], answers[-1]) == (403, 429)  # guesses are limited


def test_tokens_are_compared_in_constant_time(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []
    real = module.hmac.compare_digest

    def compare(one: str, other: str) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(module.hmac, "compare_digest", compare)
    with pytest.raises(LinkError):
        redeem([link], "é" * 10)
    assert len(compared) == 1
    assert all(len(one) == 64 for one in compared[0])  # hashes: not even the length tells


def test_a_foreign_page_or_form_gets_no_key(page: TestClient, link: Link) -> None:
    foreign = {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Host": "evil.example"}
    for headers in foreign:
        assert page.post("/page/key", json={"token": link.token}, headers=headers).status_code in (403, 421)
        assert page.get("/", headers=headers).status_code in (403, 421)
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        body = f'{{"token": "{link.token}"}}'
        assert page.post("/page/key", content=body, headers={"Content-Type": kind}).status_code == 415
    take_key(page, link)


def test_a_server_without_a_page_gives_no_key(connect: Client) -> None:
    refused = connect("").post("/page/key", json={"token": "x"})
    assert refused.status_code == 403
    assert "--open" in refused.json()["detail"]


def test_the_page_searches_as_one_types(memory: Memory, keys: Keys, link: Link) -> None:
    app = make_app(lambda: front_door(memory), keys, LOOPBACK, 5, [link])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        own = take_key(client, link)
        for _ in range(20):
            assert client.get("/timeline", headers=own).status_code == 200


def test_the_files_need_no_key_and_run_nothing_foreign(page: TestClient) -> None:
    for path, kind in (("/", "text/html"), ("/page/index.html", "text/html")):
        found = page.get(path)
        assert found.status_code == 200
        assert found.headers["content-type"].startswith(kind)
        policy = dict(part.split(" ", 1) for part in found.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["require-trusted-types-for"] == "'script'"
        assert policy["trusted-types"] == "'none'"
        assert "unsafe" not in found.headers["content-security-policy"]
        assert found.headers["cross-origin-opener-policy"] == "same-origin"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["x-content-type-options"] == "nosniff"
        assert found.headers["cache-control"] == "no-store"
    text = page.get("/").text.lower()  # nothing is inline
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+\s*=|\sstyle\s*=|javascript:|(?:src|href)=\W?https?:", text)


def test_no_other_file_is_served(page: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memkit.serve import browser as served

    for name in (
        "../app.py", "..%2Fapp.py", "%2e%2e%2fapp.py", "..%5capp.py", "app.js%00", "app.css%0d%0aX: y", "/etc/passwd",
        "%2Fetc%2Fpasswd", "INDEX.HTML", "app.js.map", "x" * 41, "é",
    ):  # fmt: skip
        found = page.get(f"/page/{name}")
        assert found.status_code in (404, 422), name
        assert "import" not in found.text
    monkeypatch.setattr(served, "DIRECTORY", str(tmp_path))
    assert page.get("/").status_code == 404
    (tmp_path / "app.js").mkdir()
    assert page.get("/page/app.js").status_code == 404


# A real server.


def opened(tmp_path: Path, *arguments: str) -> tuple[RunningServer, Path]:
    """`memkit serve --open` with a browser that writes the address that it is given."""
    memory = make_memory(tmp_path, DAYS)
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{seen}.new" && mv "{seen}.new" "{seen}"\n')
    browser.chmod(stat.S_IRWXU)
    return RunningServer(memory, "--open", *arguments, BROWSER=f"{browser} %s"), seen


def test_it_opens_the_browser_at_its_link(tmp_path: Path) -> None:
    server, seen = opened(tmp_path)
    try:
        wait_until(seen.exists, "the browser to open")
        file = Path(url2pathname(urlsplit(seen.read_text()).path))
        assert file.is_relative_to(server.memory.home.run)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        address, _, token = file.read_text().partition("url=")[2].rstrip('">\n').partition("/#token=")
        assert address == server.address
        (shown,) = re.findall(r"/#token=(\S+)", server.output)
        assert shown != token
        with httpx.Client(base_url=address, timeout=60) as browser:
            assert browser.get("/").status_code == 200
            key = browser.post("/page/key", json={"token": token}).json()["key"]
            assert not file.exists()
            # The user may open the other link as well.
            assert browser.post("/page/key", json={"token": shown}).status_code == 200
            browser.headers["Authorization"] = f"Bearer {key}"
            assert len(browser.get("/sessions").json()["sessions"]) == 3
        assert server.stop() == 0
        assert key not in server.output
        assert "key=page" in server.output
        assert token not in server.output
    finally:
        server.stop(signal.SIGKILL)
    log = Path(server.memory.home.log_file)
    assert not log.exists() or token not in log.read_text()


def test_a_page_that_nobody_opened_leaves_no_file(tmp_path: Path) -> None:
    server, seen = opened(tmp_path)
    try:
        wait_until(seen.exists, "the browser to open")
        assert list(Path(server.memory.home.run).glob("open-*"))
        assert server.stop() == 0
        assert not list(Path(server.memory.home.run).glob("open-*"))
    finally:
        server.stop(signal.SIGKILL)


def test_what_is_no_page(memory: Memory) -> None:
    """In a session the link would be shown; other machines get none."""
    refused = run(memory, "--open", "--port", "0", CLAUDECODE="1")
    assert (refused.returncode, "in the conversation" in refused.stderr) == (1, True)
    assert "token=" not in refused.stderr
    refused = run(memory, "--open", "--host", "0.0.0.0", "--port", "0")
    assert (refused.returncode, "this machine only" in refused.stderr) == (1, True)
