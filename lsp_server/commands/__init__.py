"""One module for each subcommand of ``draftline``."""
