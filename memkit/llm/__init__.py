"""Ask a language model: providers, prices, the daily budget, and the ledger of calls."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memkit.llm.model import Provider
    from memkit.paths import Home
    from memkit.settings import SummarizeSettings


def find_provider(
    settings: SummarizeSettings,
    environ: Mapping[str, str] = os.environ,
    home: Home | None = None,
) -> Provider:
    """Return the provider that the settings name, with its key and model. Send nothing yet.

    The provider must not be `none`. Keys come from the providers' own variables in `environ`. A program
    runs under `home`, by default the home of the environment. Raise `NotConfiguredError` without a key
    or program.
    """
    from memkit.llm.anthropic import AnthropicProvider, has_anthropic_key
    from memkit.llm.chat_completions import SERVICES, ChatCompletionsProvider
    from memkit.llm.claude_cli import ClaudeCliProvider, find_claude
    from memkit.llm.errors import NotConfiguredError
    from memkit.paths import Home

    name = settings.provider
    if name in SERVICES:
        return ChatCompletionsProvider(SERVICES[name], settings, environ)
    if name == "anthropic" or (name == "auto" and has_anthropic_key(environ)):
        return AnthropicProvider(settings, environ)
    program = find_claude(environ)
    if program is not None:
        return ClaudeCliProvider(program, settings, environ, home or Home.from_environment())
    if name == "auto":
        raise NotConfiguredError(
            "no provider for summaries is available: set ANTHROPIC_API_KEY, install Claude Code, or "
            "choose another summarize.provider"
        )
    raise NotConfiguredError(
        "the program claude is not found; put it on the PATH or choose another summarize.provider"
    )
