"""What models may do and spend, as settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class SummarizeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bullets above the digests, written by a model; nothing is spent unless a provider is chosen."""

    provider: Annotated[
        Literal["none", "auto", "anthropic", "claude-cli", "openai", "google", "ollama"],
        Meta(
            description="none, auto (anthropic with a key, else claude-cli), anthropic, claude-cli, "
            "openai, google, or ollama"
        ),
    ] = "none"
    model: Annotated[
        str, Meta(description="the model's name; empty: the provider's usual small one")
    ] = ""
    base_url: Annotated[
        str,
        Meta(description="another address of the provider, as for LM Studio; empty: its own"),
    ] = ""
    prompt_file: Annotated[
        str, Meta(description="a file with instructions of your own in place of memkit's")
    ] = ""
    mode: Annotated[
        Literal["segment", "turn", "off"],
        Meta(description="segment (a stretch of work), turn (each one by itself), or off"),
    ] = "segment"
    silence_minutes: Annotated[
        float, Meta(ge=1, le=1440, description="a pause that ends a segment")
    ] = 30
    segment_tokens: Annotated[
        int, Meta(ge=500, le=100_000, description="a segment ends before it is longer")
    ] = 4000
    overlap_minutes: Annotated[
        float, Meta(ge=0, le=1440, description="of what went before a segment, shown as context")
    ] = 5
    overlap_tokens: Annotated[
        int, Meta(ge=0, le=10_000, description="most of what is shown of that")
    ] = 500
    wait_minutes: Annotated[
        float,
        Meta(ge=0, le=1440, description="how long a segment waits for others, to share one call"),
    ] = 60
    daily_tokens: Annotated[
        int, Meta(ge=0, description="most tokens a day, read and written; then segments wait")
    ] = 200_000
    daily_usd: Annotated[
        float, Meta(ge=0, description="most dollars a day, as far as prices are known; 0: no limit")
    ] = 0
    timeout_seconds: Annotated[
        float, Meta(ge=1, le=3600, description="how long one call may take")
    ] = 120
    compact_days: Annotated[
        int, Meta(ge=0, le=3660, description="condense the memory every so many days; 0: never")
    ] = 0

    @property
    def is_on(self) -> bool:
        """Whether anything is to be summarized."""
        return self.provider != "none" and self.mode != "off"
