"""Forgetting: what is named is found wherever memkit keeps it, and erased there for good."""
