"""Tests that drive the real Claude Code client against a scripted Messages API."""
