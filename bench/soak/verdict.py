"""Whether a long run grew, leaked or lost something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.records import Sample

# Caches and tables fill at first.
WARM_UP = 0.1  # of the samples
# Median of the last fifth against that of the first one.
GROWTH, GROWTH_BYTES = 0.02, 20_000_000
# torch ends and begins threads of its own as the cores are free or busy.
THREADS_OF_TORCH = 8
# Fewer samples than this in a fifth show no trend.
_FEWEST = 2


@dataclass(frozen=True)
class Change:
    """One figure at the beginning and at the end: medians over a fifth of the samples, or the most."""

    first: float
    last: float

    @property
    def grown(self) -> float:
        """The difference."""
        return self.last - self.first


@dataclass(frozen=True)
class Summary:
    """Of the samples after the warm-up; a change is None where it is not known.

    Attributes:
        private: bytes, medians. most_private: of all samples, warm-up too.
        threads, python_threads, files: most in the fifth. objects, ms: medians.
    """

    last: Sample
    private: Change | None
    most_private: int | None
    threads: Change | None
    python_threads: Change | None
    files: Change | None
    objects: Change | None
    ms: Change | None

    @property
    def problems(self) -> list[str]:
        """What is wrong, in words; a run without any has passed."""
        last = self.last
        found = []
        if self.private is None or self.threads is None or self.python_threads is None or self.files is None:
            found.append("there are too few samples to see a trend: more requests, or a smaller --every")
        else:
            allowed = max(GROWTH * self.private.first, GROWTH_BYTES)
            if self.private.grown > allowed:
                found.append(
                    f"private memory grew by {self.private.grown / 1e6:.0f} MB,"
                    f" more than {allowed / 1e6:.0f} MB"
                )
            if self.python_threads.grown > 0 or self.threads.grown > THREADS_OF_TORCH:
                found.append(f"threads grew from {self.threads.first:.0f} to {self.threads.last:.0f}")
            if self.files.grown > 0:
                found.append(f"open files grew from {self.files.first:.0f} to {self.files.last:.0f}")
        if self.most_private is not None and self.most_private > last.promised_bytes:
            found.append(
                f"private memory was {self.most_private / 1e6:.0f} MB, more than the promised"
                f" {last.promised_bytes / 1e6:.0f} MB"
            )
        settled = last.answered + last.cancelled + last.superseded + last.refused + last.failed
        if settled != last.requests:
            found.append(f"{last.requests - settled} requests were never answered")
        if last.failed:
            found.append(f"{last.failed} requests failed: {last.error}")
        if not last.answered or not last.cancelled or not last.superseded:
            found.append("not all of these happened: answered, cancelled, superseded")
        return found


def summarise(samples: Iterable[Sample]) -> Summary | None:
    """Of one run; None without samples."""
    samples = list(samples)
    if not samples:
        return None
    warm = samples[round(len(samples) * WARM_UP) :]
    fifth = len(warm) // 5
    ends = (warm[:fifth], warm[-fifth:]) if fifth >= _FEWEST else None

    def change(
        value: Callable[[Sample], float | None], of: Callable[[Sequence[float]], float]
    ) -> Change | None:
        if ends is None:
            return None
        first, last = ([known for sample in end if (known := value(sample)) is not None] for end in ends)
        return Change(of(first), of(last)) if first and last else None

    private = [sample.private_bytes for sample in samples if sample.private_bytes is not None]
    return Summary(
        last=samples[-1],
        private=change(lambda sample: sample.private_bytes, _median),
        most_private=max(private, default=None),
        threads=change(lambda sample: sample.threads, max),
        python_threads=change(lambda sample: sample.python_threads, max),
        files=change(lambda sample: sample.files, max),
        objects=change(lambda sample: sample.objects, _median),
        ms=change(lambda sample: sample.ms, _median),
    )


def _median(values: Sequence[float]) -> float:
    ranked = sorted(values)
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) / 2
