"""Open documents: text, line index, position encodings, parse trees."""
