"""Fixed shapes and recorded launches for GPUs that are reached through a queue (CUDA graphs).

A decode forward of a small model on a GPU is mostly the CPU giving hundreds of small orders. A graph records
them once for fixed shapes and addresses, and gives them again as one.
"""
