"""Weights on disk: which models exist, how they get here, and the form the engine maps.

``store.prepare`` is the one entry point; the other modules are its steps.
"""
