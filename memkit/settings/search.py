"""How search ranks, as settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from memkit.errors import SettingError

_Share = Annotated[float, Meta(ge=0, le=1)]


class SearchSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How results are ranked; the formulas stand in `memkit.recall.fusion`."""

    mode: Annotated[
        Literal["context", "rrf", "weighted", "lexical", "dense"],
        Meta(description="context, rrf, weighted, lexical or dense"),
    ] = "context"
    k: Annotated[int, Meta(ge=1, le=1000, description="how many results")] = 5
    user_memory: Annotated[
        bool,
        Meta(description="look into MEMKIT_HOME/memory too, what is true across projects"),
    ] = True
    language: Annotated[str, Meta(description="language of the Snowball stemmer")] = "english"
    best_relevance: Annotated[
        _Share, Meta(description="nothing is found unless the best match reaches this")
    ] = 0.32
    dense_weight: Annotated[_Share, Meta(description="share of the cosine beside BM25")] = 0.5
    long_weight: Annotated[_Share, Meta(description="so much more of it for long entries")] = 0.2
    entry_weight: Annotated[
        _Share, Meta(description="share of the whole entry in the cosine of a piece")
    ] = 0.4
    passage_weight: Annotated[
        float, Meta(ge=0, le=2, description="of BM25 over the passage around a chunk")
    ] = 0.75
    near_weight: Annotated[_Share, Meta(description="of the chunks one step away")] = 0.2
    far_weight: Annotated[_Share, Meta(description="of the chunks two steps away")] = 0.05
    session_weight: Annotated[
        float, Meta(ge=0, le=2, description="of the session's best chunks")
    ] = 0.25
    repeat_cost: Annotated[
        _Share, Meta(description="what each further piece of the same entry loses")
    ] = 0.1
    own_length: Annotated[
        int,
        Meta(ge=1, le=100_000, description="characters from which an entry needs no context"),
    ] = 700
    rrf_k: Annotated[int, Meta(ge=1, le=10_000, description="the constant of mode rrf")] = 60
    semantic_weight: Annotated[_Share, Meta(description="of the cosine, in mode weighted")] = 0.5
    keyword_weight: Annotated[_Share, Meta(description="of BM25, in mode weighted")] = 0.3
    recency_weight: Annotated[_Share, Meta(description="of age, in mode weighted")] = 0.2
    half_life_days: Annotated[
        float,
        Meta(ge=0.1, le=36_500, description="age at which an entry's recency is one half"),
    ] = 30
    recency_boost: Annotated[
        float,
        Meta(ge=0, le=10, description="what a new entry gains, in share; 0 for nothing"),
    ] = 0
    domain_boost: Annotated[
        float, Meta(ge=1, le=10, description="factor for the domain of the edited file")
    ] = 1.3
    instruction_boost: Annotated[
        float, Meta(ge=1, le=10, description="factor for *.instructions.md")
    ] = 1.2
    unverified_factor: Annotated[
        _Share, Meta(description="factor for a bullet that says something its turns do not")
    ] = 0.7
    domains: Annotated[
        list[str],
        Meta(
            description="which directory of the memory belongs to one of code: "
            '"src/billing=docs/billing"; by default directories of one name'
        ),
    ] = []

    def __post_init__(self) -> None:
        for domain in self.domains:
            code, _, memory = domain.partition("=")
            if not code.strip("/ ") or not memory.strip("/ "):
                reason = f"{domain!r} is not of the form code/directory=memory/directory"
                raise SettingError(reason, "domains")
        if self.language != "english":
            _require_stemmer(self.language)


def _require_stemmer(language: str) -> None:
    import snowballstemmer  # only where the default is not good enough

    known = sorted(snowballstemmer.algorithms())
    if language not in known:
        raise SettingError(f"no stemmer knows it; there are {', '.join(known)}", "language")
