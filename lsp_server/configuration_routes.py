"""The routes of settings and workspace folders: what the client says, and what it is asked for."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.settings import SECTION

if TYPE_CHECKING:
    from lsp_server.server import DraftlineServer

_log = logging.getLogger(__name__)

# A client that does not answer workspace/configuration must not keep the model from loading.
_CONFIGURATION_SECONDS = 3.0


def register(server: DraftlineServer) -> None:
    """Add the routes."""
    server.feature(types.INITIALIZED)(_initialized)
    server.feature(types.WORKSPACE_DID_CHANGE_CONFIGURATION)(_did_change_configuration)
    server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)(_did_change_folders)


def set_roots(ls: DraftlineServer) -> None:
    """Take over the client's workspace folders."""
    uris = [folder.uri for folder in ls.workspace.folders.values()]
    if not uris and ls.workspace.root_uri:
        uris = [ls.workspace.root_uri]
    ls.folders.set(uris)
    ls.exclusions.set_roots(ls.folders.roots)
    ls.context.set_roots(list(ls.folders.roots))


async def _initialized(ls: DraftlineServer, params: types.InitializedParams) -> None:
    workspace = ls.client_capabilities.workspace
    dynamic = workspace and workspace.did_change_configuration
    if dynamic and dynamic.dynamic_registration:
        ls.spawn(_follow_changes(ls))
    ls.configure(ls.initial, await _asked(ls))


async def _did_change_configuration(ls: DraftlineServer, params: types.DidChangeConfigurationParams) -> None:
    asked = await _asked(ls)
    ls.configure(ls.initial, params.settings if asked is None else asked)
    ls.learn_all()


async def _did_change_folders(ls: DraftlineServer, params: types.DidChangeWorkspaceFoldersParams) -> None:
    set_roots(ls)
    if (asked := await _asked(ls)) is not None:
        ls.configure(ls.initial, asked)
    ls.learn_all()


async def _asked(ls: DraftlineServer) -> object:
    """The client's settings, None if it cannot be asked or does not answer. Where it has several folders,
    those of each are asked for and kept too."""
    workspace = ls.client_capabilities.workspace
    if not (workspace and workspace.configuration):
        return None
    folders = ls.folders.uris if len(ls.folders.uris) > 1 else []
    items = [types.ConfigurationItem(section=SECTION)]
    items += [types.ConfigurationItem(scope_uri=uri, section=SECTION) for uri in folders]
    try:
        request = ls.workspace_configuration_async(types.ConfigurationParams(items=items))
        answer = await asyncio.wait_for(request, _CONFIGURATION_SECONDS)
    except Exception as error:
        _log.warning("the client did not tell its settings: %s", error or type(error).__name__)
        return None
    ls.folder_values = dict(zip(folders, list(answer)[1:], strict=False))
    return answer[0] if answer else None


async def _follow_changes(ls: DraftlineServer) -> None:
    method = types.WORKSPACE_DID_CHANGE_CONFIGURATION
    registration = types.Registration(
        id="draftline-configuration", method=method, register_options={"section": SECTION}
    )
    try:
        await ls.client_register_capability_async(types.RegistrationParams([registration]))
    except Exception as error:
        _log.info("the client does not announce changes of settings: %s", error)
