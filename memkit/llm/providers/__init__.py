"""The ways to a model: Anthropic's SDK, the user's own Claude Code, and any chat-completions endpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping

from memkit.llm.model import NotConfiguredError, Provider
from memkit.llm.providers.anthropic import AnthropicProvider, has_anthropic_key
from memkit.llm.providers.chat_completions import SERVICES, ChatCompletionsProvider
from memkit.llm.providers.claude_cli import ClaudeCliProvider, find_claude
from memkit.paths import Home
from memkit.settings import SummarizeSettings


def find_provider(
    settings: SummarizeSettings,
    environ: Mapping[str, str] = os.environ,
    home: Home | None = None,
) -> Provider:
    """The provider that the settings name, with its key and model; nothing is sent yet.

    Not to be called with provider `none`. Keys are taken from `environ`, in the providers' own
    variables; `home` is where a program may run, by default the one of the environment. Raises
    `NotConfiguredError` if there is no key or no program.
    """
    if settings.provider in SERVICES:
        return ChatCompletionsProvider.configured(SERVICES[settings.provider], settings, environ)
    if settings.provider == "anthropic" or (
        settings.provider == "auto" and has_anthropic_key(environ)
    ):
        return AnthropicProvider.configured(settings, environ)
    program = find_claude(environ)
    if program is not None:
        return ClaudeCliProvider(
            program, settings, environ=environ, home=home or Home.from_environment()
        )
    if settings.provider == "auto":
        raise NotConfiguredError(
            "nothing to summarize with: set ANTHROPIC_API_KEY, install Claude Code, or choose another "
            "summarize.provider"
        )
    raise NotConfiguredError(
        "the program claude is not found; put it on the PATH or choose another summarize.provider"
    )
