"""Keys, which come from the providers' own environment variables and from nowhere else."""

from __future__ import annotations

from collections.abc import Mapping

from memkit.llm.model import NotConfiguredError


def find_key(environ: Mapping[str, str], variables: tuple[str, ...]) -> str:
    """What the first of these variables that is set holds; empty if none is.

    Raises `NotConfiguredError` if that can be no key.
    """
    for variable in variables:
        if key := environ.get(variable, "").strip():
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise NotConfiguredError(
                    f"{variable} holds more than a key (a blank, a line end, …); set it to the key alone"
                )
            return key
    return ""
