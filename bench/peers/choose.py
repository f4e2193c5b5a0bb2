"""Systems to compare with, by what the user writes behind ``--peer``."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from bench.peers.base import Decoder, Editor
from lsp_server.commands.switches import WrongUsage
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from bench.peers.llama_server import LlamaServer
    from bench.peers.openai_completions import CompletionsApi
    from bench.quality.answers import Infiller

ACCEPTED = (
    "llama-server=PROGRAM,MODEL.gguf or llama-server=URL, transformers=DIRECTORY[,fp32|bf16] or"
    " transformers=MODEL.gguf[,fp32|bf16], openai=URL[,MODEL]"
)

Dtype = Literal["fp32", "bf16"]

_QUANTISATION = re.compile(r"(?<![a-z0-9])(i?q\d+(?:_[a-z0-9]+)*|bf16|f16|f32)(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class LlamaServerPeer:
    """A program with a model, or the address of a running one, then without a model."""

    program: str
    model: Path | None
    quantisation: str

    @property
    def name(self) -> str:
        """For tables."""
        return f"llama-server {self.quantisation}".rstrip()


@dataclass(frozen=True)
class TransformersPeer:
    """A model that the library loads."""

    model: Path
    dtype: Dtype

    @property
    def name(self) -> str:
        """For tables."""
        return f"transformers {self.dtype}"


@dataclass(frozen=True)
class OpenAiPeer:
    """An address, and a model's name or ""."""

    url: str
    model: str

    @property
    def name(self) -> str:
        """For tables."""
        return f"openai {self.model}".rstrip()


Peer: TypeAlias = LlamaServerPeer | TransformersPeer | OpenAiPeer


def parse(spec: str) -> Peer:
    """What a ``--peer`` names.

    Raises:
        WrongUsage: it is of no known form, or names files that are not there.
    """
    kind, _, rest = spec.partition("=")
    if rest and kind == "llama-server":
        return _llama_server(spec, rest)
    if rest and kind == "transformers":
        return _transformers(spec, rest)
    if rest and kind == "openai":
        url, _, model = rest.partition(",")
        if not _is_url(url):
            raise WrongUsage(f"--peer {spec}: {url} does not begin with http:// or https://")
        return OpenAiPeer(url, model)
    raise WrongUsage(f"--peer {spec} is not understood; it can be {ACCEPTED}")


def editor_for(spec: str, settings: Settings) -> Editor:
    """A system as an editor's user meets it, with the threads, context and seed of Draftline's settings.

    Raises:
        WrongUsage: the spec names nothing that completes in an editor.
    """
    peer = parse(spec)
    if isinstance(peer, LlamaServerPeer):
        from bench.peers.llama_vim import LlamaVim, VimOptions

        return LlamaVim(peer.name, _started_with(peer, settings), VimOptions(seed=settings.seed))
    if isinstance(peer, OpenAiPeer):
        from bench.peers.openai_editor import OpenAiEditor

        return OpenAiEditor(peer.name, _api(peer))
    raise WrongUsage(f"--peer {spec}: transformers is no editor's system; use llama-server or openai")


def decoder_for(spec: str, settings: Settings) -> Decoder:
    """A system that continues prompts, with the threads and context of Draftline's settings.

    Raises:
        WrongUsage
    """
    peer = parse(spec)
    if isinstance(peer, LlamaServerPeer):
        from bench.peers.llama_decoder import MODES, PLAIN, LlamaDecoder

        modes = MODES if peer.model is not None else (PLAIN,)
        return LlamaDecoder(
            peer.name,
            peer.quantisation,
            lambda speculation: _started_with(peer, settings, speculation),
            modes,
        )
    if isinstance(peer, TransformersPeer):
        from bench.peers.transformers_generate import TransformersDecoder

        return TransformersDecoder(peer.name, peer.model, _threads(settings), peer.dtype)
    from bench.peers.openai_completions import OpenAiDecoder

    return OpenAiDecoder(peer.name, _api(peer))


def infiller_for(spec: str, settings: Settings) -> Infiller:
    """A system that fills gaps as its editor would, with the threads and context of Draftline's settings.

    Raises:
        WrongUsage: the spec names nothing that does.
    """
    peer = parse(spec)
    if isinstance(peer, LlamaServerPeer):
        from bench.peers.llama_vim_infill import LlamaVimInfill

        return LlamaVimInfill(peer.name, peer.quantisation, _started_with(peer, settings))
    if isinstance(peer, OpenAiPeer):
        from bench.peers.openai_editor import OpenAiInfill

        return OpenAiInfill(peer.name, _api(peer))
    raise WrongUsage(f"--peer {spec}: transformers only continues prompts; leave the sets of gaps out")


def quantisation(path: Path) -> str:
    """How a GGUF file stores its weights, as in ``q8_0``: by its metadata, else by its name, else ""."""
    from gguf import LlamaFileType

    from inference.errors import DraftlineError
    from inference.weights.gguf import GgufFile

    try:
        kind = LlamaFileType(int(GgufFile(path).metadata["general.file_type"])).name
        return kind.lower().removeprefix("mostly_").removeprefix("all_")
    except (DraftlineError, OSError, KeyError, ValueError):
        found = _QUANTISATION.search(path.name)
        return found[1].lower() if found else ""


def _llama_server(spec: str, rest: str) -> LlamaServerPeer:
    if _is_url(rest):
        return LlamaServerPeer(rest, None, "")
    program, _, model = rest.rpartition(",")
    found = shutil.which(str(Path(program).expanduser())) if program else None
    if found is None:
        raise WrongUsage(
            f"--peer {spec}: {program or rest} is no program that can be run; write"
            " llama-server=PROGRAM,MODEL.gguf or llama-server=URL"
        )
    path = Path(model).expanduser()
    if not path.is_file():
        raise WrongUsage(f"--peer {spec}: there is no file {model}")
    return LlamaServerPeer(found, path, quantisation(path))


def _transformers(spec: str, rest: str) -> TransformersPeer:
    head, comma, last = rest.rpartition(",")
    dtype: Dtype = "fp32"
    for known in get_args(Dtype):
        if comma and last == known:
            rest, dtype = head, known
    path = Path(rest).expanduser()
    if path.is_file() and path.suffix.lower() != ".gguf":
        raise WrongUsage(f"--peer {spec}: {path} is neither a directory nor a .gguf file")
    if not path.exists():
        raise WrongUsage(f"--peer {spec}: there is no {path}; the last word may be ,fp32 or ,bf16")
    return TransformersPeer(path, dtype)


def _started_with(peer: LlamaServerPeer, settings: Settings, speculation: str = "none") -> LlamaServer:
    from bench.peers.llama_server import LlamaServer

    return LlamaServer(
        peer.program,
        peer.model,
        threads=_threads(settings),
        context=settings.context,
        speculation=speculation,
    )


def _api(peer: OpenAiPeer) -> CompletionsApi:
    from bench.peers.openai_completions import CompletionsApi

    return CompletionsApi(peer.url, peer.model)


def _threads(settings: Settings) -> int:
    # Imported here: it pulls in torch.
    from inference.hardware import default_threads

    return settings.threads or default_threads()


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))
