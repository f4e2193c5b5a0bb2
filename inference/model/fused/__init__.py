"""A forward's integer products and all steps between them as C functions, where the machine has a C compiler.

A decode forward of a small model is reading its weights once, and otherwise waiting for some sixty small
operations per layer. One call runs all layers in one parallel region. Without a compiler, or if the check of
values fails, the products of oneDNN and torch's operations are used.
"""
