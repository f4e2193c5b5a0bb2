"""From a cursor position to one suggestion."""
