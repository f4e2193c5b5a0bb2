"""From results files to tables and plots."""
