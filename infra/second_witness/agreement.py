"""Our truth beside what the witness says: pair by pair, and in all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import degrees, inf, isnan, nan
from statistics import median

from infra.second_witness.pair_file import NearPair, Statement
from sim_vehicles.traffic.measures import CRITICAL_S
from sim_vehicles.traffic.shared_ground import overlaps, sampled
from sim_vehicles.traffic.truth import NEAR_STANDSTILL_MPS, Conflict, Encounter, Limits, conflicts, encounter, needed
from sim_vehicles.world.crossing_angle import LEAST_DEG
from sim_vehicles.world.motion import Motion

COMPARED_TTC_S = 3.0  # up to that; the witness looks 4 s ahead
Names = tuple[str, str]


@dataclass(frozen=True)
class Compared:
    """One near pair, both ways; seconds and metres, infinity for what there is none of.

    ours: whether it is a crossing conflict, theirs: whether the witness has a PET of at most 1.5 s where the lanes
    cross (or, where they do not, over all they share), or both of them within the crossing area at once. Critical: a
    TTC below 1.5 s, of ours in a crossing conflict, of theirs in any pair. `ours_alone`, `theirs_alone`: what the other
    side says to that. `ttc_differences_s`: ours less theirs at instants that have both; `ttc_of_one_side`: instants
    where one has one of at most 3 s and the other has none.
    """

    one: str
    other: str
    ours: bool
    theirs: bool
    ours_critical: bool
    theirs_critical: bool
    our_pet_s: float
    angle_deg: float
    our_ttc_s: float
    their_pet_s: float
    outcome: str
    their_ttc_s: float
    closest_m: float
    ours_alone: str
    theirs_alone: str
    ttc_differences_s: list[float]
    ttc_of_one_side: int


@dataclass(frozen=True)
class Spread:
    """Of differences."""

    number: int
    median: float
    worst: float


@dataclass(frozen=True)
class Agreement:
    """Counts of pairs. `only_ours`, `only_theirs`: by why."""

    near: int
    ours: int
    both: int
    only_ours: Mapping[str, int]
    only_theirs: Mapping[str, int]
    critical_ours: int
    critical_both: int
    critical_only_theirs: Mapping[str, int]
    pet: Spread
    ttc: Spread
    ttc_of_one_side: int


def compared(
    motion: Motion, heard: Iterable[tuple[NearPair, Statement]], limits: Limits | None = None
) -> list[Compared]:
    """Every near pair of a recording."""
    limits = limits or Limits()
    found: dict[Names, list[Conflict]] = {}
    for conflict in conflicts(motion, limits):
        if conflict.kind == "crossing":
            names = min(conflict.ego, conflict.other), max(conflict.ego, conflict.other)
            found.setdefault(names, []).append(conflict)
    return [_compared(motion, pair, said, found.get((pair.one.id, pair.other.id), []), limits) for pair, said in heard]


def agreement(pairs: Sequence[Compared]) -> Agreement:
    """Of one recording or of several."""
    both = [one for one in pairs if one.ours and one.theirs]
    return Agreement(
        near=len(pairs),
        ours=sum(one.ours for one in pairs),
        both=len(both),
        only_ours=Counter(one.ours_alone for one in pairs if one.ours and not one.theirs),
        only_theirs=Counter(one.theirs_alone for one in pairs if one.theirs and not one.ours),
        critical_ours=sum(one.ours_critical for one in pairs),
        critical_both=sum(one.ours_critical and one.theirs_critical for one in pairs),
        critical_only_theirs=Counter(
            one.theirs_alone for one in pairs if one.theirs_critical and not one.ours_critical
        ),
        pet=_spread([one.our_pet_s - one.their_pet_s for one in both if one.their_pet_s < inf]),
        ttc=_spread([each for one in pairs for each in one.ttc_differences_s]),
        ttc_of_one_side=sum(one.ttc_of_one_side for one in pairs),
    )


def _compared(
    motion: Motion, pair: NearPair, said: Statement, crossing: Sequence[Conflict], limits: Limits
) -> Compared:
    met, own_ttc = _our_view(motion, pair, limits)
    their_ttc = said.ttc_of_one_s, said.ttc_of_other_s
    differences, one_side = _ttc_differences(own_ttc, their_ttc)
    our_ttc_s = min((conflict.ttc_s for conflict in crossing), default=inf)
    their_ttc_s = min((their for own, their in _together(own_ttc, their_ttc) if not isnan(own)), default=inf)
    area = said.across or said.joint
    theirs = area.pet_s <= limits.pet_s or (said.across is not None and area.outcome == "both within")
    return Compared(
        one=pair.one.id,
        other=pair.other.id,
        ours=bool(crossing),
        theirs=theirs,
        ours_critical=our_ttc_s < CRITICAL_S,
        theirs_critical=their_ttc_s < CRITICAL_S,
        our_pet_s=min(met.pet_s, met.across_s) if met and not crossing else met.across_s if met else inf,
        angle_deg=degrees(met.angle_rad) if met else 0.0,
        our_ttc_s=our_ttc_s,
        their_pet_s=area.pet_s,
        outcome=area.outcome,
        their_ttc_s=their_ttc_s,
        closest_m=said.closest_m,
        ours_alone=_their_reason(said, limits),
        theirs_alone=_our_reason(met, bool(crossing), limits),
        ttc_differences_s=differences,
        ttc_of_one_side=one_side,
    )


def _our_view(
    motion: Motion, pair: NearPair, limits: Limits
) -> tuple[Encounter | None, tuple[list[float], list[float]]]:
    """The closest encounter of the two, and the TTC of each at the witness's instants: NaN below walking pace."""
    courses = [sampled(motion.tracks[each.id], limits.step_s) for each in (pair.one, pair.other)]
    instants = min(len(pair.one.x_m), len(pair.other.x_m))
    ttc = [nan] * instants, [nan] * instants
    encounters = []
    for a, b in product(*courses):
        shared = overlaps(a, b)
        if (met := encounter(a, b, shared, limits)) is not None:
            encounters.append(met)
        for ego, against, of_ego, at in ((a, b, shared, ttc[0]), (b, a, shared.swapped(), ttc[1])):
            _, seconds = needed(ego, against, of_ego, limits)
            for k in range(instants):
                step = round((pair.begins_s + k * pair.step_s) / limits.step_s) - ego.first
                if 0 <= step < len(ego) and ego.speed_mps[step] >= NEAR_STANDSTILL_MPS:
                    at[k] = float(seconds[step])
    return min(encounters, key=lambda one: (one.across_s, one.pet_s), default=None), ttc


def _ttc_differences(
    ours: tuple[list[float], list[float]], theirs: tuple[list[float], list[float]]
) -> tuple[list[float], int]:
    """Ours less theirs, and the number of instants where one alone has one."""
    differences, one_side = [], 0
    for own, their in _together(ours, theirs):
        if isnan(own) or min(own, their) > COMPARED_TTC_S:
            continue
        if max(own, their) == inf:
            one_side += 1
        else:
            differences.append(own - their)
    return differences, one_side


def _together(
    ours: tuple[list[float], list[float]], theirs: tuple[list[float], list[float]]
) -> Iterator[tuple[float, float]]:
    for own, their in zip(ours, theirs, strict=True):
        yield from zip(own, their, strict=True)


def _their_reason(said: Statement, limits: Limits) -> str:
    """Why the witness does not have a conflict."""
    if said.across is None:
        return "lanes do not cross"
    return f"PET above {limits.pet_s:g} s" if said.across.outcome == "time" else said.across.outcome


def _our_reason(met: Encounter | None, crossing: bool, limits: Limits) -> str:
    """Why it is none, or no critical one, to our truth."""
    if met is None:
        return "boxes share no ground"
    if crossing:
        return "crossing conflict without that TTC"
    if met.pet_s > limits.pet_s:
        return f"PET above {limits.pet_s:g} s"
    angle_deg = degrees(met.angle_rad)
    return (
        "following or merging"
        if angle_deg <= LEAST_DEG
        else "oncoming"
        if angle_deg >= 180 - LEAST_DEG
        else "crossing later"
    )


def _spread(differences: Sequence[float]) -> Spread:
    if not differences:
        return Spread(0, 0.0, 0.0)
    return Spread(len(differences), median(differences), max(differences, key=abs))


__all__ = ["Agreement", "Compared", "Spread", "agreement", "compared"]
