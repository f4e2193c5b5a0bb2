"""An online suffix automaton: everything that ever followed the longest match of the current ending.

The automaton of all substrings of a growing sequence (Blumer et al., 1985, "The smallest automaton
recognizing the subwords of a text"), as drafters use it since SAM-Decoding (arXiv 2411.10666). A state stands
for substrings that end at the same places. Walking along a guess is one look-up per token, with the length of
the longest match always known, so that each node of a candidate tree has its own list of continuations.

An index of token pairs (`suffix_index.py`) takes an eighth of the interpreter's work per appended token (24
against 190 instructions, on real prompts; either is little beside reading the token into the model). But each
of its look-ups compares up to 128 places, every node of a tree would need one, and it knows neither how often
something occurred nor what else followed. The automaton has 1.4 states per token, and appending is all that
keeping it between requests needs: see `history.py`.
"""

from __future__ import annotations

# States whose counts follow each new token, the longest match first. Only text that repeats one token over
# and over has more; without a bound such text would cost its square.
MAX_DEPTH = 24


class SuffixAutomaton:
    """States are numbered; 0 is the empty match. Amortised O(1) per appended token.

    Lists by state, to be read only (a state is no object: that would cost more than all the rest):

    Attributes:
        tokens: the sequence.
        next: state behind one more token. Behind state ``s``, all tokens that ever followed its substrings.
        link: the state of the longest substring that is shorter and has occurred elsewhere too; -1 for 0.
        length: of the longest substring of a state.
        end: index just behind the most recent occurrence. Occurrences that end with the last token
            count only once another token has come.
        count: how often it has occurred, likewise.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.next: list[dict[int, int]] = [{}]
        self.link = [-1]
        self.length = [0]
        self.end = [0]
        self.count = [0]
        self._last = 0

    def __len__(self) -> int:
        return len(self.tokens)

    def extend(self, tokens: list[int]) -> None:
        """Append tokens to the sequence."""
        after, link, length, end, count = self.next, self.link, self.length, self.end, self.count
        last, size, states = self._last, len(self.tokens), len(link)
        self.tokens.extend(tokens)
        for token in tokens:
            state, depth = link[last], MAX_DEPTH
            while state > 0 and depth:
                end[state] = size
                count[state] += 1
                state = link[state]
                depth -= 1
            size += 1
            new = states
            states += 1
            after.append({})
            length.append(size)
            end.append(size)
            count.append(1)
            state, target = last, None
            while state >= 0:
                onward = after[state]
                target = onward.get(token)
                if target is not None:
                    break
                onward[token] = new
                state = link[state]
            if target is None:
                link.append(0)
            elif length[target] == length[state] + 1:
                link.append(target)
            else:
                # The shorter substrings of ``target`` now end in one more place than the longer ones.
                clone = states
                states += 1
                link.append(clone)
                after.append(after[target].copy())
                link.append(link[target])
                length.append(length[state] + 1)
                end.append(end[target])
                count.append(count[target])
                link[target] = clone
                while state >= 0 and after[state].get(token) == target:
                    after[state][token] = clone
                    state = link[state]
            last = new
        self._last = last

    def match(self) -> tuple[int, int]:
        """State and length of the longest ending that has occurred before."""
        state = max(self.link[self._last], 0)
        return state, self.length[state]

    def step(self, state: int, length: int, token: int) -> tuple[int, int]:
        """State and length of the longest match of ``length`` matched tokens and one more."""
        after, link = self.next, self.link
        while True:
            target = after[state].get(token)
            if target is not None:
                return target, length + 1
            state = link[state]
            if state < 0:
                return 0, 0
            length = self.length[state]
