"""A few tasks in the files' own format, written by tests."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from bench.quality.datasets import EDITS, RANDOM_SPAN, SINGLE_LINE

HEAD = "def double(n):\n"
TEST = "def check(candidate):\n    assert candidate(2) == 4\n"

LINE: dict[str, Any] = {
    "task_id": "line/0",
    "prompt": HEAD,
    "suffix": "    return result\n",
    "canonical_solution": "    result = n + n\n",
    "test": TEST,
    "entry_point": "double",
}
SPAN: dict[str, Any] = {
    "task_id": "span/0",
    "prompt": f"{HEAD}    return n",
    "suffix": "\n",
    "canonical_solution": " * 2",
    "test": TEST,
    "entry_point": "double",
}
EDIT: dict[str, Any] = {
    "task_id": "edit/0",
    "instruction": "Triple instead.",
    "context": "",
    "input": "def times(n):\n    return n * 2",
    "output": "def times(n):\n    return n * 3",
    "test": "def check():\n    assert times(2) == 6\n",
}
METHOD: dict[str, Any] = {
    "task_id": "edit/1",
    "instruction": "Return one more.",
    "context": "class Counter:\n    value = 1\n{{Code}}\n",
    "input": "    def next(self):\n        return self.value",
    "output": "    def next(self):\n        return self.value + 1",
    "test": "def check():\n    assert Counter().next() == 2\n",
}


def write_lines(path: Path, *objects: object) -> None:
    """A packed file of JSON lines."""
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(each) + "\n" for each in objects)


def write_tasks(directory: Path) -> Path:
    """All three files, two tasks each."""
    write_lines(directory / SINGLE_LINE, LINE, {**LINE, "task_id": "line/1"})
    write_lines(directory / RANDOM_SPAN, SPAN, {**SPAN, "task_id": "span/1"})
    write_lines(directory / EDITS, EDIT, METHOD)
    return directory
