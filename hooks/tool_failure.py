"""Claude Code's PostToolUseFailure hook: show how an earlier turn got past the same error."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    from memkit.hook.events import run
except Exception:  # a broken installation must not break the session
    print("{}")
else:
    run("PostToolUseFailure")
