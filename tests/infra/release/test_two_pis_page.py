"""The page "Two Pis in ten minutes", walked in a lab with this Python's agents by `make soak`.

What it does has tests in `make test`: the wheel, the playbooks, and the commands on two nodes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from coordinator.lab import namespaces
from infra.release import two_pis

WHY_NOT = namespaces.why_not()


def test_the_page_has_its_blocks() -> None:
    assert len(two_pis.laptop_blocks()) >= 9


@pytest.mark.soak
@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_the_page_from_its_first_step_to_its_last(tmp_path: Path) -> None:
    walked = two_pis.walk(tmp_path, two_pis.Pis(Path(sys.executable).with_name("node-agent")))
    assert walked.ends == [0, 0]
    assert walked.report.completeness.complete and walked.report.conservation.balanced
    (lamp,) = walked.report.outputs.values()
    assert lamp.met > 0  # how many are late is the machine's business
    assert walked.results > 0 and walked.measured
