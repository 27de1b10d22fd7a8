"""Settings of the search."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memkit.errors import SettingError

_TUNED = "it is now a constant, tuned on both development sets; remove the line"

REMOVED = {
    **dict.fromkeys(
        (
            "search.dense_weight", "search.long_weight", "search.entry_weight",
            "search.passage_weight", "search.near_weight", "search.far_weight",
            "search.session_weight", "search.repeat_cost", "search.own_length", "search.rrf_k",
            "search.semantic_weight", "search.keyword_weight", "search.recency_weight",
            "search.instruction_boost", "search.unverified_factor",
        ),
        _TUNED,
    ),
    "search.domain_boost": "it is now a constant; search.domains still maps code to memory; remove the line",
}  # fmt: skip
"""Former settings, each with what to do about a line that still sets it."""


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ranking of results; `memkit.recall.fusion` has the formulas."""

    mode: Annotated[
        Literal["context", "rrf", "weighted", "lexical", "dense"],
        Meta(description="context, rrf, weighted, lexical or dense"),
    ] = "context"
    k: Annotated[int, Meta(ge=1, le=1000, description="how many results")] = 5
    user_memory: Annotated[
        bool,
        Meta(description="also search MEMKIT_HOME/memory, which holds what is true across projects"),
    ] = True
    language: Annotated[str, Meta(description="language of the Snowball stemmer")] = "english"
    best_relevance: Annotated[
        float,
        Meta(ge=0, le=1, description="return nothing unless the best match is at least this relevant"),
    ] = 0.32
    recency_boost: Annotated[
        float,
        Meta(ge=0, le=10, description="raise today's entries by this share; 0: ignore their age"),
    ] = 0
    half_life_days: Annotated[
        float,
        Meta(ge=0.1, le=36_500, description="age at which an entry's recency is one half"),
    ] = 30
    domains: Annotated[
        tuple[str, ...],
        Meta(
            description="directories of code with their directory of the memory: "
            '"src/billing=docs/billing"; the default is directories of the same name'
        ),
    ] = ()

    def __post_init__(self) -> None:
        for domain in self.domains:
            code, _, memory = domain.partition("=")
            if not code.strip("/ ") or not memory.strip("/ "):
                reason = f"{domain!r} is not of the form code/directory=memory/directory"
                raise SettingError(reason, "domains")
        if self.language != "english":
            _require_stemmer(self.language)


def _require_stemmer(language: str) -> None:
    import snowballstemmer  # slow to import, and the default needs no check

    known = sorted(snowballstemmer.algorithms())
    if language not in known:
        raise SettingError(f"no stemmer for it; there are {', '.join(known)}", "language")
