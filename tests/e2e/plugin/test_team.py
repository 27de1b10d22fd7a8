"""A file that colleagues share arrives while the real client runs, and no service does."""

from __future__ import annotations

import subprocess

from memkit.index import open_chunks
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.settings.load import load
from tests.e2e.plugin.user import MemkitUser, answers_so_far
from tests.e2e.waiting import wait_until
from tests.messages_api import MessagesApi, Reply, Request, text, tool

PATH = ".memkit/team/jo-doe-1234/2026-01-02.md"
# As a pull does: the upstream's branch comes first, then the file.
ARRIVES = (
    "blob=$(printf '# 2026-01-02\\n\\n## Port\\n\\nThe gateway listens on 7443.\\n' | git hash-object -w --stdin) && "
    f"git update-index --add --cacheinfo 100644,$blob,{PATH} && git -c user.name=Jo -c user.email=x commit -qm x && "
    f"git update-ref refs/remotes/origin/main HEAD && git checkout -q -- {PATH}"
)

SETTINGS = '[service]\nenabled = false\n[embedding]\nprovider = "none"\n'


def test_a_pulled_file_is_indexed_during_the_session(api: MessagesApi, user: MemkitUser) -> None:
    home, root = Home(str(user.home.memkit_home)), user.home.project
    (user.home.memkit_home / "config.toml").write_text(SETTINGS)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".memkit" / "team").mkdir(parents=True)
    user.run("projects", "trust", "--yes")

    def shared() -> list[str]:
        project = Project.remembering(str(root), home)
        chunks = open_chunks(project, home, load(home, project).settings)
        return [] if chunks is None else [one.content for one in chunks.chunks() if one.kind == "team"]

    def script(request: Request) -> Reply:
        if answers_so_far(request) == 0:
            return [tool("Bash", command=ARRIVES, description="Pull")]
        wait_until(shared, 60, user.complaint)
        return [text("Done.")]

    api.script = script
    user.home.run_prompt("Go on please.", "--allowedTools", "Bash")
    assert "7443" in shared()[0]
