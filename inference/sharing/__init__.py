"""One engine process for several servers: two windows do not load the model twice.

The first server starts the process (`start`), the next ones find its socket by a name that says what it runs
(`place`). `process` is what runs there: it serves the clients of one engine (`service`) until none is left.
`client` is the engine as a server sees it. Messages (`messages`) go over a Unix socket or a named pipe.
"""
