"""Claude Code's PreToolUse hook for skills: lets Claude use memory-recall unasked."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    from memkit.capture.hook import run
except Exception:  # a broken installation must not break the session
    print("{}")
else:
    run("PreToolUse")
