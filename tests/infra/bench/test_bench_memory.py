"""The memory of an agent, by page."""

import os

import pytest

from infra.bench.agent import memory
from infra.bench.agent.memory import FORKED, OBJECTS, OTHER, OWN

FOUND = {
    "supervisor": {1: OBJECTS, 2: OBJECTS, 3: OTHER},
    "runtime": {2: OBJECTS, 3: OTHER, 4: OBJECTS},
    "control": {3: OTHER, 5: OTHER},
}


def test_a_page_is_divided_among_those_that_have_it() -> None:
    parts = memory.megabytes(FOUND)
    page = memory.PAGE_BYTES / 1e6
    assert parts["supervisor"] == pytest.approx({OWN: page, FORKED: page / 2, OTHER: page / 3})
    assert parts["control"] == pytest.approx({OTHER: page * 4 / 3})
    assert sum(sum(each.values()) for each in parts.values()) == pytest.approx(5 * page)


def test_the_table_has_a_column_for_each_process_and_their_sum() -> None:
    parts = {"supervisor": {"a": 1.0}, "runtime": {"a": 1.0, "b": 3.0}}
    assert memory.table(parts).splitlines() == [
        "| MB | supervisor | runtime | all |",
        "| --- | ---: | ---: | ---: |",
        "| b | 0.0 | 3.0 | 3.0 |",
        "| a | 1.0 | 1.0 | 2.0 |",
        "| **all** | **1.0** | **4.0** | **5.0** |",
    ]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("", OBJECTS), ("[heap]", OBJECTS), ("/usr/bin/python3.11", "the interpreter"), ("/lib/libm.so.6", OTHER),
        ("/v/google/_upb/_message.abi3.so", "protobuf"),
    ],
)  # fmt: skip
def test_the_kind_of_a_mapping(path: str, kind: str) -> None:
    assert memory.kind_of(path) == kind


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_process_has_pages_of_objects_and_of_the_interpreter() -> None:
    assert {OBJECTS, "the interpreter"} <= set(memory.pages(os.getpid()).values())
