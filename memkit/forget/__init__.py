"""Forget and audit: find text wherever memkit keeps it, and erase or redact it for good."""
