"""Fixtures shared by all tests. Nothing here downloads: `draftline model fetch` did that before."""

from __future__ import annotations

import os
from pathlib import Path

import hypothesis
import pytest

from inference.api import DEFAULT_MODEL
from lsp_server.engine_host import SHARING_VARIABLE
from tests.tiny_models import make_tiny

# How long one example takes says more about the machine than about the code.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


def _own_core(worker: str) -> None:
    """Give a worker of `pytest -n` a core of its own, and with it one thread, also to what it starts.

    Threads of one pass wait for each other: two processes with two threads each, on two cores, are many
    times slower than one after the other.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is loaded, which is later
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


if "PYTEST_XDIST_WORKER" in os.environ:
    _own_core(os.environ["PYTEST_XDIST_WORKER"])

# Servers of tests, also those that editors start, must not meet each other, or an engine that the user has
# running. The tests of sharing say otherwise, with a directory of their own.
os.environ[SHARING_VARIABLE] = "0"


@pytest.fixture(scope="session")
def tiny_home_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this run keeps conversions of tiny models."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def tiny_home(tiny_home_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Points DRAFTLINE_HOME away from the user's for one test."""
    monkeypatch.setenv("DRAFTLINE_HOME", str(tiny_home_path))
    return tiny_home_path


@pytest.fixture(scope="session")
def looping_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose text runs in circles: drafts are accepted, and rejected at the exits."""
    return make_tiny(tmp_path_factory.mktemp("looping"), gain=1.0, tie_word_embeddings=False)


@pytest.fixture(scope="session")
def real_model() -> str:
    """Name of the real 0.5B; fails with the command to run if it is not on this machine."""
    from inference.weights import store

    if store.locate(DEFAULT_MODEL) is None:
        pytest.fail(f"The real model is missing: run `draftline model fetch {DEFAULT_MODEL}` first.")
    return DEFAULT_MODEL
