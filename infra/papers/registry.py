"""All reproductions, in the order in which they run: what is quick first."""

from __future__ import annotations

from infra.papers.batching import batch_length, control, streams, theory
from infra.papers.conventional import method_comparison as conventional
from infra.papers.guarantee import adaptation, batches, composed, long_streams, sharing, sweeps, table2, table3
from infra.papers.placement import both_placements, figure6, figure7, section41
from infra.papers.reproduction import Reproduction
from infra.papers.shedding import comparison

PAPERS = {
    "placement": "[P] Placement, sub-deadlines and EDF",
    "conventional": "[P] beside conventional methods for distributed real-time systems",
    "batching": "[A] Batching (ATS)",
    "guarantee": "[Q] Deterministic QoS (QED, PQED)",
    "shedding": "[S] Shedding of aggregate queries",
}

REPRODUCTIONS = (
    Reproduction("placement", "figure6", figure6.run, fixed=True),
    Reproduction("placement", "section41", section41.run, fixed=True),
    Reproduction("placement", "placements", both_placements.run),
    Reproduction("placement", "figure7", figure7.run),
    Reproduction("conventional", "collision", conventional.collision, fixed=True),
    Reproduction("conventional", "largest", conventional.largest, fixed=True),
    Reproduction("conventional", "random", conventional.random_queries),
    Reproduction("guarantee", "table3", table3.run, fixed=True),
    Reproduction("guarantee", "figure9", sharing.run),
    Reproduction("guarantee", "sharing", composed.run),
    Reproduction("guarantee", "table2", table2.run),
    Reproduction("guarantee", "figures5to7", sweeps.run),
    Reproduction("guarantee", "figure8", batches.run),
    Reproduction("guarantee", "long", long_streams.run),
    Reproduction("guarantee", "adaptation", adaptation.run),
    Reproduction("batching", "figures", batch_length.run),
    Reproduction("batching", "control", control.run),
    Reproduction("batching", "streams", streams.run),
    Reproduction("batching", "theory", theory.run),
    Reproduction("batching", "whole", batch_length.run_whole),
    Reproduction("shedding", "windows", comparison.run),
)


def named(names: list[str]) -> list[Reproduction]:
    """Those of the given papers or keys; all for none. Raises ValueError with what there is."""
    known = {each.key for each in REPRODUCTIONS} | {each.paper for each in REPRODUCTIONS}
    for name in names:
        if name not in known:
            raise ValueError(f"unknown: {name}; choose from {', '.join(sorted(known))}")
    return [each for each in REPRODUCTIONS if not names or each.key in names or each.paper in names]
