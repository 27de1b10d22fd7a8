"""Installation: the locked packages by their hashes, and the packages that the user added."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from memkit import environment
from memkit.environment.install import CommandRunner
from tests.ci import only_in_ci

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
    for requirement in map(Requirement, [*declared(), *checks]):
        for line in both[requirement.name.replace("_", "-").lower()]:
            version = Requirement(line).specifier
            assert all(requirement.specifier.contains(one.version) for one in version), line


def test_every_requirement_has_an_upper_bound():
    for requirement in map(Requirement, declared()):
        assert any(one.operator == "<" for one in requirement.specifier), str(requirement)


@pytest.mark.parametrize("name", ["memkit/environment/requirements.lock", ".ci/dev.lock"])
def test_a_lock_names_versions_and_hashes_and_no_address(name):
    for line in (REPOSITORY / name).read_text().splitlines():
        assert "://" not in line and "--index" not in line and " @ " not in line
        assert line.startswith(("# Made by tools/lock", "    --hash=sha256:")) or "==" in line
    assert os.path.getsize(REPOSITORY / name) < 1_000_000


def test_the_environment_follows_the_lock(stand_in, tmp_path):
    root = str(stand_in.root)
    first = environment.environment_directory("", root)
    stand_in.lock.write_text(stand_in.lock.read_text() + "# another\n")
    assert environment.environment_directory("", root) != first
