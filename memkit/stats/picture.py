"""The same as a picture, a PNG: a calendar strip for each year, the hours, the files."""

from __future__ import annotations

import io
import warnings
from calendar import month_abbr
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from memkit.environment import install_command
from memkit.errors import MemkitError
from memkit.stats.heat_map import LEVELS, bounds, level, weeks
from memkit.stats.tally import FileCount, Tally

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_YEARS = 20
"""That are drawn, the newest ones."""

COLOURS = ("#ebedf0", "#9be9a8", "#40c463", "#30a14e", "#216e39")
"""Of the levels, from nothing to most."""

_DOTS_AN_INCH = 120
_WIDTH = 11.0  # inches, as the heights are
_STRIP_HEIGHT = 1.7
_FILE_HEIGHT = 0.25
_HEAD_HEIGHT = 1.6


def draw(
    tally: Tally, title: str, files: Sequence[FileCount], label: Callable[[FileCount], str]
) -> bytes:
    """A PNG of the calendar, the hours and `files`, each named as `label` says.

    Raises `MemkitError` if matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MemkitError(
            "a picture needs matplotlib, which memkit's environment does not have; "
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
        # A character that the font does not have is drawn as a box.
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
        levels, cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=LEVELS - 0.5, edgecolors="white",
        linewidth=1.5,
    )  # fmt: skip
    axes.set(aspect="equal", title=str(year), ylim=(7, 0), yticks=[0.5, 2.5, 4.5])
    axes.set_yticklabels(["Mon", "Wed", "Fri"])
    begun = [(place, column.month) for place, column in enumerate(columns) if column.month]
    axes.set_xticks([place + 0.5 for place, _ in begun])
    axes.set_xticklabels([month_abbr[month] for _, month in begun])
    _without_frame(axes)


def _draw_hours(axes: Axes, hours: Mapping[int, int]) -> None:
    axes.bar(range(24), [hours.get(hour, 0) for hour in range(24)], color=COLOURS[-2])
    axes.set(title="turns by hour", xticks=range(0, 24, 6))
    _without_frame(axes)


def _draw_files(axes: Axes, files: Sequence[FileCount], label: Callable[[FileCount], str]) -> None:
    places = range(len(files))
    axes.barh(places, [file.mentioned for file in files], color=COLOURS[1], label="mentioned")
    axes.barh(places, [file.edited for file in files], color=COLOURS[-2], label="edited")
    axes.set(title="files", yticks=places)
    # A path with two dollar signs is no formula.
    axes.set_yticklabels([label(file) for file in files], parse_math=False, fontsize="small")
    axes.invert_yaxis()
    if files:
        axes.legend(fontsize="small", frameon=False)
    _without_frame(axes)


def _without_frame(axes: Any) -> None:
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
