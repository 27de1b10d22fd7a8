"""Installation: the locked packages by their hashes, and the packages that the user added."""

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
from tests.ci import only_at_night, only_in_ci
from tests.environment.conftest import FAST_TOOL, StandIn
from tests.environment.test_environment import tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
GROUPS = ("dev", "docs")


def declared() -> list[str]:
    return environment.declared_requirements(str(REPOSITORY), "project", "dependencies")


def log(stand_in) -> str:
    return (stand_in.home / "log" / "environment.log").read_text()


@only_in_ci
def test_a_package_with_another_hash_is_refused(stand_in):
    wheel = stand_in.wheel("memkit_stand_in_dependency")
    stand_in.lock.write_text(f"{wheel} --hash=sha256:{'0' * 64}\n")
    done = stand_in.run()
    assert done.returncode == 1
    assert "HASHES" in done.stderr.splitlines()[-1]
    assert stand_in.environments == ["failed.json"]


@only_in_ci
def test_variables_of_a_session_add_no_package(stand_in, tmp_path):
    foreign = tmp_path / "foreign.txt"
    foreign.write_text(stand_in.locked(stand_in.wheel("memkit_foreign")))
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[install]\nrequirement = {foreign}\n")
    done = stand_in.run(PIP_REQUIREMENT=str(foreign), PIP_CONFIG_FILE=str(settings))
    assert done.returncode == 0, done.stderr
    assert (stand_in.site / "memkit_stand_in_dependency.py").exists()
    assert not (stand_in.site / "memkit_foreign.py").exists()


@only_in_ci
def test_uv_comes_along_and_gets_the_index_that_pip_has(stand_in, tmp_path):
    links = {"PIP_FIND_LINKS": f"{tmp_path} {stand_in.root}", "PIP_NO_INDEX": "1"}
    done = stand_in.run("import", "memkit_stand_in_dependency", **links)
    assert done.returncode == 0, done.stderr
    (line,) = (one for one in log(stand_in).splitlines() if one.startswith("bundled uv: "))
    given = json.loads(line.removeprefix("bundled uv: "))
    assert given["UV_FIND_LINKS"] == f"{tmp_path},{stand_in.root}"
    assert given["UV_NO_INDEX"] == "1"
    assert not list(stand_in.site.glob("uv*"))


@only_in_ci
def test_pip_alone_is_used_where_uv_cannot_follow_its_settings(stand_in):
    done = stand_in.run("import", "memkit_stand_in_dependency", PIP_CLIENT_CERT="/nowhere.pem")
    assert done.returncode == 0, done.stderr
    assert "bundled uv" not in log(stand_in)


@pytest.mark.parametrize("without_index", [True, False])
def test_index_variables(tmp_path, monkeypatch, without_index):
    index = ("PIP_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_FIND_LINKS")
    never = ("PIP_REQUIREMENT", "UV_OVERRIDE", "UV_CACHE_DIR", "UV_NO_VERIFY_HASHES", "PYTHONPATH")
    for name in (*index, *never, "HTTPS_PROXY", "PIP_DEFAULT_TIMEOUT"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "a-repository" / "stranger.pem"))
    monkeypatch.setenv("PIP_CERT", "/etc/ssl/company.pem")
    with open(tmp_path / "log", "w+") as file, open(tmp_path / "lock", "w") as lock:
        runner = CommandRunner(tmp_path, file, lock.fileno())
        show = "import json, os; print(json.dumps(sorted(os.environ)))"
        runner.run([sys.executable, "-I", "-c", show], without_index)
        seen = set(json.loads((tmp_path / "log").read_text().splitlines()[-1]))
        with pytest.raises(EnvironmentBuildError, match="took too long"):
            runner.run([sys.executable, "-I", "-c", "import signal; signal.pause()"], seconds=0.1)
    assert seen.isdisjoint(never)
    assert {"HTTPS_PROXY", "PIP_DEFAULT_TIMEOUT", "PIP_CERT"} <= seen
    assert ("SSL_CERT_FILE" in seen) != without_index
    assert seen & set(index) == (set() if without_index else set(index))


def pins(lock: str) -> dict[str, list[str]]:
    """The lines of a lock by the names of packages, without hashes."""
    found: dict[str, list[str]] = {}
    for line in Path(lock).read_text().splitlines():
        name, pinned, _ = line.partition("==")
        if pinned and not line.startswith((" ", "#")):
            found.setdefault(environment.normalized(name), []).append(line.rstrip(" \\"))
    return found


def test_the_lock_matches_the_declared_requirements():
    """Run `tools/lock` to update it."""
    lock = environment.lock_path(str(REPOSITORY))
    development = str(REPOSITORY / ".ci" / "dev.lock")
    checks = [
        one
        for group in GROUPS
        for one in environment.declared_requirements(str(REPOSITORY), "dependency-groups", group)
    ]
    for path, requirements in ((lock, declared()), (development, [*declared(), *checks])):
        first = Path(path).read_text().partition("\n")[0]
        assert first.endswith(f" {environment.stamp(requirements)}"), "run tools/lock"
    both = {**pins(development), **pins(lock)}
    for requirement in map(Requirement, declared()):
        assert any(one.operator == "<" for one in requirement.specifier), str(requirement)
    for requirement in map(Requirement, [*declared(), *checks]):
        for line in both[requirement.name.replace("_", "-").lower()]:
            version = Requirement(line).specifier
            assert all(requirement.specifier.contains(one.version) for one in version), line
    for path in (Path(lock), Path(development)):  # versions and hashes, and no address
        for line in path.read_text().splitlines():
            assert "://" not in line and "--index" not in line and " @ " not in line
            assert line.startswith(("# Made by tools/lock", "    --hash=sha256:")) or "==" in line
        assert os.path.getsize(path) < 1_000_000


# Extras: what the user added to memkit's environment is there again after an update.


# As FAST_TOOL, but it also installs: it makes the folder of each package that is named on the command line, in
# the version that the constraints have, and stops or fails where it is told to.
INSTALLING_TOOL = FAST_TOOL[: FAST_TOOL.index("    gate")] + """    sys.exit()
if "--constraint" not in sys.argv:
    sys.exit()
import re
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
    stand_in.add_fast_tool(INSTALLING_TOOL)
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
    for text in ("{", '{"extras": [{}]}', '{"version": 9}'):
        file = installing.home / "extras.json"
        file.write_text(text)
        done = update(installing)
        assert (done.returncode, file.read_text()) == (0, text), done.stderr


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
