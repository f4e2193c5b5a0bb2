"""The numerics bench: what each way to store and multiply weights costs in quality, time and memory."""
