"""A calendar of counts as a heat map, and the statistics as a PNG."""

from __future__ import annotations

import io
import warnings
from bisect import bisect_right
from calendar import month_abbr
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from memkit.environment import install_command
from memkit.errors import MemkitError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from memkit.stats import FileCount, Tally

LEVELS = 5
"""Level 0 is for a count of 0; the others are quartiles."""

WEEKS = 53
"""The number of weeks in a year, at most; 54 in a leap year that begins on a Sunday."""

MOST_YEARS = 20
"""The number of years in the picture; older ones are left out."""

COLORS = ("#ebedf0", "#9be9a8", "#40c463", "#30a14e", "#216e39")
"""The color of each level."""

_DOTS_AN_INCH = 120
_WIDTH = 11.0  # inches, as the heights are
_STRIP_HEIGHT = 1.7
_FILE_HEIGHT = 0.25
_HEAD_HEIGHT = 1.6


class Week(NamedTuple):
    """A column of the calendar: the count of each weekday, None outside of the span.

    `month` is the month (1 to 12) that begins in this week, or 0.
    """

    month: int
    counts: tuple[int | None, ...]


def weeks(counts: Mapping[str, int], first: date, last: date) -> list[Week]:
    """Return the weeks from `first` to `last`. Days (ISO) that are not in `counts` have 0."""
    monday = first.toordinal() - first.weekday()
    return [
        _week(counts, start, first.toordinal(), last.toordinal())
        for start in range(monday, last.toordinal() + 1, 7)
    ]


def _week(counts: Mapping[str, int], start: int, first: int, last: int) -> Week:
    """Return the week from the day `start`. Days are ordinals: the last week of the year 9999 has no end."""
    month = 0
    found: list[int | None] = []
    for ordinal in range(start, start + 7):
        if not first <= ordinal <= last:
            found.append(None)
            continue
        day = date.fromordinal(ordinal)
        month = day.month if day.day == 1 else month
        found.append(counts.get(day.isoformat(), 0))
    return Week(month, tuple(found))


def bounds(counts: Iterable[int]) -> tuple[int, ...]:
    """Return the lowest counts of the levels 2, 3, …: the quartiles of all counts above 0."""
    some = sorted(count for count in counts if count > 0)
    if not some:
        return ()
    quarters = LEVELS - 1
    return tuple(some[len(some) * part // quarters] for part in range(1, quarters))


def level(count: int, limits: tuple[int, ...]) -> int:
    """Return the level of a count; `limits` are its `bounds`."""
    return 1 + bisect_right(limits, count) if count > 0 else 0


def draw(
    tally: Tally, title: str, files: Sequence[FileCount], label: Callable[[FileCount], str]
) -> bytes:
    """Return a PNG of the calendar, the hours, and `files`, which `label` names.

    Raise `MemkitError` if matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MemkitError(
            "the picture needs matplotlib, which is not in memkit's environment; "
            f"run `{install_command('matplotlib')}`"
        ) from error
    counts = tally.turns_by_day
    years = sorted({date.fromisoformat(day).year for day in counts})[-MOST_YEARS:]
    heights = [_STRIP_HEIGHT] * len(years)
    heights.append(_HEAD_HEIGHT + _FILE_HEIGHT * len(files))
    figure = Figure(figsize=(_WIDTH, sum(heights) + 0.5), layout="constrained")
    figure.suptitle(title, parse_math=False)
    grid = figure.add_gridspec(len(heights), 2, height_ratios=heights)
    limits = bounds(counts.values())
    for row, year in enumerate(years):
        _draw_year(figure.add_subplot(grid[row, :]), counts, year, limits)
    _draw_hours(figure.add_subplot(grid[-1, 0]), tally.hours)
    _draw_files(figure.add_subplot(grid[-1, 1]), files, label)
    made = io.BytesIO()
    with warnings.catch_warnings():
        # The font draws a box for a character that it lacks.
        warnings.simplefilter("ignore", UserWarning)
        figure.savefig(made, format="png", dpi=_DOTS_AN_INCH)
    return made.getvalue()


def _draw_year(axes: Axes, counts: Mapping[str, int], year: int, limits: tuple[int, ...]) -> None:
    from matplotlib.colors import ListedColormap

    columns = weeks(counts, date(year, 1, 1), date(year, 12, 31))
    none = float("nan")
    levels = [
        [none if count is None else level(count, limits) for count in weekday]
        for weekday in zip(*(column.counts for column in columns), strict=True)
    ]
    axes.pcolormesh(
        levels, cmap=ListedColormap(COLORS), vmin=-0.5, vmax=LEVELS - 0.5, edgecolors="white",
        linewidth=1.5,
    )  # fmt: skip
    axes.set(aspect="equal", title=str(year), ylim=(7, 0), yticks=[0.5, 2.5, 4.5])
    axes.set_yticklabels(["Mon", "Wed", "Fri"])
    begun = [(place, column.month) for place, column in enumerate(columns) if column.month]
    axes.set_xticks([place + 0.5 for place, _ in begun])
    axes.set_xticklabels([month_abbr[month] for _, month in begun])
    _without_frame(axes)


def _draw_hours(axes: Axes, hours: Mapping[int, int]) -> None:
    axes.bar(range(24), [hours.get(hour, 0) for hour in range(24)], color=COLORS[-2])
    axes.set(title="turns by hour", xticks=range(0, 24, 6))
    _without_frame(axes)


def _draw_files(axes: Axes, files: Sequence[FileCount], label: Callable[[FileCount], str]) -> None:
    places = range(len(files))
    axes.barh(places, [file.mentioned for file in files], color=COLORS[1], label="mentioned")
    axes.barh(places, [file.edited for file in files], color=COLORS[-2], label="edited")
    axes.set(title="files", yticks=places)
    # A path with two dollar signs is not a formula.
    axes.set_yticklabels([label(file) for file in files], parse_math=False, fontsize="small")
    axes.invert_yaxis()
    if files:
        axes.legend(fontsize="small", frameon=False)
    _without_frame(axes)


def _without_frame(axes: Any) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
