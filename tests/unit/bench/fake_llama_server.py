"""A stand-in for the llama-server program: its options, its routes, and a model that counts.

Started by a script that ``make_program`` writes. ``/props`` shows its command line as the build.
"""

from __future__ import annotations

import argparse
import json
import os
import stat
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HELP = """\
-t,    --threads N                      number of CPU threads
-c,    --ctx-size N                     size of the prompt context (default: 0, 0 = loaded from model)
-cram, --cache-ram N                    set the maximum cache size in MiB (default: 8192)
--no-webui                              whether to enable the Web UI (default: enabled)
--spec-type none,ngram-simple,ngram-mod
                                        comma-separated list of types (default: none)
--spec-ngram-mod-n-min N                minimum number of ngram tokens (default: 48)
--spec-ngram-simple-size-n N            ngram size N for ngram-simple speculative decoding, length of lookup
                                        n-gram (default: 12)
--spec-ngram-simple-size-m N            length of draft m-gram (default:
                                        48)
"""


def make_program(directory: Path, body: str = "") -> Path:
    """An executable script: this stand-in, or the lines of shell in ``body``."""
    path = directory / "llama-server"
    here = Path(__file__)
    own = f'cd "{here.parents[3]}" && exec "{sys.executable}" "{here}" "$@"'
    path.write_text(f"#!/bin/sh\n{body or own}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def event(token: int, count: int, ms: float, drafted: int = 0, accepted: int = 0) -> dict[str, Any]:
    """One token of a stream as llama-server sends it."""
    timings = {"cache_n": 0, "prompt_n": 3, "prompt_ms": 20.0, "predicted_n": count, "predicted_ms": ms}
    if drafted:
        timings |= {"draft_n": drafted, "draft_n_accepted": accepted}
    return {"content": f"<{token}>", "tokens": [token], "stop": False, "timings": timings}


def final(like: dict[str, Any], stop_type: str = "limit") -> dict[str, Any]:
    """The end of a stream after the event ``like``."""
    return {"content": "", "tokens": [], "stop": True, "stop_type": stop_type, "timings": like["timings"]}


class _Handler(BaseHTTPRequestHandler):
    speculates = False
    decoded = 0

    def do_GET(self) -> None:
        routes: dict[str, Any] = {
            "/health": {"status": "ok"},
            "/props": {
                "build_info": " ".join(sys.argv[1:]),
                "model_path": "/private/place/tiny-q8_0.gguf",
                "model_ftype": ",".join(sorted(name for name in os.environ if name.startswith("LLAMA_"))),
                "total_slots": 1,
                "default_generation_settings": {"n_ctx": 77},
            },
            "/slots": [{"id": 0, "speculative": self.speculates, "is_processing": False}],
        }
        self._send("application/json", json.dumps(routes[self.path]))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).decoded += 1
        # The first token says how many prompts this process has decoded, the second which process it is.
        events = [event(self.decoded, 1, 0.001), event(os.getpid(), 2, 5.0), event(body["prompt"][0], 3, 9.0)]
        lines = [f"data: {json.dumps(one)}\n\n" for one in (*events, final(events[-1]))]
        self._send("text/event-stream", "".join(lines))

    def _send(self, kind: str, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


def main() -> None:
    if "--help" in sys.argv:
        print(HELP)
        return
    if "--version" in sys.argv:
        print("version: 9.9 (fake)\nbuilt with Cc 1.2 for Machine", file=sys.stderr)
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--port", type=int)
    parser.add_argument("--spec-type", default="none")
    known, _ = parser.parse_known_args()
    _Handler.speculates = known.spec_type != "none"
    ThreadingHTTPServer(("127.0.0.1", known.port), _Handler).serve_forever()


if __name__ == "__main__":
    main()
