"""The half of Draftline that speaks LSP. Imports no torch."""

__version__ = "0.1.0"
