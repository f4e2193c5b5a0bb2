"""Real code, removed and typed again key by key, as an editor's user would."""
