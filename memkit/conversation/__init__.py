"""Turns, messages, and tool calls of a session, independent of the agent that recorded it."""
