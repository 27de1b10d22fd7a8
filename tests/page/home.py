"""A memory as a team has it after some months: sessions with originals, bullets, facts, notes, and topics."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from memkit.bullets import read_bullets
from memkit.journal.day_summaries import turns_of
from memkit.journal.facts import Citations, Fact, FactChange
from memkit.journal.journal import Journal
from memkit.paths import Home
from memkit.projects.project import Project
from memkit.summarize.bullets import Bullet
from tests.builders import Lines, make_note
from tests.page.story import NOTES, STORY, Said

REPOSITORY = Path(__file__).resolve().parents[2]
LAST = datetime.date(2026, 11, 20)
BRANCHES = ("main", "feature/checkout", "main", "fix/production")
MOVED = "The staging gateway moves to 7444"
"""How the bullet begins that supersedes the one about port 7443."""


class PageHome:
    """A project with a memory below `root`. `models` is a directory with the model's weights."""

    def __init__(
        self, root: Path, models: str, sessions: Sequence[tuple[datetime.date, list[Said]]],
        branches: Sequence[str] = BRANCHES,
    ) -> None:  # fmt: skip
        self.root = root
        self.branches = branches
        self.home = Home(str(root / "home"))
        self.project = Project(str(root / "shop"))
        Path(self.home.root).mkdir(mode=0o700, parents=True)
        Path(self.home.models).symlink_to(models)
        Path(self.project.root).mkdir()
        transcripts = root / "transcripts"
        transcripts.mkdir()
        for number, (day, said) in enumerate(sessions):
            self._record(transcripts, number, day, said)
        self.memkit("import", str(transcripts), "--yes", "--project", self.project.root)
        self.journal = Journal(self.project, home=self.home)
        self._summarize(sessions)

    def finish(self) -> PageHome:
        """Index the memory, and find its topics."""
        self.memkit("index")
        self.memkit("topics", "--refresh")
        return self

    @property
    def environment(self) -> dict[str, str]:
        """Variables for memkit, which never downloads a model, asks one, or opens a real browser."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("MEMKIT_", "CLAUDE"))}
        return {
            **kept, "HOME": str(self.root), "CLAUDE_CONFIG_DIR": str(self.root / "claude"),
            "MEMKIT_HOME": self.home.root, "MEMKIT_EMBEDDING_DOWNLOAD": "false",
            "MEMKIT_SERVICE_ENABLED": "false", "MEMKIT_SUMMARIZE_PROVIDER": "none",
            "PYTHONPATH": str(REPOSITORY), "TZ": "UTC", "BROWSER": "true",
        }  # fmt: skip

    def memkit(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "memkit", *arguments], cwd=self.project.root, env=self.environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add_note(self, text: str, tags: Sequence[str] = (), day: datetime.date = LAST) -> str:
        """Write a note as `memkit remember` does, and return its ID."""
        when = datetime.datetime.combine(day, datetime.time(16, 40), datetime.timezone.utc)
        note = make_note(text, tags, when, str)
        self.journal.add_note(note)
        return note.id

    def _record(self, transcripts: Path, number: int, day: datetime.date, said: list[Said]) -> None:
        """Write a transcript as Claude Code does: prompts, tool calls with results, answers."""
        lines = Lines(_session(number))
        branch = self.branches[number % len(self.branches)]
        for turn, one in enumerate(said):
            lines.prompt(one.question, f"{number:04x}{turn:04x}-99f1-4f0e-8a51-3f1f1a2b3c4d")
            for call, file in enumerate(one.files):
                name, call_id = ("Edit" if turn % 3 else "Read"), f"toolu_{number:03}{turn:02}{call:02}"
                lines.call(name, call_id, file_path=f"{self.project.root}/{file}")
                lines.result(call_id, one.output or f"1\t{one.answer.splitlines()[0]}")
            lines.answer(one.answer)
        begin = datetime.datetime.combine(day, datetime.time(9 + number % 8), datetime.timezone.utc)
        for place, entry in enumerate(lines.entries):
            time = begin + datetime.timedelta(seconds=97 * place)
            entry |= {"timestamp": time.isoformat().replace("+00:00", "Z"), "cwd": self.project.root, "gitBranch": branch}
        lines.write(transcripts)

    def _summarize(self, sessions: Sequence[tuple[datetime.date, list[Said]]]) -> None:
        """Add the bullets of the sessions. Every fifth waits for its summary."""
        for number, (day, said) in enumerate(sessions):
            found = turns_of(self.journal.day(day.isoformat()), _session(number))
            turns = [one.section.pairs["turn"] for one in found]
            pairs = zip(turns, said, strict=True)
            lines = [_bullet(one.bullet, turn).line for turn, one in pairs if one.bullet]
            if lines and number % 5 != 3:
                assert self.journal.summarize(day.isoformat(), turns, lines)


def _session(number: int) -> str:
    return f"5e55{number:04x}-7d4e-4b8a-9f15-0c6d2e8b7a44"


def _bullet(text: str, turn: str) -> Bullet:
    kind, _, words = text.partition(": ")
    return Bullet(words, kind, (turn,), True)


def story_sessions() -> list[tuple[datetime.date, list[Said]]]:
    """The story as sessions of two or three turns on one subject, spread over five months."""
    made = []
    for place, said in enumerate(STORY.values()):
        for number, start in enumerate(range(0, len(said), 2)):
            days = 140 - number * 47 - place * 5
            made.append((LAST - datetime.timedelta(days=max(days, place)), said[start : start + 2]))
    return sorted(made, key=lambda one: one[0])


def make_story(root: Path, models: str) -> PageHome:
    """The memory of the story, with a superseded decision, facts, and notes."""
    page = PageHome(root, models, story_sessions())
    written = list(_bullets(page.journal))
    (old,) = (grip for grip, text in written if "listens on 7443" in text)
    (new,) = (grip for grip, text in written if MOVED in text)
    facts = (
        Fact("The staging gateway listens on 7444.", "decision", Citations((new, old)), "2026-08-19", supersedes=(old,)),
        Fact("Migrations fill new columns in batches of 5,000 rows.", "pattern", Citations((written[0][0],)), "2026-10-02"),
    )
    change = FactChange(frozenset(), facts, compacted=LAST.isoformat())
    page.journal.change_facts("MEMORY.md", change, lambda own: None)
    for text, tags in NOTES:
        page.add_note(text, tags)
    return page.finish()


def _bullets(journal: Journal) -> Iterator[tuple[str, str]]:
    for day in journal.days():
        for _, bullet in read_bullets(journal.text(f"{day}.md").split("\n")):
            yield bullet.id, bullet.text
