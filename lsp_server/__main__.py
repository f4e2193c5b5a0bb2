"""``python -m lsp_server`` is the ``draftline`` command."""

from __future__ import annotations

from lsp_server.cli import command

command()
