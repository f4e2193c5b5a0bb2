"""What ``draftline demo`` does and shows, apart from its command line."""
