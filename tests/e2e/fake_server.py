"""``draftline`` with tests/fake_engine.py in place of the engine: python tests/e2e/fake_server.py lsp …"""

from __future__ import annotations

import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from lsp_server.cli import main
from tests.fake_engine import engine_from_environment

stand_in = types.ModuleType("inference.engine")
stand_in.Engine = engine_from_environment  # type: ignore[attr-defined]
sys.modules["inference.engine"] = stand_in

sys.exit(main())
