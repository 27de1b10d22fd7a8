"""Types of parameters and bodies. Unknown fields and parameters are rejected."""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, time, timedelta
from typing import Annotated, Literal

from fastapi import Path, Query
from msgspec import Struct
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from memkit.errors import MemkitError

MOST_RESULTS, MOST_PASSED = 100, 1000
MOST_ROWS = 100
MOST_SEGMENTS = 200
"""The most segments to summarize for one request."""

_YEARS = (1970, 9000)  # beyond these, converting a time zone may overflow

_AS_NODE = AfterValidator(lambda name: "" if name == "all" else name)
"""`memkit.Memory` names the node of everything ""."""

Id = Annotated[
    str, Path(min_length=1, max_length=200, description="An id, or its beginning", examples=["8b52f4fb"])
]
ErasedId = Annotated[
    str,
    # A shorter prefix could match another entry.
    Path(min_length=8, max_length=200, description="At least 8 characters of an id", examples=["2e599251"]),
]
Node = Annotated[
    str,
    Path(
        min_length=1,
        max_length=200,
        description="2026, 2026-11, 2026-W47, 2026-11-20, today, the id of a turn, or all",
        examples=["2026-W47"],
    ),
    _AS_NODE,
]
NodeFilter = Annotated[str, Query(max_length=300), _AS_NODE]
JobName = Annotated[str, Path(min_length=1, max_length=40, examples=["index"])]
Text = Annotated[str, Query(min_length=1, max_length=4000, examples=["staging port"])]
Limit = Annotated[int, Query(ge=1, le=MOST_RESULTS, description="Most entries")]
Rows = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Most rows of the page")]
Depth = Annotated[int, Query(ge=0, le=5, description="Levels below the node; 0: as many as fit")]
After = Annotated[str, Query(max_length=200, description="`next` of the page before")]
Passed = Annotated[int, Query(ge=0, le=MOST_PASSED, description="`next` of the page before")]
Cursor = Annotated[str, Query(max_length=400, description="`next` of the page before")]
Day = Annotated[str, Query(max_length=100, description="A day: 3d, 2w, last monday", examples=["2026-11-20"])]
Since = Annotated[
    str, Query(max_length=100, description="A time (2026-11-20T14:00:00Z), or a day as for a search")
]
Until = Annotated[
    str, Query(max_length=100, description="A time, excluded, or a day, included; as for `since`")
]
Filter = Annotated[str, Query(max_length=300)]
File = Annotated[str, Query(max_length=1000, description="The file being edited, from the project's root")]
AllProjects = Annotated[
    bool, Query(description="Search all projects, where the setting recall.other_projects allows it")
]
OneProject = Annotated[
    str, Query(max_length=300, description="Another project's name, where recall.other_projects allows it")
]
HybridMode = Annotated[
    Literal["context", "rrf", "weighted"], Query(description="The way to combine words and vectors")
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Tag = Annotated[str, Field(min_length=1, max_length=60)]


class NoteBody(_Body):
    """A note to remember."""

    text: str = Field(min_length=1, max_length=20_000, examples=["Staging moves to port 7444."])
    tags: list[Tag] = Field(default=[], max_length=20, examples=[["gateway"]])
    metadata: dict[str, JsonValue] = Field(
        default={}, description="Any JSON object of at most 4,000 characters; it is kept with the note"
    )


class NoteEdit(_Body):
    """New text of a note."""

    text: str = Field(min_length=1, max_length=20_000, examples=["Staging stays at port 7443."])
    tags: list[Tag] | None = Field(default=None, max_length=20, description="None keeps those it has")


class EventBody(_Body):
    """A message of another agent's session."""

    session: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$",
        description="The agent's own name for its session",
        examples=["run-1"],
    )
    role: Literal["user", "assistant", "tool"]
    text: str = Field(min_length=1, max_length=100_000, examples=["Which port is free?"])
    time: AwareDatetime | None = Field(
        default=None, strict=False, description="When it was said; now by default"
    )
    tool: str = Field(default="", max_length=200, description="The name of the tool whose result the text is")


class Stored(Struct, frozen=True):
    """The stored note. `created` is false if the memory had it already."""

    id: str
    day: str
    created: bool


class Taken(Struct, frozen=True):
    """The stored message. `created` is false if the memory had it already, or does not remember it.

    `remembered` is false if its turn is private, skipped, excluded, or forgotten.
    """

    session: str
    turn: str
    created: bool
    remembered: bool


class Token(_Body):
    """The token of the link to the page."""

    token: str = Field(min_length=1, max_length=200)


class FindingCode(_Body):
    """The code of a finding of `memkit doctor`."""

    code: str = Field(min_length=1, max_length=60)


class SegmentIds(_Body):
    """The segments of `GET /summaries` that a person agreed to pay for."""

    segments: list[Tag] = Field(min_length=1, max_length=MOST_SEGMENTS, examples=[["8ad3df7f"]])


class Health(Struct, frozen=True):
    """Whether the server answers questions."""

    status: Literal["SERVING", "NOT_SERVING"]


def day_named(text: str) -> date | None:
    """Return the day that a parameter names, None for "". Raise `MemkitError`."""
    from memkit.questions.period_days import parse_day

    return parse_day(text, date.today()) if text else None


def moment_named(text: str, *, is_end: bool = False) -> datetime | None:
    """Return the time of a parameter, None for ""; as an end, a day is the next one. Raise `MemkitError`."""
    if text[10:11] in ("T", "t", " "):
        with suppress(ValueError):
            found = datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00"))
            return in_range(found if found.tzinfo else found.astimezone())
    day = day_named(text)
    if day is None:
        return None
    begin = in_range(datetime.combine(day, time.min))
    return (begin + timedelta(days=is_end)).astimezone()


def in_range(found: datetime) -> datetime:
    """Return a time. Raise `MemkitError` if it is too far from today to compute with."""
    if not _YEARS[0] <= found.year <= _YEARS[1]:
        raise MemkitError(f"a time must be in the years {_YEARS[0]} to {_YEARS[1]}")
    return found
