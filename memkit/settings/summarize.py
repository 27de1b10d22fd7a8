"""Settings for models: which one writes summaries, and what it may cost."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class SummarizeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bullets above the digests, written by a model. Without a provider, memkit makes no call."""

    provider: Annotated[
        Literal["none", "auto", "anthropic", "claude-cli", "openai", "google", "ollama"],
        Meta(
            description="none, auto (anthropic with a key, else claude-cli), anthropic, claude-cli, "
            "openai, google, or ollama"
        ),
    ] = "none"
    model: Annotated[
        str, Meta(description="the model's name; empty: the provider's default small model")
    ] = ""
    base_url: Annotated[
        str,
        Meta(description="another address of the service, as for LM Studio; empty: the provider's own"),
    ] = ""
    prompt_file: Annotated[
        str, Meta(description="a file with your own instructions, which replace memkit's")
    ] = ""
    mode: Annotated[
        Literal["segment", "turn", "off"],
        Meta(description="segment (a stretch of work), turn (each turn by itself), or off"),
    ] = "segment"
    silence_minutes: Annotated[
        float, Meta(ge=1, le=1440, description="a pause that ends a segment")
    ] = 30
    segment_tokens: Annotated[
        int, Meta(ge=500, le=100_000, description="a segment ends before it is longer")
    ] = 4000
    overlap_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="the time before a segment that the model sees as context")
    ] = 5
    overlap_tokens: Annotated[
        int, Meta(ge=0, le=10_000, description="the most tokens of that context")
    ] = 500
    wait_minutes: Annotated[
        float,
        Meta(ge=0, le=1440, description="how long a segment waits for others to share a call with"),
    ] = 60
    daily_tokens: Annotated[
        int, Meta(ge=0, description="the most tokens per day, read and written; then segments wait")
    ] = 200_000
    daily_usd: Annotated[
        float, Meta(ge=0, description="the most dollars per day, where prices are known; 0: no limit")
    ] = 0
    timeout_seconds: Annotated[
        float, Meta(ge=1, le=3600, description="the longest time for one call")
    ] = 120
    compact_days: Annotated[
        int, Meta(ge=0, le=3660, description="days between compactions of the memory into facts; 0: never")
    ] = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is to be summarized."""
        return self.provider != "none" and self.mode != "off"
