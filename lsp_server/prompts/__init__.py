"""Prompt formats."""
