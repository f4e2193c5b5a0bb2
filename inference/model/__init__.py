"""The decoder: our own forward pass for the Llama family and its loader."""
