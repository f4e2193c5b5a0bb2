"""Inline edit: a selection rewritten by an instruction, streamed as line edits."""
