"""The examples of docs/integrations.md, run as they stand there."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from memkit.paths import Home
from memkit.serve.keys import Keys
from memkit.serve.server import HOST, PORT
from memkit.settings.validate import every_key
from tests.memory import DAYS, make_memory
from tests.serve.running import RunningServer, run

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "integrations.md"
EXAMPLES = re.findall(r"```sh\n(.*?)```", MANUAL.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    memory = make_memory(tmp_path_factory.mktemp("manual"), DAYS)
    Keys(memory.home).create("", "read")
    running = RunningServer(memory)
    yield running
    running.stop()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples use curl")
def test_the_examples(server: RunningServer) -> None:
    assert len(EXAMPLES) == 5
    _, key = Keys(server.memory.home).create("", "write")
    _, admin = Keys(server.memory.home).create("", "admin")
    variables = {"KEY": key, "ADMIN_KEY": admin, "ID": "", "PATH": "/usr/local/bin:/usr/bin:/bin"}
    answers = []
    for example in EXAMPLES:
        assert f"http://{HOST}:{PORT}" in example
        script = example.replace(f"http://{HOST}:{PORT}", server.address)
        done = subprocess.run(
            ["sh", "-euc", script], env=variables, capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert '"status":4' not in done.stdout, (example, done.stdout)
        answers.append(done.stdout)
        if found := re.match(r'\{"id":"(\w+)"', done.stdout):
            variables["ID"] = found[1]
    assert '"SERVING"' in answers[0]
    assert '"created":true' in answers[1]
    assert "7444" in answers[2]
    assert '"erased":false' in answers[3]
    assert '"session":"agent-run-1"' in answers[4]


# docs/compose.yaml and docs/Dockerfile: what they promise, and their steps in this Python


DOCUMENTS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCUMENTS / "compose.yaml").read_text()
COMPOSE = yaml.safe_load(TEXT)
SERVER = COMPOSE["services"]["memkit"]
IMAGE = (DOCUMENTS / "Dockerfile").read_text().replace("\\\n", " ")
COMMANDS = re.findall(r"^    (docker compose .*)$", (DOCUMENTS / "integrations.md").read_text(), re.MULTILINE)


class ServerInContainer(RunningServer):
    """As the published port reaches it."""

    @property
    def address(self) -> str:
        return super().address.replace("0.0.0.0", "127.0.0.1")


def of_image() -> dict[str, str]:
    (line,) = re.findall(r"^ENV (.*)$", IMAGE, re.MULTILINE)
    return dict(word.split("=", 1) for word in shlex.split(line))


def test_the_container_may_do_little_and_has_its_files() -> None:
    assert len(COMMANDS) == 3
    assert SERVER["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert SERVER["read_only"] is True
    assert (SERVER["cap_drop"], SERVER["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert not {"privileged", "network_mode", "devices", "pid", "cap_add", "user"} & SERVER.keys()
    (network,) = SERVER["networks"]
    assert COMPOSE["networks"][network]["driver_opts"] == {
        "com.docker.network.bridge.enable_ip_masquerade": "false"
    }
    directives = re.findall(r"^(USER|WORKDIR|ENTRYPOINT|ENV) (\S+)", IMAGE, re.MULTILINE)
    assert directives[0] == ("USER", "memkit")
    assert "--require-hashes" in IMAGE
    settings = {f"MEMKIT_{section}_{name}".upper() for section, name in every_key()}
    assert {name for name in of_image() if name.startswith("MEMKIT_")} <= settings | {"MEMKIT_HOME"}
    (volume,) = SERVER["volumes"]
    assert volume.partition(":")[2] == str(Path(of_image()["MEMKIT_HOME"]).parent)
    root = DOCUMENTS.parent
    assert (DOCUMENTS / SERVER["build"]["context"]).resolve() == root
    assert root / SERVER["build"]["dockerfile"] == DOCUMENTS / "Dockerfile"
    kept = re.findall(r"^!(.+)$", (DOCUMENTS / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    copied = [word for line in re.findall(r"^COPY (.*) \S+$", IMAGE, re.MULTILINE) for word in line.split()]
    assert sorted(kept) == sorted(copied)
    assert all((root / name).exists() for name in copied)


def test_its_steps(tmp_path: Path, model_home: Home) -> None:
    memory = make_memory(tmp_path, models=model_home.models)
    mine: dict[str, Any] = {**of_image(), "MEMKIT_HOME": memory.home.root, "MEMKIT_EMBEDDING_PROVIDER": "local"}
    (arguments,) = re.findall(r"run --rm memkit serve (.*)", COMMANDS[1])
    made = run(memory, *shlex.split(arguments), **mine)
    assert made.returncode == 0, made.stderr
    server = ServerInContainer(memory, *SERVER["command"][1:], **mine)
    try:
        _, python, option, code = SERVER["healthcheck"]["test"]
        assert python in IMAGE.replace("/pip", "/python")
        here = code.replace(f"http://127.0.0.1:{PORT}", server.address)
        subprocess.run([sys.executable, "-I", option, here], check=True, timeout=60)
        with server.client("write") as client:
            client.headers["Authorization"] = f"Bearer {made.stdout.strip()}"
            stored = client.post("/memory/store", json={"text": "Staging moves to port 7444."})
            assert stored.status_code == 201
            found = client.get("/memory/search", params={"query": "which port does staging have"}).json()
        assert "7444" in found["results"][0]["content"]
        assert not found["degraded"]  # it has vectors
        assert found["results"][0]["scores"]["dense"] is not None
    finally:
        assert server.stop() == 0
