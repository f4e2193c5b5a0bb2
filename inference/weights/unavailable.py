"""Why one source of weights could not be used; another may still do."""

from __future__ import annotations


class SourceUnavailable(Exception):
    """Raised by a download source for what is not the user's fault to read twice: ``fetch`` collects
    the reasons of all sources and shows them only if every one failed."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source = source
        self.reason = reason
