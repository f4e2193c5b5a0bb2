"""The other side of ``sandbox.run_program``: a script that needs nothing but Python's own library.

Arguments: the program, the file for the verdict, and the limits of CPU seconds, memory and file bytes.
"""

from __future__ import annotations

import os
import sys
import types


def limit(cpu_seconds: int, memory_bytes: int, file_bytes: int) -> None:
    """Bound this process and its children, as far as the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for what, soft, hard in (
        # At the soft limit comes a signal of its own, at the hard one SIGKILL.
        (resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes, file_bytes),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        try:
            resource.setrlimit(what, (soft, hard))
        except (OSError, ValueError):  # macOS knows no limit of the address space; a lower one may hold
            continue


def failure_of(path: str) -> str:
    """Run a program; "" or why it failed."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    try:
        code = compile(source, path, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the last two: nested too deeply
        return "syntax"
    # Not "__main__": examples behind that guard are no part of the answer.
    module = types.ModuleType("answer")
    module.__file__ = path
    sys.modules["answer"] = module
    try:
        exec(code, module.__dict__)
    except MemoryError:
        return "memory"
    except BaseException as error:
        return type(error).__name__
    return ""


def main() -> None:
    """Write the verdict and end at once: threads and exit handlers of the program are not waited for."""
    me = os.getpid()
    program, verdict, *numbers = sys.argv[1:]
    limit(*map(int, numbers))
    sys.argv = [program]
    failure = failure_of(program)
    if os.getpid() == me:  # a fork of the program comes here too
        with open(verdict, "w", encoding="utf-8") as file:
            file.write(failure)
    os._exit(0)


if __name__ == "__main__":
    main()
