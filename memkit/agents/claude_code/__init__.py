"""The files of Claude Code: transcripts, turns, prompts, and prompt history."""
