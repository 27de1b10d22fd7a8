"""Summaries above the digests, and lasting facts, written by a model of the user's choice."""
