"""The receiving end of a link, on its own."""

from node_agent.link.receiver import REFUSED_KEPT, Receiver


def test_refused_numbers_are_kept_as_stretches_the_latest_ones() -> None:
    receiver = Receiver()
    assert receiver.refuse([1, 2, 3, 7, 9, 10]) == [range(1, 4), range(7, 8), range(9, 11)]
    assert list(receiver.refused) == [range(1, 4), range(7, 8), range(9, 11)]
    for number in range(100, 100 + 4 * REFUSED_KEPT, 2):
        receiver.refuse([number])
    assert len(receiver.refused) == REFUSED_KEPT and receiver.refused[-1].start == 98 + 4 * REFUSED_KEPT
