"""Extras: what the user added to memkit's environment is there again after an update."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from memkit import environment
from memkit.doctor import open_subject
from memkit.doctor.installation import check_extras
from memkit.embedding.remote import PROVIDERS
from memkit.environment import extras
from memkit.environment.extras import EXTRAS
from memkit.environment.install import CommandRunner, EnvironmentBuildError
from memkit.errors import NewerFileError
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.serve.server import PACKAGES
from tests.ci import only_at_night
from tests.environment.conftest import StandIn
from tests.environment.test_environment import tomllib
from tests.environment.test_install import REPOSITORY, log, pins

# As FAST_TOOL, but it also installs: it makes the folder of each package that is named on the command line, in
# the version that the constraints have, and stops or fails where it is told to.
INSTALLING_TOOL = """#!{python} -I
import os, re, socket, subprocess, sys
if sys.argv[1] == "venv":
    with open({counter!r}, "a") as file:
        file.write(str(os.getpid()) + "\\n")
    subprocess.run([{python!r}, "-I", "-m", "venv", "--without-pip", sys.argv[-1]], check=True)
    sys.exit()
if "--constraint" not in sys.argv:
    sys.exit()
print("extra:", *sys.argv[sys.argv.index("--constraint") + 2 :], flush=True)
gate = os.environ.get("TEST_GATE")
if gate:
    socket.create_connection(("127.0.0.1", int(gate))).recv(1)
failing, _, reason = os.environ.get("TEST_FAILURE", "").partition(":")
place = sys.argv.index("--constraint") + 1
pinned = dict(line.strip().split("==") for line in open(sys.argv[place]))
for requirement in sys.argv[place + 1 :]:
    name = re.split("[^a-z-]", requirement)[0]
    if name == failing and (reason or pinned.get(name)):
        sys.exit(reason or "cannot install " + name + "==" + pinned[name])
    version = pinned.get(name, "9")
    library = os.path.join(os.path.dirname(os.path.dirname(sys.argv[4])), "lib")
    site = os.path.join(library, os.listdir(library)[0], "site-packages")
    os.makedirs(os.path.join(site, name.replace("-", "_") + "-" + version + ".dist-info"))
"""


@pytest.fixture
def installing(stand_in: StandIn) -> StandIn:
    """A memkit whose tool installs anything, and whose environment exists."""
    tool = INSTALLING_TOOL.format(python=sys.executable, counter=str(stand_in.counter))
    stand_in.add_program("uv", tool)
    assert stand_in.run().returncode == 0
    return stand_in


def update(stand_in: StandIn, **variables: str) -> subprocess.CompletedProcess[str]:
    """Use memkit after an update that changed its requirements."""
    name = f"memkit_newer_dependency_{len(stand_in.builds)}"
    stand_in.depend_on(stand_in.wheel(name))
    return stand_in.run(**variables)


def installed(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    return environment.installed_versions(json.loads(done.stdout)["prefix"])


def add(stand_in: StandIn, *packages: str) -> None:
    for package in packages:
        (stand_in.site / f"{package}.dist-info").mkdir()


def wish(stand_in: StandIn, *names: str) -> Path:
    file = stand_in.home / "extras.json"
    file.write_text(json.dumps({"version": 1, "extras": names}))
    return file


def test_the_extras_are_those_of_the_package() -> None:
    """Also the providers' own packages, and what `memkit serve` looks for."""
    with open(REPOSITORY / "pyproject.toml", "rb") as file:
        declared = tomllib.load(file)["project"]["optional-dependencies"]
    everything = declared.pop("all")
    assert declared == {name: list(lines) for name, lines in EXTRAS.items()}
    assert everything == [f"memkit-memory[{','.join(sorted(EXTRAS))}]"]
    assert {name: extras.packages(name) for name in PROVIDERS} == {
        name: [one.package] for name, one in PROVIDERS.items()
    }
    assert extras.packages("serve") == list(PACKAGES)
    for lines in EXTRAS.values():
        assert all(any(one.operator in ("<", "==") for one in Requirement(line).specifier) for line in lines)
    locked = pins(environment.lock_path(str(REPOSITORY)))
    assert all(set(extras.packages(name)) - locked.keys() for name in EXTRAS)  # so it shows that one was added


def test_what_was_added_is_there_after_updates(installing: StandIn) -> None:
    wish(installing, "google", "voyage", "foreign; rm -rf /", "../../x")
    for _ in range(2):
        done = update(installing)
        assert done.returncode == 0, done.stderr
        assert "installing google-genai, voyageai again" in done.stderr
        assert installed(done) == {"google-genai": "9", "voyageai": "9"}
    assert "foreign" not in log(installing)


def test_an_extra_that_cannot_be_had_is_not_lost(installing: StandIn) -> None:
    wish(installing, "openai", "ollama")
    done = update(installing, TEST_FAILURE="openai:no such package")
    assert done.returncode == 0
    assert "could not install openai again; you can run `memkit setup --with openai`" in done.stderr
    assert installed(done) == {"ollama": "9"}
    assert environment.last_failure(str(installing.home)) is None
    assert installed(update(installing)) == {"openai": "9", "ollama": "9"}


def test_a_killed_update_loses_nothing(installing: StandIn) -> None:
    wish(installing, "openai")
    (old,) = installing.environments
    installing.depend_on(installing.wheel("memkit_newer_dependency"))
    killed = installing.start("x", TEST_GATE=str(installing.gate.getsockname()[1]))
    held, _ = installing.gate.accept()  # it installs the extra
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    held.close()
    done = installing.run()
    assert done.returncode == 0, done.stderr
    assert installed(done) == {"openai": "9"}
    assert len([name for name in installing.environments if name != old]) == 1


@pytest.mark.parametrize("text", ["{", '{"extras": [{}]}', '{"version": 9}'])
def test_a_file_that_cannot_be_read_stops_no_update(installing: StandIn, text: str) -> None:
    file = installing.home / "extras.json"
    file.write_text(text)
    done = update(installing)
    assert done.returncode == 0, done.stderr
    assert file.read_text() == text


def test_one_is_added(installing: StandIn, tmp_path: Path) -> None:
    add(installing, "numpy-1.5")
    (name,) = installing.environments
    code = f"from memkit.environment.build import add_extras; add_extras({str(installing.home)!r}, ['google'])"
    command = [environment.interpreter(str(installing.home / "env" / name)), "-c", code]

    def run(**variables: str) -> subprocess.CompletedProcess[str]:
        kept = {**installing.variables(**variables), "PYTHONPATH": str(installing.root)}
        return subprocess.run(command, env=kept, capture_output=True, text=True, check=False)

    failed = run(TEST_FAILURE="google-genai:no such package")
    assert "EnvironmentBuildError: memkit could not install its dependencies" in failed.stderr
    assert json.loads((installing.home / "extras.json").read_text()) == {"version": 1, "extras": ["google"]}
    done = run()
    assert (done.returncode, done.stderr) == (0, "memkit: installing google-genai\n")
    found = environment.installed_versions(str(installing.home / "env" / name))
    assert found == {"numpy": "1.5", "google-genai": "9"}
    assert "extra: google-genai>=1.0,<4" in log(installing)
    assert installing.environments == [name]


def test_an_installation_without_end_is_stopped(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as file, open(tmp_path / "lock", "w") as lock:
        runner = CommandRunner(tmp_path, file, lock.fileno())
        with pytest.raises(EnvironmentBuildError, match="took too long"):
            runner.run([sys.executable, "-I", "-c", "import signal; signal.pause()"], seconds=0.1)


@only_at_night
def test_real_tools(stand_in: StandIn, tmp_path: Path) -> None:
    stand_in.wheel("openai")
    settings = tmp_path / ".config" / "pip" / "pip.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f"[global]\nno-index = true\nfind-links = {stand_in.root}\n")
    mine = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": ""}
    assert stand_in.run(**mine).returncode == 0
    wish(stand_in, "openai", "google")
    stand_in.depend_on(stand_in.wheel("memkit_newer_dependency"))
    done = stand_in.run("import", "openai", **mine)
    assert done.returncode == 0, done.stderr
    assert "could not install google again" in done.stderr
    assert "could not install openai" not in done.stderr


def test_the_doctor_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(str(tmp_path))
    own = tmp_path / "env" / "0123456789abcdef"
    site = own / "lib" / "python3.11" / "site-packages"
    (site / "openai-1.2.dist-info").mkdir(parents=True)
    extras.wish(home.root, ["openai", "topics", "serve"])
    assert os.stat(home.extras).st_mode & 0o777 == 0o600
    assert list(check_extras(open_subject(home, Project(home.root)))) == []  # this Python is not memkit's
    assert extras.how_to_add("topics").endswith("install 'scikit-learn>=1.5,<2'")
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setenv("MEMKIT_HOME", home.root)
    (finding,) = check_extras(open_subject(home, Project(home.root)))
    assert finding.code == "extras-missing"
    assert "serve, topics" in finding.what
    assert finding.fix == "run `memkit setup --with serve --with topics`"
    assert extras.how_to_add("topics") == "memkit setup --with topics"
    Path(home.extras).write_text('{"version": 2, "extras": []}')
    with pytest.raises(NewerFileError):
        extras.missing(home.root)
