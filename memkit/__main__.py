"""`python -m memkit`."""

import sys

if sys.argv[1:] == ["hook", "codex"]:
    from memkit.hook.events import run

    run()

from memkit.cli import main

main()
