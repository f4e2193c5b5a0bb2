"""Engines that are replaced before anybody knew them."""

from __future__ import annotations

from lsp_server.engine_host import EngineHost
from tests.fake_engine import FakeEngine
from tests.unit.inference.sharing_stand import until


class Shared(FakeEngine):
    """As one in a process of its own, which `retire` ends."""

    retired = False

    def retire(self) -> None:
        self.retired = True
        self.close()


def test_an_engine_that_came_too_late_gives_its_memory_back_unless_the_server_ends() -> None:
    host = EngineHost(FakeEngine, lambda status: None)
    late, last = Shared(), Shared()
    host._adopt(host._epoch - 1, late)
    until(late._closed.is_set)
    host.close()
    host._adopt(host._epoch - 1, last)
    until(last._closed.is_set)
    assert host.engine is None
    assert late.retired and not last.retired, "the next window may come soon"
