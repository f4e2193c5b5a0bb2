"""What a prompt may contain: the window around the cursor, and what must never be in it."""
