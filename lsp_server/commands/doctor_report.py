"""The report of ``draftline doctor`` for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from inference.weights.disk import megabytes

if TYPE_CHECKING:
    from inference.diagnosis.measure import Kernel, Measured
    from lsp_server.commands.doctor import Report

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


def print_report(report: Report, console: Console) -> None:
    """Print all sections, the problems last: that is where the eye ends up."""
    _section(console, "Versions", [(name, version or "missing") for name, version in report.versions.items()])
    _section(console, "Machine", _machine(report))
    _section(console, "Files", _files(report))
    if report.engines:
        _section(console, "Engines that editors share now", _engines(report))
    if report.measured is not None:
        _section(console, "Choices", _choices(report.measured))
        _section(console, "Memory", _memory(report, report.measured))
        _section(console, "Start-up", _start_up(report.python_ms, report.measured))
        _section(console, "Speed", _speed(report.measured))
        _section(console, "Numerics (estimates: the linear layers alone)", _numerics(report.measured))
        _section(console, "Exactness", _exactness(report.measured))
    if report.use.get("counts", {}).get("requests"):
        _section(console, "Use so far", _use(report.use))
    _problems(report, console)


def _section(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    console.print(Text(title, "bold"))
    for name, value in rows:
        # Not a table: paths are there to be copied, so they must not be folded.
        console.print(Text(f"  {name:<19} ").append(value), soft_wrap=True)
    console.print()


def _machine(report: Report) -> list[tuple[str, str]]:
    machine = report.machine
    cores, memory = machine.cores, machine.memory
    rows = [
        ("system", machine.system),
        ("processor", cores.processor),
        ("cores", f"{cores.usable} usable, {cores.free:.1f} free while looking" + _quota(cores.quota)),
    ]
    if cores.load is not None:
        rows.append(("load average", " ".join(f"{value:.2f}" for value in cores.load)))
    for process in cores.busy:
        rows.append(("busy process", f"{process.name} (pid {process.pid}): {process.cores:.1f} cores"))
    rows.append(("memory", f"{megabytes(memory.available)} of {megabytes(memory.total)} available"))
    if memory.limit is not None:
        rows.append(("container limit", megabytes(memory.limit)))
    swap = f"{megabytes(memory.swap_used)} of {megabytes(memory.swap_total)} used"
    rows.append(("swap", swap if memory.swap_total else "none"))
    if memory.pressure is not None:
        rows.append(("memory pressure", f"{memory.pressure:.1f} % of the last minute"))
    disk = machine.disk
    state = "" if disk.writable else ", NOT WRITABLE"
    rows.append(("disk", f"{megabytes(disk.free)} of {megabytes(disk.total)} free{state}"))
    return rows


def _quota(quota: float | None) -> str:
    return "" if quota is None else f", the container may use {quota:g}"


def _files(report: Report) -> list[tuple[str, str]]:
    files = report.files
    rows = [
        ("home", files.home),
        ("model", f"{files.name}: {'on this machine' if files.present else 'NOT on this machine'}"),
    ]
    if files.original is not None and all(file.path != files.original for file in files.stored):
        rows.append(("original", files.original))
    for file in files.stored:
        what = f"{file.kind} {file.numerics}".strip()
        stale = f" - not used again: {file.stale}" if file.stale else ""
        rows.append((what, f"{megabytes(file.bytes)}  {file.path}{stale}"))
    return rows


def _engines(report: Report) -> list[tuple[str, str]]:
    rows = []
    for engine in report.engines:
        memory = "" if engine.private_bytes is None else f", {megabytes(engine.private_bytes)} private memory"
        clients = f"{engine.clients} attached" if engine.state != "silent" else "it does not answer"
        rows.append((f"pid {engine.pid}", f"{engine.model or '?'}: {engine.state}, {clients}{memory}"))
        rows.append(("log", engine.log))
    return rows


def _choices(measured: Measured) -> list[tuple[str, str]]:
    choices, draft = measured.choices, measured.draft_model
    rows = [
        *([("draft model", draft.source)] if draft is not None else []),
        ("device", choices.device),
        ("instruction set", choices.instruction_set),
        ("threads", str(choices.threads)),
        ("numerics", choices.numerics),
    ]
    rows += [("int8 kernel", _kernel(kernel)) for kernel in choices.kernels]
    if choices.kernels:
        when = "now" if choices.kernels_chosen == "now" else f"on {choices.kernels_chosen}, checked now"
        where = choices.kernels_file or "nowhere"
        rows.append(("chosen", f"{when}; stored in {where}"))
    steps = "compiled functions" if choices.compiled else f"torch's operations: {choices.not_compiled}"
    rows.append(("other steps", steps))
    if not choices.compiled:
        rows.append(("attention tiles", ", ".join(map(str, choices.attention_tiles))))
    rows.append(("bit-exact", "yes, by the probe" if choices.bit_exact else "not promised"))
    rows += [("note", note) for note in choices.notes]
    return rows


def _kernel(kernel: Kernel) -> str:
    used = "  <- used" if kernel.chosen else ""
    if not kernel.exact:
        problem = "WRONG VALUES" if kernel.problem in ("", "wrong values") else kernel.problem
        return f"{kernel.name}: {problem}{used}"
    if not kernel.row_ms:
        return f"{kernel.name}: exact, not timed{used}"
    times = " / ".join(f"{ms:.2f}" for ms in kernel.row_ms.values())
    widths = " / ".join(map(str, kernel.row_ms))
    return f"{kernel.name}: exact, {times} ms for {widths} rows{used}"


def _memory(report: Report, measured: Measured) -> list[tuple[str, str]]:
    memory = measured.memory
    resident = memory.mapped_resident
    now = "" if resident is None else f", {megabytes(resident)} in memory now"
    rows = [
        ("packed weights", f"{megabytes(memory.packed)} private"),
        ("weights files", f"{megabytes(memory.mapped)} mapped and shared{now}"),
        (
            "KV cache",
            f"{megabytes(memory.kv_used)} of {megabytes(memory.kv_budget)} used, {memory.kv_numerics}; "
            f"{megabytes(memory.slot)} for {memory.context} tokens, so {memory.slots} files of that length, "
            "more if shorter",
        ),
    ]
    draft = measured.draft_model
    if draft is not None:
        rows.append(
            (
                "draft model",
                f"{megabytes(draft.packed)} of the private weights, {megabytes(draft.mapped)} of the files, "
                f"{megabytes(draft.slot)} of each slot",
            )
        )
    return [
        *rows,
        (
            "process",
            f"{megabytes(memory.loaded)} private once loaded, {megabytes(memory.private)} after measuring",
        ),
        (
            "need",
            f"{megabytes(memory.need)} private with the KV budget used up, beside the files; "
            f"{megabytes(report.machine.memory.available)} were available",
        ),
    ]


def _start_up(python_ms: float, measured: Measured) -> list[tuple[str, str]]:
    start = measured.start_up
    rows = [
        ("python and command", python_ms),
        ("import torch", start.import_torch),
        ("import engine", start.import_engine),
        *((name.replace("_", " "), ms) for name, ms in start.steps.items()),
    ]
    total = sum(ms for _, ms in rows)
    return [(name, f"{ms:7.0f} ms") for name, ms in [*rows, ("together", total)]]


def _speed(measured: Measured) -> list[tuple[str, str]]:
    speed = measured.speed
    rows = ", ".join(f"{rows}: {ms:.1f} ms" for rows, ms in speed.forward_ms.items())
    draft = measured.draft_model
    return [
        ("plain decode", f"{speed.decode_tokens_per_s:.1f} tokens/s"),
        ("forward by rows", rows),
        ("prefill", f"{speed.prefill_tokens_per_s:.0f} tokens/s"),
        *([("draft model", f"{draft.forward_ms:.1f} ms for a drafted token")] if draft is not None else []),
    ]


def _numerics(measured: Measured) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for cost in measured.compared:
        times = ", ".join(f"{n} row{'s'[: n > 1]}: {ms:.1f} ms" for n, ms in cost.linear_ms.items())
        used = "  <- loaded" if cost.loaded else ""
        rows.append(
            (cost.numerics, f"{megabytes(cost.weight_bytes)} of weights, {times or cost.reason}{used}")
        )
    return rows


def _exactness(measured: Measured) -> list[tuple[str, str]]:
    test = measured.self_test
    blocks = ", ".join(map(str, test.blocks))
    outcome = (
        "all logits have equal bits"
        if test.exact
        else f"OTHER BITS with blocks of {', '.join(map(str, test.differing))}"
    )
    return [(f"{test.tokens} tokens", f"in blocks of {blocks}: {outcome}")]


def _use(use: dict[str, Any]) -> list[tuple[str, str]]:
    counts, times = use["counts"], use["latencyMs"]
    shown, accepted = counts["shown"], counts["acceptedWhole"]
    sources = ", ".join(f"{name} {number}" for name, number in use["sources"].items())
    reasons = sorted(use["reasons"].items(), key=lambda item: -item[1])
    rows = [
        ("requests", str(counts["requests"])),
        ("shown", f"{shown} ({sources})" if sources else str(shown)),
        (
            "accepted",
            f"{accepted} whole, {counts['acceptedLine']} times a line, {counts['acceptedWord']} times a word",
        ),
        (
            "characters",
            f"{counts['charactersAccepted']} accepted, {counts['charactersTyped']} typed",
        ),
        (
            "tokens",
            f"{counts['newPromptTokens']} read, {counts['decodedTokens']} written; ahead of time"
            f" {counts['prefetchPromptTokens']} and {counts['prefetchDecodedTokens']}"
            f" in {counts['prefetches']} prefetches",
        ),
    ]
    if reasons:
        rows.append(("not shown", ", ".join(f"{name} {number}" for name, number in reasons)))
    if times["p50"] is not None:
        rows.append(("time to show", f"{times['p50']} ms in the middle, {times['p95']} ms for 95 %"))
    return rows


def _problems(report: Report, console: Console) -> None:
    if not report.problems:
        console.print(Text("No problems found.", "bold green"))
        return
    console.print(Text("Problems", "bold"))
    for problem in report.problems:
        line = Text("  ")
        line.append(f"{problem.severity}: {problem.code}", _STYLES[problem.severity])
        line.append(f"  {problem.message}")
        console.print(line, soft_wrap=True)
        console.print(Text(f"    next: {problem.next_step}"), soft_wrap=True)
    console.print()
    if report.works:
        console.print(Text("Draftline works here.", "bold green"))
    else:
        console.print(Text("Draftline cannot work here until the errors are gone.", "bold red"))
