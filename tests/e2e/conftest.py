"""Servers and clients for the tests of this directory."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
import pytest_asyncio

_ROOT = str(Path(__file__).parents[2])
if _ROOT not in sys.path:
    sys.path.insert(0, _ROOT)

from tests.e2e.client import Client  # noqa: E402

Start = Callable[..., Awaitable[Client]]


@pytest_asyncio.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Starts servers and ends them with the test: ``await start(fake=True, answer=...)``.

    With ``fake`` the engine is tests/fake_engine.py; its behaviour comes in keyword arguments.
    """
    clients: list[Client] = []

    async def begin(*arguments: str, fake: bool = True, **behaviour: object) -> Client:
        # The user's statistics count what the user does.
        env = {"DRAFTLINE_HOME": str(tmp_path / "home")} if fake else {}
        env |= {f"FAKE_{name.upper()}": str(value) for name, value in behaviour.items()}
        command = ("tests/e2e/fake_server.py",) if fake else ("-m", "lsp_server")
        client = await Client.start(*command, "lsp", *arguments, env=env)
        clients.append(client)
        return client

    yield begin
    for client in clients:
        await client.dispose()


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random model in transformers layout."""
    from tests.tiny_models import make_tiny

    return make_tiny(tmp_path_factory.mktemp("tiny"))
