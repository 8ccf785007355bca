"""All reproductions, in the order in which they run: what is quick first."""

from __future__ import annotations

from infra.papers import (
    batching,
    batching_control,
    batching_streams,
    batching_theory,
    guarantee_batches,
    guarantee_composed,
    guarantee_sharing,
    guarantee_sweeps,
    guarantee_table2,
    guarantee_table3,
    placement_figure6,
    placement_figure7,
    placement_section41,
    placement_table,
    shedding,
)
from infra.papers.figures import Reproduction

PAPERS = {
    "placement": "[P] Placement, sub-deadlines and EDF",
    "batching": "[A] Batching (ATS)",
    "guarantee": "[Q] Deterministic QoS (QED, PQED)",
    "shedding": "[S] Shedding of aggregate queries",
}

REPRODUCTIONS = (
    Reproduction("placement", "figure6", placement_figure6.run, fixed=True),
    Reproduction("placement", "section41", placement_section41.run, fixed=True),
    Reproduction("placement", "placements", placement_table.run),
    Reproduction("placement", "figure7", placement_figure7.run),
    Reproduction("guarantee", "table3", guarantee_table3.run, fixed=True),
    Reproduction("guarantee", "figure9", guarantee_sharing.run),
    Reproduction("guarantee", "sharing", guarantee_composed.run),
    Reproduction("guarantee", "table2", guarantee_table2.run),
    Reproduction("guarantee", "figures5to7", guarantee_sweeps.run),
    Reproduction("guarantee", "figure8", guarantee_batches.run),
    Reproduction("batching", "figures", batching.run),
    Reproduction("batching", "control", batching_control.run),
    Reproduction("batching", "streams", batching_streams.run),
    Reproduction("batching", "theory", batching_theory.run),
    Reproduction("shedding", "windows", shedding.run),
)


def named(names: list[str]) -> list[Reproduction]:
    """Those of the given papers or keys; all for none. Raises ValueError with what there is."""
    known = {each.key for each in REPRODUCTIONS} | {each.paper for each in REPRODUCTIONS}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown: {name}; choose from {', '.join(sorted(known))}")
    return [each for each in REPRODUCTIONS if not names or each.key in names or each.paper in names]
