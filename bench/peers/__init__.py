"""Draftline and what people use instead of it, behind two interfaces."""
