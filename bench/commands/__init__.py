"""The subcommands of ``draftline bench``, one module each."""
