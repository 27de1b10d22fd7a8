"""Fixtures of the service that these tests use too."""

from tests.service.conftest import (
    any_transport,
    home,
    memory,
    over_tcp,
    real_embedder,
    service,
    shared,
)

__all__ = ["any_transport", "home", "memory", "over_tcp", "real_embedder", "service", "shared"]
