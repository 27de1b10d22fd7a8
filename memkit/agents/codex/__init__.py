"""All that memkit knows of OpenAI's Codex CLI: its files and tool names."""
