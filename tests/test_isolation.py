"""No process that memkit starts runs code of the working directory or of a repository's variables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memkit import processes
from memkit.environment import environment_directory
from memkit.paths import Home
from memkit.projects.trust import of_user
from tests.hook.conftest import Stage, stage  # noqa: F401

REPOSITORY = Path(__file__).resolve().parents[1]


def test_every_hook_and_the_command_itself_start_isolated() -> None:
    manifest = json.loads((REPOSITORY / "hooks" / "hooks.json").read_text())["hooks"]
    entries = [e for groups in manifest.values() for group in groups for e in group["hooks"]]
    assert {(entry["command"], entry["args"][0]) for entry in entries} == {("python3", "-I")}
    assert (REPOSITORY / "bin" / "memkit").read_text().splitlines()[1].split()[1:3] == ['"python3"', '"-I"']
    assert "%memkit_python% -I" in (REPOSITORY / "bin" / "memkit.cmd").read_text()


def link_environment(home: Path) -> None:
    """Let this test's environment be the one that memkit made in `home`."""
    directory = Path(environment_directory(str(home), str(REPOSITORY)))
    directory.parent.mkdir(parents=True)
    directory.symlink_to(sys.prefix)


def intrude(directory: Path, mark: Path) -> None:
    """Put modules into `directory` that memkit's processes import, and write `mark` when they run."""
    directory.mkdir(exist_ok=True)
    for name in ("json", "sqlite3", "memkit", "chromadb", "sitecustomize", "usercustomize"):
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")


def test_chroma_reads_no_settings_of_the_working_directory(tmp_path: Path) -> None:
    """They would end the import, or send traces to an address that the file names."""
    (tmp_path / ".env").write_text("MIGRATIONS=true\nCHROMA_OTEL_COLLECTION_ENDPOINT=http://x\n")
    code = (
        f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "import os; from memkit.index.server import chroma_settings\n"
        "print(chroma_settings().chroma_otel_collection_endpoint, os.getcwd())"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(tmp_path.resolve())]


def test_no_command_runs_modules_of_a_repository(stage: Stage) -> None:  # noqa: F811
    """Neither as `memkit` in a session nor in the processes that hooks start."""
    link_environment(stage.home)
    intrude(stage.project, stage.root / "ran")
    environment = {"PYTHONPATH": str(stage.project), "PYTHONUSERBASE": str(stage.project)}
    recorder = stage.environment.pop("MEMKIT_PYTHON")
    program = stage.project / "python"
    program.symlink_to(recorder)
    for session in ({}, {"CLAUDECODE": "1", "MEMKIT_PYTHON": str(program)}):
        done = subprocess.run(
            [REPOSITORY / "bin" / "memkit", "--version"], cwd=stage.project,
            env={**stage.environment, **environment, **session}, capture_output=True, check=True,
        )  # fmt: skip
        assert done.stdout.startswith(b"memkit ")
    stage.environment["MEMKIT_PYTHON"] = recorder
    stage.run("stop", stage.event("Stop", last_assistant_message="x"), environment=environment)
    assert not (stage.root / "ran").exists()


def test_no_program_of_the_working_directory_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for directory in ("repository", "programs"):
        program = tmp_path / directory / "git"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "repository")
    places = ["", ".", "../repository", str(tmp_path / "programs")]
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    assert processes.find_program("git") == str(tmp_path / "programs" / "git")
    assert processes.find_program("git", os.pathsep.join(places[:-1])) is None


def test_which_session_variables_count(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "sub" / ".git").mkdir(parents=True)
    (project / ".git").mkdir()
    (tmp_path / "link").symlink_to(project)
    user = {
        "PATH": str(outside), "HOME": str(outside), "MEMKIT_HOME": str(outside / "memory"),
        "CLAUDE_CONFIG_DIR": str(outside), "TMPDIR": str(outside), "LANG": "C.UTF-8", "LC_ALL": "C",
        "MEMKIT_DISABLE": "1",
    }  # fmt: skip
    marks = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(project / "deep")}
    (project / "deep").mkdir()
    others = {
        **dict.fromkeys(("MEMKIT_PYTHON", "MEMKIT_INDEX_URI", "MEMKIT_CAPTURE_REDACT", "MEMKIT_TEST_MODELS", "MEMKIT_SUMMARIZE_BASE_URL", "PYTHONPATH", "PYTHONSTARTUP", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "BASH_ENV", "EDITOR", "PAGER", "OLLAMA_HOST", "OPENAI_API_BASE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY", "https_proxy", "NO_PROXY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "VOYAGE_API_KEY", "OLLAMA_API_KEY", "MEMKIT_KEYS_OPENAI", "HF_HUB_OFFLINE", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_INDEX_URL", "UV_INDEX_URL", "HF_ENDPOINT", "CHROMA_API_KEY", "CHROMA_TENANT", "AWS_ENDPOINT_URL", "GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GOOGLE_VERTEX_BASE_URL", "CHROMA_OTEL_COLLECTION_ENDPOINT", "NODE_OPTIONS"), "x"),
        "TEMP": "./tmp",
        "XDG_RUNTIME_DIR": str(tmp_path / "link" / "run"),
    }  # fmt: skip
    assert of_user({**user, **marks, **others}) == {**user, **marks}
    path = os.pathsep.join(["", ".", str(project / "bin"), str(tmp_path / "link"), str(outside)])
    assert of_user({**marks, "PATH": path}) == {**marks, "PATH": str(outside)}
    for given in ("./memory", "memory", str(project / "memory"), str(tmp_path / "link" / "memory")):
        assert of_user({**marks, "MEMKIT_HOME": given, "HOME": given}) == marks


def test_proxies_and_certificates_come_from_the_users_own_settings(tmp_path: Path) -> None:
    """Those of a repository, which a session's variables may hold, do not count."""
    project, home, other = (tmp_path / name for name in ("project", "home", "other"))
    network = {"HTTPS_PROXY": "http://mine:1", "no_proxy": "localhost", "SSL_CERT_FILE": "/my.pem"}
    unused = {"ANTHROPIC_BASE_URL": "http://x", "HTTP_PROXY": "http://x", "NO_PROXY": 1, "SSL_CERT_DIR": "a\0"}
    for directory, settings in (
        (project, {"env": {"HTTPS_PROXY": "http://theirs:1"}}),
        (home, {"env": {**network, **unused}}),
        (other, {"env": [1]}),
    ):
        (directory / ".claude").mkdir(parents=True)
        (directory / ".claude" / "settings.json").write_text(json.dumps(settings))
    given = {"CLAUDE_PROJECT_DIR": str(project), "HOME": str(home)}
    assert of_user({**given, "HTTPS_PROXY": "http://theirs:1"}) == {**given, **network}
    for directory in (other, tmp_path / "missing"):
        chosen = {**given, "CLAUDE_CONFIG_DIR": str(directory / ".claude")}
        assert of_user(chosen) == chosen
    theirs = str(project / ".claude")
    assert of_user({**given, "CLAUDE_CONFIG_DIR": theirs}) == {**given, **network}
    (home / ".claude" / "settings.json").write_text("[" * 100_000)
    assert of_user(given) == given


def test_paths_near_a_repository_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a linked worktree nor a subdirectory can name what lies beside it."""
    main, linked = tmp_path / "main", tmp_path / "linked"
    (main / ".git" / "worktrees" / "linked").mkdir(parents=True)
    (main / "module" / ".git").mkdir(parents=True)
    linked.mkdir()
    kept = main / ".git" / "worktrees" / "linked"
    (kept / "commondir").write_text("../..\n")
    (kept / "gitdir").write_text(f"{linked / '.git'}\n")
    (linked / ".git").write_text(f"gitdir: {kept}\n")
    for directory in (linked, main / "module"):
        monkeypatch.chdir(directory)
        marks = {"CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(directory)}
        for place in (linked, main / "evil") if directory == linked else (main / "evil",):
            assert of_user({**marks, "MEMKIT_HOME": str(place), "HOME": str(place)}) == marks
        for place in ("/proc/self/cwd/../evil", "/usr/../proc/self/cwd", "/dev/fd/3"):
            assert of_user({**marks, "MEMKIT_HOME": place, "PATH": place}) == {**marks, "PATH": ""}


def test_a_hook_ignores_settings_in_session_variables(stage: Stage) -> None:  # noqa: F811
    """`MEMKIT_PYTHON` would run a repository's program, `MEMKIT_HOME` lead the memory into it."""
    ran = stage.root / "ran"
    program = stage.project / "python"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    own = stage.root / "user"
    environment = {
        "CLAUDECODE": "1", "CLAUDE_PROJECT_DIR": str(stage.project), "MEMKIT_PYTHON": str(program),
        "MEMKIT_HOME": "./memory", "HOME": str(own),
    }  # fmt: skip
    own.mkdir()
    # A process that captures keeps the hook from starting a worker, which would make an environment.
    from memkit.locks import capture_lock

    with capture_lock(Home(str(own / ".memkit")), 0):
        answer = stage.run("stop", stage.event("Stop", last_assistant_message="x"), environment=environment)
    assert answer.json == {}
    assert [*(own / ".memkit" / "spool" / "new").iterdir()]
    assert not (stage.project / "memory").exists()
    assert not ran.exists()
