"""Claude Code's SessionStart hook: tell the session about the memory and start waiting work."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def complain():
    """Report once that this Python is too old. Written in the syntax of Python 3.4."""
    import json

    home = os.environ.get("MEMKIT_HOME") or ""
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".memkit")
    version = ".".join(map(str, sys.version_info[:3]))
    said = os.path.join(home, "run", "python-notice")
    try:
        with open(said) as file:
            if file.read() == version:
                return "{}"
    except (OSError, ValueError):  # not reported yet, or the file is damaged
        pass
    try:
        os.makedirs(os.path.dirname(said), 0o700, exist_ok=True)
        with open(said, "w") as file:
            file.write(version)
    except OSError:  # then it is reported again
        pass
    line = (
        "memkit remembers nothing: the python3 on PATH is Python {} ({}); put Python 3.9 or newer first."
    ).format(version, sys.executable)
    return json.dumps({"systemMessage": line})


try:
    from memkit.hook.events import run
except Exception:  # a broken installation must not break the session
    print(complain() if sys.version_info < (3, 9) else "{}")
else:
    run("SessionStart")
