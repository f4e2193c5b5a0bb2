"""Fixtures of the weights tests: a private home, a recording progress, the real model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inference.api import DEFAULT_MODEL
from inference.weights import catalog, fetch

CORPUS = Path(__file__).parent / "corpus"


def _real_gguf() -> Path | None:
    override = os.environ.get("DRAFTLINE_TEST_GGUF")
    return Path(override) if override else fetch.present(catalog.lookup(DEFAULT_MODEL))


_REAL = _real_gguf()  # before the fixture below hides the user's home


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty DRAFTLINE_HOME and an empty hub cache for each test."""
    directory = tmp_path / "draftline-home"
    monkeypatch.setenv("DRAFTLINE_HOME", str(directory))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    return directory


@pytest.fixture
def real_gguf() -> Path:
    """The default model's own file."""
    if _REAL is None:
        pytest.skip("the real weights are not on this machine (draftline model fetch)")
    return _REAL


class Recorder:
    """A Progress that remembers."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.done = 0
        self.open = 0

    def begin(self, label: str, total: int | None) -> None:
        self.labels.append(label)
        self.open += 1

    def advance(self, count: int) -> None:
        assert count >= 0
        self.done += count

    def end(self) -> None:
        self.open -= 1


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def corpus_texts() -> list[str]:
    """The contents of the corpus, line ends as they are."""
    return [path.read_bytes().decode() for path in sorted(CORPUS.glob("*.txt"))]
