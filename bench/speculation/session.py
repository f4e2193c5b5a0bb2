"""The phases of a run; every record goes into the journal as soon as it was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.commands.common import Steps
from bench.journal import Journal
from bench.peers.base import Decoder
from bench.peers.draftline_engine import DraftlineDecoder, limited
from bench.speculation.breakdown import breakdown
from bench.speculation.decode import Way, by_turns, numerics_of, warm_up, ways_of
from bench.speculation.extent import Extent
from bench.speculation.memory import loaded_memory, peer_memory
from bench.speculation.prompts import SetPrompt
from bench.speculation.roofline import forwards, measure_bandwidth, prefills
from inference.api import Draft

# What is compared where not everything can be: no speculation, and the product's own choice.
_ON_AND_OFF: tuple[Draft, ...] = ("none", "auto")


@dataclass(frozen=True)
class Session:
    """One run: what is measured, and where it goes."""

    extent: Extent
    prompts: Sequence[SetPrompt]
    journal: Journal
    steps: Steps

    def calls(self, decoders: Sequence[Decoder]) -> None:
        """All prompts by all systems in all their modes.

        Raises:
            PeerFailed: a system does not answer.
        """
        ways = [way for decoder in decoders for way in ways_of(decoder, decoder.modes)]
        warm_up(ways, self.prompts)
        self._decode("decoding", ways, self.prompts)

    def sweep(self, draftline: DraftlineDecoder) -> None:
        """Some prompts with one limit of the draft length after the other, and without drafts."""
        prompts = self._first(self.extent.sweep_items)
        ways = ways_of(draftline, ["none", *(limited("ngram", limit) for limit in self.extent.sweep_limits)])
        self._decode("draft lengths", ways, prompts, sweep=True)

    def limits(self, draftline: DraftlineDecoder) -> None:
        """What the machine can do at best."""
        self.steps.begin("limits of the machine", 1)
        self.journal.add(measure_bandwidth(draftline.runtime, self.extent.passes))
        self.steps.advance()

    def passes(self, draftline: DraftlineDecoder) -> None:
        """Forward passes, their parts, and prefills."""
        extent, runtime, name = self.extent, draftline.runtime, draftline.name
        self.steps.begin(f"forward passes in {draftline.numerics}", 3)
        rows, contexts, repeats = extent.forward_rows, extent.forward_contexts, extent.forward_repeats
        for forward in forwards(runtime, name, rows, contexts, repeats):
            self.journal.add(forward)
        self.steps.advance()
        shapes = (extent.parts_rows, extent.parts_context, extent.parts_prefill)
        for part in breakdown(runtime, name, *shapes, repeats):
            self.journal.add(part)
        self.steps.advance()
        for prefill in prefills(runtime, name, extent.prefill_tokens, extent.prefill_repeats):
            self.journal.add(prefill)
        self.steps.advance()

    def memory(self, draftline: DraftlineDecoder) -> None:
        """With speculation off and on."""
        self.steps.begin(f"memory in {draftline.numerics}", len(_ON_AND_OFF))
        for draft in _ON_AND_OFF:
            self.journal.add(
                loaded_memory(draftline.runtime, draftline.name, draft, self.extent.memory_context)
            )
            self.steps.advance()

    def peers_memory(self, peers: Sequence[Decoder]) -> None:
        """Of the other systems; after their calls."""
        longest = max(len(prompt.prompt.ids) + prompt.max_tokens for prompt in self.prompts)
        for peer in peers:
            self.journal.add(peer_memory(peer, numerics_of(peer), longest))

    def numerics(self, draftline: DraftlineDecoder) -> None:
        """Some prompts, with speculation off and on, in the numerics of a loaded Draftline."""
        prompts = self._first(self.extent.numerics_items)
        ways = ways_of(draftline, _ON_AND_OFF)
        warm_up(ways, prompts)
        self._decode(f"decoding in {draftline.numerics}", ways, prompts)

    def _decode(
        self, name: str, ways: Sequence[Way], prompts: Sequence[SetPrompt], sweep: bool = False
    ) -> None:
        repeats = self.extent.repeats
        self.steps.begin(name, len(ways) * len(prompts) * repeats)
        for call in by_turns(ways, prompts, repeats, sweep):
            self.journal.add(call)
            self.steps.advance()

    def _first(self, count: int) -> list[SetPrompt]:
        """The first prompts of each set."""
        taken: dict[str, int] = {}
        chosen = []
        for prompt in self.prompts:
            taken[prompt.set] = taken.get(prompt.set, 0) + 1
            if taken[prompt.set] <= count:
                chosen.append(prompt)
        return chosen


def measure(
    session: Session,
    draftline: DraftlineDecoder,
    peers: Sequence[Decoder],
    others: Sequence[DraftlineDecoder],
    sweep: bool,
    roofline: bool,
) -> None:
    """All phases.

    Args:
        draftline, peers: started; they are stopped as soon as they are not needed any more.
        others: Draftline in other numerics, not started: each has the machine for itself.

    Raises:
        PeerFailed: a system does not answer.
        DraftlineError: another numerics cannot be loaded.
    """
    session.calls([draftline, *peers])
    session.peers_memory(peers)
    for peer in peers:
        peer.stop()
    if sweep:
        session.sweep(draftline)
    if roofline:
        session.limits(draftline)
        session.passes(draftline)
    session.memory(draftline)
    draftline.stop()
    for other in others:
        other.start()
        session.numerics(other)
        if roofline:
            session.passes(other)
        session.memory(other)
        other.stop()
