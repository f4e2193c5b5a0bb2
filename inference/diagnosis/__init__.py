"""What this machine, the files on it and a loaded model are like, for ``draftline doctor``.

Only ``measure`` imports torch, and only when it is called.
"""
