"""``python -m lsp_server`` is the ``draftline`` command."""

from __future__ import annotations

import sys

from lsp_server.cli import main

sys.exit(main())
