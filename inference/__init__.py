"""Draftline's inference half: weights, decoder, caches and the engine. Knows no LSP types."""
