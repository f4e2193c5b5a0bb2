"""In which order a prompt shows the text around the cursor."""

from __future__ import annotations

from typing import Literal

# "spm": the suffix first, so that the answer follows the prefix. A new line leaves what stands before it
#     alone; a change behind the cursor makes everything be read again. The best one by the tests of
#     HumanEval-Infilling, and it reads least.
# "psm": prefix, suffix, middle; the answer follows the middle marker.
# "line-in-middle": as "psm", but the cursor's line stands behind the middle marker. While the user types on
#     one line nothing before that line is read again; a new line makes the suffix be read again.
# "lines-in-middle": the same with the last few lines, from an anchor on that stays for a while, so that a
#     new line costs only its own tokens (context/anchor.py).
PromptOrder = Literal["spm", "psm", "line-in-middle", "lines-in-middle"]

PROMPT_ORDERS: tuple[PromptOrder, ...] = ("spm", "psm", "line-in-middle", "lines-in-middle")
