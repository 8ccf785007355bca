"""A run that is compared in many small parts says what it says in one."""

import random

import numpy as np
import pytest

from coordinator.report.facts import raw
from coordinator.report.facts.completeness import judge_all
from coordinator.report.facts.reader import Run, records_of
from coordinator.report.landing.record_array import RECORD_DTYPE
from coordinator.report.verdict import scan_trace
from coordinator.report.witness.admissions import Numbers
from coordinator.report.witness.compare import compare
from protos.records import Admitted
from tests.coordinator.report.alterations import altered
from tests.coordinator.report.witness.test_report_witness import whole
from tests.sampling import sample

ALTERED = 10


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return whole(tmp_path_factory.mktemp("runs") / "whole")


@pytest.mark.parametrize("part", sample(range(6), of=6))
def test_parts_and_pieces_of_any_size_find_the_same(
    part: int, run: Run, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, first = 0, seed + part * ALTERED
    for number in range(first, first + ALTERED):
        draw, other, stories = random.Random(number), run, []
        for _ in range(draw.randrange(4)):
            story, other = altered(other, draw)
            stories.append(story)
        traces = judge_all(other, [scan_trace(each, list(records_of(each)), other.plan) for each in other.incarnations])
        monkeypatch.undo()
        together = compare(other.plan, traces)
        for _ in range(3):
            most, piece = draw.randrange(10, 500), draw.randrange(1, 60)
            monkeypatch.setattr(raw, "PIECE", piece)
            told = f"seed {number}: parts of {most}, pieces of {piece}: {stories}"
            assert compare(other.plan, traces, most) == together, told
        found += bool(together.problems)
    assert found > ALTERED // 10


def test_numbers_that_a_source_left_out(seed: int) -> None:
    for number in range(seed, seed + 200):
        draw = random.Random(number)
        tuples = [(draw.randrange(2), draw.randrange(2), draw.randrange(12)) for _ in range(draw.randrange(30))]
        packed = b"".join(
            Admitted.pack(source_id=source, source=source, epoch=epoch, seq=seq) for source, epoch, seq in tuples
        )
        pieces, at = Numbers(), 0
        while at < len(tuples):
            some = draw.randrange(1, 9)
            pieces.take(at, np.frombuffer(packed, RECORD_DTYPE)[at : at + some])
            at += some
        there = set(tuples)
        firsts = {each: place for place, each in reversed(list(enumerate(tuples)))}
        expected = [
            place
            for (source, epoch, seq), place in firsts.items()
            if (source, epoch, seq - 1) not in there
            and any(other[:2] == (source, epoch) and other[2] < seq for other in there)
        ]
        assert sorted(pieces.skipped().tolist()) == sorted(expected), f"seed {number}: {tuples}"
