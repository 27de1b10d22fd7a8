"""People with clones of one repository, each with a memory home of their own. Git and memkit are real."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from memkit.interface import InterfaceMemory
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.search.results import Result

CONFIG = '[embedding]\nprovider = "none"\n[service]\nenabled = false\n[search]\nuser_memory = false\n'


def run_git(directory: Path, *arguments: str, check: bool = True) -> str:
    command = ["git", "-C", str(directory), *arguments]
    done = subprocess.run(command, check=check, capture_output=True, text=True)
    return done.stdout + done.stderr


@dataclass
class Person:
    """Somebody who works in a clone."""

    name: str
    root: Path
    home: Home

    @classmethod
    def at(cls, place: Path, name: str, remote: Path | None = None, clone: str = "clone") -> Person:
        """Make a clone of `remote`, or a new repository."""
        root = place / clone
        place.mkdir(exist_ok=True)
        if remote is None:
            run_git(place, "init", "-qb", "main", str(root))
        else:
            run_git(place, "clone", "-q", str(remote), str(root))
        home = Home(str(place / "home"))
        Path(home.root).mkdir(exist_ok=True)
        Path(home.config_file).write_text(CONFIG)
        found = cls(name, root.resolve(), home)
        found.git("config", "user.name", name)
        found.git("config", "user.email", f"{name.split()[0].lower()}@example.com")
        found.git("config", "commit.gpgsign", "false")
        found.git("config", "pull.rebase", "true")
        return found

    @property
    def project(self) -> Project:
        return Project.remembering(str(self.root), self.home)

    @property
    def memory(self) -> InterfaceMemory:
        """A new one: it reads everything again."""
        return InterfaceMemory(self.project, home=self.home)

    @property
    def files(self) -> list[Path]:
        return sorted((self.root / ".memkit" / "team").rglob("*.md"))

    def git(self, *arguments: str, check: bool = True) -> str:
        return run_git(self.root, *arguments, check=check)

    def note(self, text: str) -> str:
        return self.memory.remember(text).id

    def share(self, text: str) -> str:
        """Remember a note, share it, and commit; return the note's id."""
        name = self.note(text)
        self.memory.share(name)
        self.commit(f"Share: {text[:20]}")
        return name

    def commit(self, message: str) -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def publish(self) -> None:
        """Commit everything as what the upstream's default branch has."""
        self.git("add", "-Af", ".memkit/team")
        self.git("commit", "-qm", "A memory")
        self.git("update-ref", "refs/remotes/origin/main", "HEAD")

    def push(self) -> None:
        self.git("push", "-q", "origin", "HEAD:main")

    def pull(self) -> str:
        return self.git("pull", "-q", "origin", "main", check=False)

    def found(self, query: str) -> list[Result]:
        return list(self.memory.search(query, 20).results)

    def team(self, query: str) -> list[Result]:
        return [one for one in self.found(query) if one.team]
