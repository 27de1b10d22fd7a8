"""Parse JSON that may be damaged or hostile.

Standard library only, Python 3.9 syntax: the hooks import this module.
"""

from __future__ import annotations

import json
from typing import Any


def parse_json(data: str | bytes, **options: Any) -> Any:
    """Return what `json.loads` returns. Raise `ValueError` also for JSON that is nested too deep."""
    try:
        return json.loads(data, **options)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
