"""The engine process with tests/fake_engine.py in place of the engine; tests/e2e/fake_server.py starts it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from inference.sharing.process import main
from tests.fake_engine import engine_from_environment

sys.exit(main(sys.argv[1:], engine_from_environment, lambda engine: {"fake": True}))
