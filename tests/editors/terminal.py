"""A terminal without a window: tmux in its control mode, where a look at the screen takes a millisecond."""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

TMUX = shutil.which("tmux")

_CONFIGURATION = """
set -g status off
set -sg escape-time 0
"""


@dataclass(frozen=True)
class Screen:
    """What is on screen: lines without the blanks at their ends, and the cursor (column and row from 0)."""

    lines: tuple[str, ...]
    x: int
    y: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Terminal:
    """A program in a terminal of ``width`` times ``height`` characters.

    ``cpus`` are the cores that the program and tmux may use, None for all.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        width: int = 100,
        height: int = 30,
        cpus: set[int] | None = None,
    ) -> None:
        if TMUX is None:
            raise FileNotFoundError("there is no tmux on the PATH")
        self._directory = tempfile.TemporaryDirectory(prefix="tmux-")
        configuration = os.path.join(self._directory.name, "conf")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(_CONFIGURATION)
        socket = os.path.join(self._directory.name, "s")
        size = ["-x", str(width), "-y", str(height)]
        self._process = subprocess.Popen(
            # -C: commands come by stdin, a line each; answers and news go to stdout.
            [TMUX, "-u", "-C", "-S", socket, "-f", configuration, "new-session", *size, shlex.join(command)],
            env={name: value for name, value in env.items() if name != "TMUX"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None,
        )
        self._answers: queue.Queue[list[str] | None] = queue.Queue()
        self._painted = threading.Event()
        self.news: collections.deque[str] = collections.deque(maxlen=20)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        lines: list[str] = []
        block = ""
        for line in self._process.stdout:
            line = line.rstrip("\n")
            words = line.split(" ", 3)
            if not block and words[0] == "%begin":
                block, lines = line.removeprefix("%begin"), []
            elif block and words[0] in ("%end", "%error") and line == words[0] + block:
                # The last number is 1 for answers to commands that came by stdin.
                if block.endswith(" 1"):
                    self._answers.put(lines)
                block = ""
            elif block:
                lines.append(line)
            elif words[0] == "%output":
                self._painted.set()
            else:
                # tmux's own words; they say why it ended, if it did.
                self.news.append(line)
        self._answers.put(None)
        self._painted.set()

    def _tell(self, *commands: str) -> list[list[str]]:
        assert self._process.stdin is not None
        self._process.stdin.write("".join(command + "\n" for command in commands))
        self._process.stdin.flush()
        answers = [self._answers.get(timeout=30) for _ in commands]
        if None in answers:
            raise RuntimeError("the program in the terminal has ended")
        return [answer for answer in answers if answer is not None]

    @property
    def ended(self) -> bool:
        """Whether the program and tmux are gone."""
        return self._process.poll() is not None

    def type(self, text: str) -> None:
        """Type characters of ASCII; a line end is the Enter key."""
        codes = " ".join(f"{byte:x}" for byte in text.replace("\n", "\r").encode("ascii"))
        self._tell(f"send-keys -H {codes}")

    def keys(self, *names: str) -> None:
        """Press keys by tmux's names: ``Tab``, ``M-w``, ``Escape``."""
        self._tell(f"send-keys {shlex.join(names)}")

    def screen(self) -> Screen:
        """What is on screen now."""
        self._painted.clear()
        lines, cursor = self._tell("capture-pane -p", 'display-message -p "#{cursor_x} #{cursor_y}"')
        x, y = cursor[0].split()
        return Screen(tuple(line.rstrip() for line in lines), int(x), int(y))

    def wait(self, seconds: float) -> bool:
        """Whether the program writes something within this time, or wrote since the last look."""
        return self._painted.wait(seconds)

    def until(self, check: Callable[[Screen], object], seconds: float = 20) -> Screen:
        """Wait for a screen that passes; looks whenever the program has written something."""
        end = time.monotonic() + seconds
        while True:
            screen = self.screen()
            if check(screen):
                return screen
            if time.monotonic() > end:
                raise AssertionError(
                    f"the screen stayed, with the cursor at {screen.x} {screen.y}:\n{screen.text}"
                )
            self._painted.wait(0.5)

    def close(self) -> None:
        """End tmux and the program."""
        if not self.ended:
            with contextlib.suppress(RuntimeError, OSError, queue.Empty):
                self._tell("kill-server")
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._directory.cleanup()
