"""A window of VS Code in a headless Chromium: keys go in, what is drawn comes out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.editors.vscode import CHROMIUM, EXTENSION, NODE, QUIET

_HERE = Path(__file__).parent
SIZE = (960, 600)
PATIENCE_SECONDS = 60.0
# JavaScript for the document, as far as it is visible.
TEXT = "window.draftline.look().lines.map(line => line.text).join('\\n')"


class PageError(AssertionError):
    """The page did not do what it was told to."""


@dataclass(frozen=True)
class Shown:
    """What the editor shows.

    Attributes:
        text: lines of the document, those that are visible.
        drawn: the same with the suggestion in them.
        below: lines of the suggestion between lines of the document.
    """

    text: list[str]
    drawn: list[str]
    below: list[str]

    @property
    def ghost(self) -> bool:
        """Whether there is a suggestion."""
        return self.text != self.drawn or bool(self.below)


def shown(seen: dict[str, Any]) -> Shown:
    """From what vscode_watch.js says."""
    lines = seen["lines"]
    return Shown([line["text"] for line in lines], [line["drawn"] for line in lines], seen["below"])


class Page:
    """One window. All waiting is for a condition, and fails after ``PATIENCE_SECONDS``."""

    def __init__(self) -> None:
        assert NODE is not None and CHROMIUM is not None
        command = [NODE, str(_HERE / "vscode_page.mjs"), str(EXTENSION), CHROMIUM, *map(str, SIZE), *QUIET]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def open(self, url: str) -> None:
        """Open a window, and wait for a text editor in it."""
        self._do("open", url=url)
        self.until("() => document.querySelector('.editor-instance .monaco-editor .view-line')?.textContent")
        self.evaluate((_HERE / "vscode_watch.js").read_text(encoding="utf-8"))
        self._do("click", selector=".editor-instance .monaco-editor .view-lines")

    def press(self, *keys: str) -> None:
        """Keys as Playwright names them: "Control+Home", "Tab", "a"."""
        self._do("press", keys=keys)

    def type(
        self, keys: str | Sequence[str], per_second: float = 30, waits: Sequence[float] | None = None
    ) -> None:
        """Characters, or names of keys, at a pace or with ``waits`` in seconds behind each."""
        self._do("type", keys=list(keys), waits=list(waits or [1 / per_second] * len(keys)))

    def click(self, selector: str) -> None:
        """Press the mouse on an element."""
        self._do("click", selector=selector)

    def command(self, title: str) -> None:
        """Run a command of the palette by its whole title."""
        self.press("F1")
        self.until("() => document.querySelector('.quick-input-widget .quick-input-box input:focus')")
        self.type(title, per_second=200)
        row = ".quick-input-list .monaco-list-row.focused"
        self.until(f"title => document.querySelector('{row}')?.ariaLabel?.startsWith(title)", title)
        self.press("Enter")

    def evaluate(self, script: str, value: object = None) -> Any:
        """The value of a JavaScript function, called with ``value``."""
        return self._do("evaluate", script=script, value=value)

    def until(self, script: str, value: object = None, seconds: float = PATIENCE_SECONDS) -> Any:
        """Wait until a JavaScript function is true; its value."""
        try:
            return self._do("until", script=f"v => !!(({script})(v))", value=value, seconds=seconds)
        except PageError as error:
            raise PageError(f"{error}: {script} ({value!r}); the editor shows {self.look()}") from None

    def look(self) -> Shown:
        """What the editor shows now."""
        return shown(self.evaluate("() => window.draftline?.look() ?? { lines: [], below: [] }"))

    def until_text(self, text: str) -> None:
        """Wait until the document, all of which must be visible, is ``text``."""
        self.until(f"text => {TEXT} === text", text)

    def until_ghost(self, seconds: float = PATIENCE_SECONDS) -> Shown:
        """Wait for a suggestion; what is shown with it."""
        self.until(
            "() => { const s = window.draftline.look(); "
            "return s.below.length > 0 || s.lines.some(l => l.text !== l.drawn); }",
            seconds=seconds,
        )
        return self.look()

    def until_no_ghost(self) -> None:
        """Wait until there is no suggestion."""
        self.until(
            "() => { const s = window.draftline.look(); "
            "return s.below.length === 0 && s.lines.every(l => l.text === l.drawn); }"
        )

    def until_icon(self, name: str) -> None:
        """Wait until Draftline's item in the status bar has this icon."""
        item = '.statusbar-item[id^="draftline.draftline"]'
        self.until(f"name => document.querySelector('{item} .codicon-' + name)", name)

    def notices(self) -> list[str]:
        """The texts of the notifications that are open."""
        selector = ".notifications-toasts .notification-list-item-message"
        return list(
            self.evaluate(f"() => [...document.querySelectorAll('{selector}')].map(n => n.textContent)")
        )

    def screenshot(self, path: Path) -> None:
        """Save the window as a PNG."""
        self._do("screenshot", path=str(path))

    def close(self) -> None:
        """End the browser."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _do(self, command: str, **parameters: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **parameters}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise PageError("the browser ended")
        answer = json.loads(line)
        if "error" in answer:
            raise PageError(f"{command}: {answer['error']}")
        return answer["value"]
