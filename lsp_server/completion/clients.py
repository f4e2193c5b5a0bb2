"""What the known clients do with an inline completion item, and so what each is sent.

LSP 3.18 leaves much open, and clients read it differently. Every client that is known shows several lines
and inserts a plain string as it is (``$``, ``}`` and ``\\`` included), so no profile has a word for either:
the text is always a string, never a snippet. A superseded request is answered ``null`` everywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

CLIENTS = ("vscode", "neovim", "lsp4ij", "emacs", "generic")


@dataclass(frozen=True)
class ClientProfile:
    """One client's habits.

    Attributes:
        name: one of `CLIENTS`, with a version where versions differ.
        filter_text: it compares the text to replace with ``filterText``; others ignore that field.
        replaces_rest: it shows an item whose range goes beyond the cursor as it will be inserted.
        command: it runs an item's ``command`` after inserting it.
        item_list: it wants the items in an ``InlineCompletionList``, not in an array.
        nothing_is_null: no suggestion is ``null``, not ``[]``.
        waits: every request says that it is automatic, also one by the user's own key, and comes after a
            delay of the client's own: waiting for the next key here would only add to it.
        asks_again: its extension asks once more when it hears that an answer has grown.
    """

    name: str
    filter_text: bool = True
    replaces_rest: bool = False
    command: bool = True
    item_list: bool = False
    nothing_is_null: bool = False
    waits: bool = False
    asks_again: bool = False


# A client nobody knows: nothing that could be shown or inserted wrongly.
GENERIC = ClientProfile("generic")
# The text to replace need only be contained, letter by letter, in the filter's text.
VSCODE = ClientProfile("vscode", replaces_rest=True, asks_again=True)
# ``null`` leaves the old ghost text, so nothing must be ``[]``. A range that is not empty is drawn over what
# follows the cursor, more of it than is replaced, so it stays empty.
NEOVIM = ClientProfile("neovim", filter_text=False)
# Before 0.12 Neovim has no inline completion: a plugin asks, which nobody knows.
NEOVIM_0_11 = replace(GENERIC, name="neovim-0.11")
# Text after the cursor that a range covers would be shown in front of the grey text.
LSP4IJ = ClientProfile("lsp4ij", filter_text=False, command=False, waits=True)
# lsp-mode takes the first element of an array without looking whether there is one, and its first versions
# with inline completion read only lists. Eglot has no inline completion of its own.
EMACS = ClientProfile("emacs", filter_text=False, replaces_rest=True, item_list=True, nothing_is_null=True)

_BY_NAME = {"vscode": VSCODE, "neovim": NEOVIM, "lsp4ij": LSP4IJ, "emacs": EMACS, "generic": GENERIC}

# ``clientInfo.name``. VS Code and its descendants send the application's name, LSP4IJ that of the IDE.
_KNOWN = (
    (re.compile(r"visual studio code|vscod|code - oss|code-server|cursor|windsurf", re.IGNORECASE), VSCODE),
    (re.compile(r"n(eo)?vim\b", re.IGNORECASE), NEOVIM),
    (
        re.compile(
            r"lsp4ij|intellij|jetbrains|android studio|pycharm|webstorm|phpstorm|goland|clion|rider|rubymine"
            r"|rustrover|datagrip|dataspell|aqua\b",
            re.IGNORECASE,
        ),
        LSP4IJ,
    ),
    (re.compile(r"emacs|eglot|lsp-mode", re.IGNORECASE), EMACS),
)


def profile_for(chosen: str | None, name: str = "", version: str | None = None) -> ClientProfile:
    """The profile of a client.

    Args:
        chosen: the user's word, one of `CLIENTS`; it wins.
        name: ``clientInfo.name`` of ``initialize``, "" if the client sent none.
        version: ``clientInfo.version``.
    """
    if chosen is not None:
        found = _BY_NAME[chosen]
    else:
        found = next((profile for pattern, profile in _KNOWN if pattern.search(name)), GENERIC)
    return NEOVIM_0_11 if found is NEOVIM and _before_0_12(version) else found


def _before_0_12(version: str | None) -> bool:
    numbers = re.match(r"\D*(\d+)\.(\d+)", version or "")
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < (0, 12)
