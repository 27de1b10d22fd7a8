"""Claude Code's FileChanged hook: have a changed file of the team indexed."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
try:
    from memkit.hook.events import run
except Exception:  # a broken installation must not break the session
    print("{}")
else:
    run("FileChanged")
