"""bitsandbytes, imported when something first needs it: without the network, and without its talk."""

from __future__ import annotations

import functools
import importlib
import logging
import sys
from typing import Any

from inference.errors import UnsupportedNumerics

_NEXT_STEP = (
    "Run `{python} -m pip install 'bitsandbytes>=0.50'`, or choose other numerics, e.g. --numerics bf16."
)


@functools.cache
def bitsandbytes() -> Any:
    """The module.

    Raises:
        UnsupportedNumerics: it is missing or its native library cannot be used.
    """
    # It warns on every call that activations are rounded to fp16, and once that `kernels` is missing.
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    try:
        module = _import_offline()
        extension = importlib.import_module("bitsandbytes.cextension")
    except Exception as error:
        raise _unusable(f"cannot be imported: {error}") from error
    broken = getattr(extension, "ErrorHandlerMockBNBNativeLibrary", None)
    if broken is not None and isinstance(extension.lib, broken):
        raise _unusable("has no native library for this machine")
    return module


def _import_offline() -> Any:
    """Import it as if the package ``kernels`` were not installed.

    With it, bitsandbytes asks the Hugging Face Hub for binaries of other kernels while it is imported:
    a connection nobody agreed to, and bits that depend on whether it succeeded.
    """
    before = sys.modules.get("kernels")
    sys.modules["kernels"] = None  # type: ignore[assignment]
    try:
        return importlib.import_module("bitsandbytes")
    finally:
        if before is None:
            del sys.modules["kernels"]
        else:
            sys.modules["kernels"] = before


def _unusable(reason: str) -> UnsupportedNumerics:
    first = reason.strip().splitlines()[0]
    return UnsupportedNumerics(
        f"nf4 and llm-int8 need bitsandbytes, which {first}.", _NEXT_STEP.format(python=sys.executable)
    )
