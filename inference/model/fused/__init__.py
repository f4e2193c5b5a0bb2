"""The steps between the linear layers as a few C functions, where the machine has a C compiler.

A decode forward of a small model is mostly waiting for some sixty small operations per layer; five calls
per layer do the same. Without a compiler, or if the check of values fails, torch's operations are used.
"""
