"""The tasks: HumanEval-Infilling (Bavarian et al. 2022, arXiv 2207.14255) and EditEval (Li et al. 2023,
InstructCoder, arXiv 2310.20329). The files are not part of Draftline; both are under the MIT licence.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from inference.errors import DraftlineError

SINGLE_LINE = "HumanEval-SingleLineInfilling.jsonl.gz"
RANDOM_SPAN = "HumanEval-RandomSpanInfillingLight.jsonl.gz"
EDITS = "EditEval.jsonl.gz"

_INFILL_FIELDS = ("task_id", "prompt", "suffix", "canonical_solution", "test", "entry_point")
_EDIT_FIELDS = ("task_id", "instruction", "input", "output", "test")

WHERE_FROM = f"""\
The directory holds, each packed with gzip or not:
  {SINGLE_LINE}, {RANDOM_SPAN}
    data/ of the repository openai/human-eval-infilling; fields {", ".join(_INFILL_FIELDS)}
  {EDITS}
    edit_eval/edit_eval.jsonl of the repository qishenghu/InstructCoder;
    fields {", ".join(_EDIT_FIELDS)}, and context where a task has one"""

# Where the edited code goes in the context of an EditEval task.
_CODE = "{{Code}}"


class BadData(DraftlineError):
    """A file of tasks is missing or not what it should be."""

    code = "bad-data"


@dataclass(frozen=True)
class InfillTask:
    """A Python file with a gap: ``prompt + middle + suffix`` is the whole file.

    Attributes:
        middle: the canonical answer.
        test: defines ``check(candidate)``.
        entry_point: the name of the function to check.
    """

    id: str
    prompt: str
    suffix: str
    middle: str
    test: str
    entry_point: str

    def whole(self, text: str) -> str:
        """The file with ``text`` in the gap."""
        return self.prompt + text + self.suffix

    def program(self, text: str) -> str:
        """A program that raises nothing if ``text`` in the gap passes the tests."""
        return f"{self.whole(text)}\n{self.test}\ncheck({self.entry_point})\n"


@dataclass(frozen=True)
class EditTask:
    """Python code and what to change in it.

    Attributes:
        solution: the canonical edited code.
        test: defines ``check()``.
        context: what the code stands in when it is tested, e.g. the class around a method.
    """

    id: str
    instruction: str
    code: str
    solution: str
    test: str
    context: str = _CODE

    def program(self, text: str) -> str:
        """A program that raises nothing if ``text`` as the edited code passes the tests."""
        return f"{self.context.replace(_CODE, text)}\n\n{self.test}\n\ncheck()\n"


Task = TypeVar("Task")


def load_single_line(directory: Path) -> list[InfillTask]:
    """One line of a function is missing.

    The line's own end stays in the document, as on the empty line that a user of an editor opens to type:
    without it the cursor would stand in front of the next line's text, which ends any answer at one line.

    Raises:
        BadData
    """
    return [_open_line(task) for task in _load_infills(directory, SINGLE_LINE)]


def load_random_span(directory: Path) -> list[InfillTask]:
    """Any characters of a function are missing, half lines and several lines too.

    Raises:
        BadData
    """
    return _load_infills(directory, RANDOM_SPAN)


def load_edits(directory: Path) -> list[EditTask]:
    """EditEval.

    Raises:
        BadData
    """
    return _load(
        directory,
        EDITS,
        _EDIT_FIELDS,
        lambda task: EditTask(
            id=task["task_id"],
            instruction=task["instruction"],
            code=task["input"],
            solution=task["output"],
            test=task["test"],
            context=task.get("context") or _CODE,
        ),
    )


def subset(tasks: Sequence[Task], count: int, seed: int) -> list[Task]:
    """``count`` tasks in random order, all if there are fewer; a larger count begins with the same ones."""
    order = list(tasks)
    random.Random(seed).shuffle(order)
    return order[:count]


def _open_line(task: InfillTask) -> InfillTask:
    if not task.middle.endswith("\n"):
        return task
    return replace(task, middle=task.middle[:-1], suffix="\n" + task.suffix)


def _load_infills(directory: Path, name: str) -> list[InfillTask]:
    return _load(
        directory,
        name,
        _INFILL_FIELDS,
        lambda task: InfillTask(
            id=task["task_id"],
            prompt=task["prompt"],
            suffix=task["suffix"],
            middle=task["canonical_solution"],
            test=task["test"],
            entry_point=task["entry_point"],
        ),
    )


def _load(
    directory: Path, name: str, fields: tuple[str, ...], make: Callable[[dict[str, Any]], Task]
) -> list[Task]:
    tasks: dict[str, Task] = {}
    for number, line in _lines(directory, name):
        try:
            data = json.loads(line)
        except ValueError as error:
            raise _bad(f"{name}, line {number}, is not JSON: {error}.") from None
        if not isinstance(data, dict):
            raise _bad(f"{name}, line {number}, is no JSON object.")
        missing = [field for field in fields if not isinstance(data.get(field), str)]
        if missing:
            raise _bad(f"{name}, line {number}, has no text in {', '.join(missing)}.")
        if "def check(" not in data["test"]:
            raise _bad(f"{name}, line {number}: the test defines no check().")
        if data["task_id"] in tasks:
            raise _bad(f"{name}, line {number}: the task_id {data['task_id']} comes twice.")
        tasks[data["task_id"]] = make(data)
    if not tasks:
        raise _bad(f"{name} has no tasks.")
    return list(tasks.values())


def _lines(directory: Path, name: str) -> Iterator[tuple[int, str]]:
    """Non-empty lines with their numbers, of the file or of its unpacked form."""
    packed, plain = directory / name, directory / name.removesuffix(".gz")
    try:
        data = gzip.decompress(packed.read_bytes()) if packed.exists() else plain.read_bytes()
        lines = data.decode("utf-8").split("\n")
    except FileNotFoundError:
        raise _bad(f"{packed} does not exist.") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise _bad(f"{name} in {directory} cannot be read: {error}.") from error
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())


def _bad(message: str) -> BadData:
    return BadData(message, WHERE_FROM)
