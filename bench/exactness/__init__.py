"""The exactness bench: does anything but prompt, model, numerics and seed decide about tokens and logits?"""
