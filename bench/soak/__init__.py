"""The soak bench: thousands of requests to one engine, as a long day in an editor sends them."""
