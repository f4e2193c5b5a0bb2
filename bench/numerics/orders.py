"""What the bench and the processes that it starts agree on; imports no torch."""

from __future__ import annotations

from cattrs.preconf.json import make_converter

# The server's own way to fill a gap, of bench.quality.draftline_infill.
GAP_VARIANT = "spm/all"

# Orders are JSON; this one makes lists of sets, and sets of lists.
converter = make_converter()
