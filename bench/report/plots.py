"""Plots of some runs as PNG. Importing this needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.journal import RunResults
from bench.records import Call, Key
from bench.report.latency import LIMITS_MS, answered, of_model
from bench.report.numbers import median
from bench.report.roofline import Roofline
from bench.report.speculation import Calls, figures
from bench.report.systems import in_order
from bench.report.tables import title

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart; lines also differ in
# their markers. Black is left for what the machine allows.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P")
_BINS = 8


def draw(runs: Sequence[RunResults], directory: Path) -> list[Path]:
    """Draw everything that the runs have records for.

    Returns:
        The files written, named by the run's number, its bench and what they show.

    Raises:
        OSError: one cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for number, results in enumerate(runs, 1):
        for name, figure in _figures(results):
            figure.suptitle(title(number, results), fontsize="small")
            figure.legend(loc="outside lower center", ncols=2, fontsize="small")
            path = directory / f"{number}-{results.run.bench}-{name}.png"
            figure.savefig(path, dpi=150)
            written.append(path)
    return written


def _figures(results: RunResults) -> Iterator[tuple[str, Figure]]:
    keys = [record for record in results.records if isinstance(record, Key)]
    if any(answered(key) for key in keys):
        yield "answers", _distribution(keys)
    if any(of_model(key) for key in keys):
        yield "file-position", _over(keys, "characters before the cursor", lambda key: key.position)
    if any(of_model(key) and key.prompt_tokens is not None for key in keys):
        yield "prompt-tokens", _over(keys, "tokens of the prompt", lambda key: key.prompt_tokens)
    calls = [record for record in results.records if isinstance(record, Call)]
    if any(call.forwards for call in calls if not call.sweep):
        yield "tokens-per-forward", _tokens_per_forward(Calls(calls))
    measured = Roofline(results.records)
    if measured.by_rows():
        yield "forward", _forwards(measured)
    if any(cost.speed for cost in measured.prefills()):
        yield "prefill", _prefills(measured)


def _distribution(keys: Sequence[Key]) -> Figure:
    """Over all keys asked: a system that stays silent, or answers with nothing, does not reach 100 %."""
    figure, axes = _plot(
        "Keys with a suggestion on screen in time",
        "ms from sending the change",
        "% of all keys asked, higher is better",
    )
    for place, system in enumerate(in_order(keys)):
        own = [key for key in keys if key.system == system]
        times = sorted(key.ms for key in own if key.outcome == "shown" and key.ms is not None)
        shares = [100 * (rank + 1) / len(own) for rank in range(len(times))]
        axes.step(times, shares, where="post", label=system, **_line(place, marker=False))
    for limit in LIMITS_MS:
        axes.axvline(limit, color="0.8", linewidth=1, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(0, 100)
    return figure


def _over(keys: Sequence[Key], label: str, x_of: Callable[[Key], int | None]) -> Figure:
    """Answers of the model as dots, and the medians of as wide ranges of ``x``."""
    figure, axes = _plot(
        f"Answers of the model by {label}", label, "ms from sending the change, lower is better"
    )
    for place, system in enumerate(in_order(keys)):
        found = sorted(
            (x, key.ms)
            for key in keys
            if key.system == system and of_model(key) and key.ms is not None and (x := x_of(key)) is not None
        )
        if not found:
            continue
        axes.plot(*zip(*found, strict=True), ".", color=_COLOURS[place % len(_COLOURS)], alpha=0.2)
        width = (found[-1][0] + 1) / _BINS
        bins = [[pair for pair in found if pair[0] // width == bin] for bin in range(_BINS)]
        middles = [tuple(median(values) for values in zip(*group, strict=True)) for group in bins if group]
        axes.plot(*zip(*middles, strict=True), label=f"{system}, median", **_line(place))
    axes.set_ylim(bottom=0)
    return figure


def _tokens_per_forward(calls: Calls) -> Figure:
    figure, axes = _plot("Tokens per forward pass", "set of prompts", "tokens, higher is better")
    bars = {
        f"{system}, {mode}": [
            figures(calls.of(set_, system, mode), []).tokens_per_forward or 0.0 for set_ in calls.sets
        ]
        for system in calls.systems
        for mode in dict.fromkeys(mode for set_ in calls.sets for mode in calls.modes(set_, system))
    }
    bars = {name: values for name, values in bars.items() if any(values)}
    width = 0.8 / len(bars)
    for place, (name, values) in enumerate(bars.items()):
        left = [set_ + (place - (len(bars) - 1) / 2) * width for set_ in range(len(values))]
        axes.bar(left, values, width, label=name, color=_COLOURS[place % len(_COLOURS)], edgecolor="white")
    axes.set_xticks(range(len(calls.sets)), calls.sets)
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    return figure


def _forwards(measured: Roofline) -> Figure:
    figure, axes = _plot("Cost of a forward pass", "rows: tokens computed in one pass", "ms, lower is better")
    for place, label in enumerate(measured.labels):
        own = [cost for cost in measured.by_rows() if cost.label == label]
        rows = [cost.rows for cost in own]
        if not own:
            continue
        axes.plot(rows, [cost.ms for cost in own], label=f"{label}, whole", **_line(place))
        linear = [(cost.rows, cost.linear_ms) for cost in own if cost.linear_ms is not None]
        if linear:
            axes.plot(
                *zip(*linear, strict=True),
                label=f"{label}, linear layers",
                linestyle=":",
                **_line(place),
            )
        floors = [(cost.rows, cost.floor_ms) for cost in own if cost.floor_ms is not None]
        if floors:
            axes.plot(
                *zip(*floors, strict=True),
                color="black",
                linestyle="--",
                marker=_MARKERS[place % len(_MARKERS)],
                label=f"{label}, reading the weights once",
            )
    axes.set_ylim(bottom=0)
    return figure


def _prefills(measured: Roofline) -> Figure:
    figure, axes = _plot("Reading a prompt", "tokens of the prompt", "tokens/s, higher is better")
    for place, label in enumerate(measured.labels):
        own = [cost for cost in measured.prefills() if cost.label == label]
        speeds = [(cost.tokens, cost.speed) for cost in own if cost.speed is not None]
        if not speeds:
            continue
        axes.plot(*zip(*speeds, strict=True), label=label, **_line(place))
        limits = [(cost.tokens, cost.floor_speed) for cost in own if cost.floor_speed is not None]
        if limits:
            axes.plot(
                *zip(*limits, strict=True),
                color="black",
                linestyle="--",
                marker=_MARKERS[place % len(_MARKERS)],
                label=f"{label}, limit of the machine",
            )
    axes.set_ylim(bottom=0)
    return figure


def _plot(name: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(name)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    return figure, axes


def _line(place: int, marker: bool = True) -> dict[str, Any]:
    style = {"color": _COLOURS[place % len(_COLOURS)]}
    return {**style, "marker": _MARKERS[place % len(_MARKERS)]} if marker else style
