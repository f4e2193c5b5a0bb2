"""``draftline`` with tests/fake_engine.py in place of the engine: python tests/e2e/fake_server.py lsp …"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from inference import engine
from inference.sharing import codec, start
from lsp_server.cli import command
from tests.fake_engine import FakeCodec, engine_from_environment

engine.Engine = engine_from_environment  # type: ignore[assignment,misc]
# The same where the engine has a process of its own: `DRAFTLINE_SHARED_ENGINE=1`.
start.COMMAND = (sys.executable, str(Path(__file__).with_name("fake_engine_process.py")))
codec.open_codec = lambda description: FakeCodec()

command()
