"""Two real editors at once, one engine process with the real 0.5B."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.e2e.engines import Engines, own_engines
from tests.editors.windows import KINDS, Window, missing, shared_variables

pytestmark = [
    pytest.mark.editor,
    pytest.mark.model,
    pytest.mark.timeout(240),
    pytest.mark.skipif(os.name != "posix", reason="sharing is off where there are no Unix sockets"),
]

Open = Callable[[str], Window]
# The first two that are there.
PREFERRED = ("neovim", "vscode", "emacs")


@pytest.fixture
def engines() -> Iterator[Engines]:
    """Those of this test; they are ended with it."""
    with own_engines() as engines:
        yield engines


@pytest.fixture
def window(engines: Engines, real_model: str, tmp_path: Path) -> Iterator[Open]:
    """Opens windows of one user."""
    env = shared_variables(tmp_path, engines.directory)
    windows: list[Window] = []

    def start(kind: str) -> Window:
        directory = tmp_path / kind
        directory.mkdir()
        windows.append(KINDS[kind](directory, env))
        return windows[-1]

    yield start
    for window in windows:
        window.close()


def test_two_editors_share_one_model(
    window: Open, engines: Engines, record_property: Callable[[str, object], None]
) -> None:
    # The servers are the same whichever these are, so one pair is enough; `kills.py` takes all.
    lacks = {kind: missing(kind) for kind in PREFERRED}
    kinds = [kind for kind in PREFERRED if not lacks[kind]][:2]
    if len(kinds) < 2:
        pytest.skip("; ".join(filter(None, lacks.values())))
    one, other = map(window, kinds)
    for number, each in enumerate((one, other, one)):
        print(f"{each.name} shows {each.completes(number)[1]!r}")
    (process,) = engines.processes()
    engine = engines.the_one()
    assert (engine.pid, engine.clients, engine.state) == (process.pid, 2, "ready")
    servers = [psutil.Process(each.server).memory_full_info().uss for each in (one, other)]
    # The weights alone are 494 MB: they are in the engine, and in neither server.
    assert engine.private_bytes is not None and engine.private_bytes > 450e6
    assert max(servers) < 350e6
    megabytes = [round(size / 1e6) for size in (engine.private_bytes, *servers)]
    record_property("megabytes", megabytes)
    print(f"MB private of engine and servers: {megabytes}")

    one.kill()
    took, drawn = other.completes(10)
    print(f"{one.name} killed: {other.name} shows {drawn!r} after {took:.1f} s")
    assert engines.processes() == [process]
    assert engines.the_one().clients == 1

    os.kill(process.pid, signal.SIGKILL)
    # The promise is five seconds; the machine's load decides about it, so it is told and not checked.
    took, drawn = other.completes(11)
    record_property("seconds_until_a_suggestion", took)
    print(f"the engine killed: {other.name} shows {drawn!r} after {took:.1f} s")
    assert engines.the_one().pid != process.pid
    assert engines.the_one().clients == len(engines.processes()) == 1
