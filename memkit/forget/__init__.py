"""Forget: `erase` removes text from every place where memkit keeps it, `audit` finds and redacts secrets."""
