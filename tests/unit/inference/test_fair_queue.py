"""Who is next: those who wait before those who do not, and every client in its turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.api import GenerationRequest
from inference.fair_queue import FairQueue
from inference.pending import PendingGeneration


def waiting(client: str = "", background: bool = False) -> PendingGeneration:
    return PendingGeneration(GenerationRequest((1,), client=client, background=background), lambda _: None)


def taken(queue: FairQueue) -> list[PendingGeneration]:
    return [queue.take() for _ in range(len(queue))]


def filled(*requests: PendingGeneration) -> FairQueue:
    queue = FairQueue()
    for pending in requests:
        queue.append(pending)
    return queue


def test_one_client_is_served_in_order() -> None:
    requests = [waiting() for _ in range(5)]
    assert taken(filled(*requests)) == requests


def test_what_nobody_waits_for_comes_last() -> None:
    prefetch, asked = waiting("a", background=True), waiting("a")
    assert taken(filled(prefetch, asked)) == [asked, prefetch]


def test_a_client_with_many_requests_does_not_hold_up_the_others() -> None:
    many = [waiting("a") for _ in range(4)]
    others = [waiting("b"), waiting("c"), waiting("b")]
    order = [pending.request.client for pending in taken(filled(*many, *others))]
    assert order == ["a", "b", "c", "a", "b", "a", "a"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=12))
def test_nothing_is_lost_and_each_client_keeps_its_order(kinds: list[tuple[str, bool]]) -> None:
    requests = [waiting(client, background) for client, background in kinds]
    queue = filled(*requests)
    for client in "abc":
        assert queue.waiting_for(client) == sum(kind[0] == client for kind in kinds)
    out = taken(queue)
    assert sorted(map(id, out)) == sorted(map(id, requests)) and len(queue) == 0
    asked = [pending.request.background for pending in out]
    assert asked == sorted(asked)
    for client in "abc":
        for background in (False, True):
            wanted = GenerationRequest((1,), client=client, background=background)
            mine = [pending for pending in out if pending.request == wanted]
            assert mine == [pending for pending in requests if pending.request == wanted]


def test_a_withdrawn_request_is_not_served() -> None:
    gone, stays = waiting("a"), waiting("a")
    queue = filled(gone, stays)
    queue.remove(gone)
    assert gone not in queue and list(queue) == [stays]
    with pytest.raises(ValueError, match="not in list"):
        queue.remove(gone)
    assert queue.take() is stays
