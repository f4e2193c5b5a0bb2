"""``python -m inference.sharing``: the engine process. Servers start it; see `start`."""

import sys

from inference.sharing.process import main

sys.exit(main(sys.argv[1:]))
