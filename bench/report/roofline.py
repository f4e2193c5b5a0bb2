"""Forward passes, prompts and memory against what the machine allows at best.

One pass cannot be faster than its weights are read, nor than its products are computed (the roofline model of
Williams, Waterman and Patterson, 2009). Both limits are measured in the same run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.records import Bandwidth, Forward, Memory, Prefill, Record
from bench.report.numbers import median, quotient
from bench.report.pairs import Comparison, ratios
from bench.report.systems import is_ours, labels


@dataclass(frozen=True)
class ForwardCost:
    """Passes of one shape; medians over the repeats.

    Attributes:
        floor_ms: reading the weights once, None without a measured bandwidth.
        over_one: against the pass of one row behind the same context.
    """

    label: str
    rows: int
    context: int
    ms: float
    linear_ms: float | None
    floor_ms: float | None
    over_one: float | None

    @property
    def over_floor(self) -> float | None:
        """How many times the floor."""
        return quotient(self.ms, self.floor_ms)


@dataclass(frozen=True)
class PrefillCost:
    """Prompts of one length; medians over the repeats.

    Attributes:
        floor_ms: the longer of reading the weights and computing the products, None if not measured.
    """

    label: str
    tokens: int
    ms: float
    floor_ms: float | None

    @property
    def speed(self) -> float | None:
        """Tokens per second."""
        return quotient(1000 * self.tokens, self.ms)

    @property
    def floor_speed(self) -> float | None:
        """Tokens per second that the machine allows."""
        return quotient(1000 * self.tokens, self.floor_ms)


class Roofline:
    """The measurements of one run."""

    def __init__(self, records: Iterable[Record]) -> None:
        records = list(records)
        self.bandwidths = [record for record in records if isinstance(record, Bandwidth)]
        self._forwards = [record for record in records if isinstance(record, Forward)]
        self._prefills = [record for record in records if isinstance(record, Prefill)]
        self.memory = [record for record in records if isinstance(record, Memory)]
        self._labels = labels([*self._forwards, *self._prefills, *self.memory])

    @property
    def labels(self) -> list[str]:
        """Systems, with numerics where one has several."""
        return list(self._labels.values())

    def label(self, record: Forward | Prefill | Memory) -> str:
        """Whose record it is."""
        return self._labels[record.system, record.numerics]

    def forwards(self) -> list[ForwardCost]:
        """One for each label, context and number of rows, in this order."""
        groups: dict[tuple[str, int, int], list[Forward]] = {}
        for record in self._forwards:
            groups.setdefault((self.label(record), record.context, record.rows), []).append(record)
        one = {key[:2]: median([record.ms for record in of]) for key, of in groups.items() if key[2] == 1}
        costs = []
        for (label, context, rows), of in groups.items():
            ms = median([record.ms for record in of])
            assert ms is not None
            linear = [record.linear_ms for record in of if record.linear_ms is not None]
            costs.append(
                ForwardCost(
                    label=label,
                    rows=rows,
                    context=context,
                    ms=ms,
                    linear_ms=median(linear),
                    floor_ms=self._reading_ms(of[0].weight_bytes),
                    over_one=quotient(ms, one.get((label, context))),
                )
            )
        order = self.labels
        return sorted(costs, key=lambda cost: (order.index(cost.label), cost.context, cost.rows))

    def by_rows(self) -> list[ForwardCost]:
        """Of each label those behind the context that has most numbers of rows."""
        costs = self.forwards()
        found = []
        for label in self.labels:
            own = [cost for cost in costs if cost.label == label]
            contexts = [cost.context for cost in own]
            if contexts:
                widest = max(sorted(set(contexts)), key=contexts.count)
                found += [cost for cost in own if cost.context == widest]
        return found

    def by_context(self) -> list[ForwardCost]:
        """Of each label the passes of one row, if they stand behind several contexts."""
        ones = [cost for cost in self.forwards() if cost.rows == 1]
        several = {cost.label for cost in ones if sum(other.label == cost.label for other in ones) > 1}
        return [cost for cost in ones if cost.label in several]

    def prefills(self) -> list[PrefillCost]:
        """One for each label and length, in this order."""
        groups: dict[tuple[str, int], list[Prefill]] = {}
        for record in self._prefills:
            groups.setdefault((self.label(record), record.tokens), []).append(record)
        costs = []
        for (label, tokens), of in groups.items():
            ms = median([record.ms for record in of])
            assert ms is not None
            costs.append(PrefillCost(label, tokens, ms, self._prefill_floor_ms(of[0])))
        order = self.labels
        return sorted(costs, key=lambda cost: (order.index(cost.label), cost.tokens))

    def compare(self) -> list[Comparison]:
        """Draftline's prompts, repeat by repeat, and its memory at most, against those of other systems."""
        ours = next((label for (system, _), label in self._labels.items() if is_ours(system)), None)
        if ours is None:
            return []
        found = []
        for label in self.labels:
            if label == ours:
                continue
            for tokens in sorted({record.tokens for record in self._prefills}):
                mine, theirs = self._times(ours, tokens), self._times(label, tokens)
                found.append(ratios(f"prompt of {tokens} tokens", "", label, "ms", mine, theirs))
            for what, mapped in (("private memory", False), ("private memory and mapped files", True)):
                sizes = self._sizes(ours, mapped), self._sizes(label, mapped)
                found.append(ratios(what, "", label, "MB", *sizes))
        return [comparison for comparison in found if comparison is not None]

    def _times(self, label: str, tokens: int) -> dict[int, float]:
        """Milliseconds of each repeat."""
        of = [record for record in self._prefills if record.tokens == tokens and self.label(record) == label]
        return {record.repeat: record.ms for record in of}

    def _sizes(self, label: str, mapped: bool) -> dict[str, float]:
        """Most memory in MB, as the one value of a pair."""
        sizes = []
        for record in self.memory:
            parts = (record.private_bytes, record.mapped_bytes) if mapped else (record.private_bytes,)
            known = [part for part in parts if part is not None]
            if self.label(record) == label and len(known) == len(parts):
                sizes.append(sum(known) / 1e6)
        return {"most": max(sizes)} if sizes else {}

    def _reading_ms(self, weight_bytes: int | None) -> float | None:
        if weight_bytes is None or not self.bandwidths:
            return None
        return quotient(1000 * weight_bytes, max(found.bytes_per_second for found in self.bandwidths))

    def _prefill_floor_ms(self, prefill: Prefill) -> float | None:
        floors = [self._reading_ms(prefill.weight_bytes)]
        if prefill.linear_ops is not None:
            floors += [
                quotient(1000 * prefill.linear_ops, operations(found, prefill.numerics))
                for found in self.bandwidths
            ]
        return max((floor for floor in floors if floor is not None), default=None)


def operations(found: Bandwidth, numerics: str) -> float | None:
    """Operations per second of the kind that the numerics use, None if that kind was not measured."""
    return {"int8": found.int8_ops_per_second, "fp32": found.float_ops_per_second}.get(numerics)
