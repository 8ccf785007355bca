"""What facts refuse, and that they lose nothing of what they take: compiled as well as not."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node_agent.core.facts import MemoryFacts
from protos import records

BITS = (8, 8, 16, 16, 16, 64)  # of kind, flags, ref, source, epoch and seq
HEAD = st.tuples(*(st.integers(0, (1 << bits) - 1) for bits in BITS))
WORDS = st.tuples(*(st.integers(-(2**63), 2**63 - 1),) * 5, st.integers(0, 2**64 - 1))


@given(HEAD, WORDS)
def test_a_record_has_the_numbers_that_it_was_given(head: tuple[int, ...], words: tuple[int, ...]) -> None:
    facts = MemoryFacts()
    facts.write(*head, *words)  # type: ignore[arg-type]
    assert facts.data() == records.RECORD.pack(*head, *words)


@pytest.mark.parametrize("field", range(len(BITS)))
@pytest.mark.parametrize("beyond", [0, 1, 7])
def test_a_number_that_does_not_fit_is_refused_and_writes_nothing(field: int, beyond: int) -> None:
    facts, head = MemoryFacts(), [1] * len(BITS)
    head[field] = (1 << BITS[field]) + beyond
    for value in (head[field], -1):
        head[field] = value
        with pytest.raises((struct.error, OverflowError)):
            facts.write(*head)  # type: ignore[arg-type]
    assert not facts.data()
