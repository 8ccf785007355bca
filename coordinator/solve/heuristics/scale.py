"""Large problems: a plan at once, bettered until it is proven or time is up, and a proven bound beside it.

One thread proves bounds (its solver leaves Python's lock free), the other searches: greedy start, annealing, the
places that the bound's own model suggests, then large neighbourhoods. An interrupt from the keyboard ends the search,
and the best plan so far is the result.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor, gcd, isfinite, lcm

from coordinator.errors import InfeasibleError, Mistake, no_placement_in_time
from coordinator.model import routes
from coordinator.model.allocation import Allocation
from coordinator.model.limits import Limits
from coordinator.model.problem import Problem
from coordinator.model.progress import Progress, Watch
from coordinator.solve import sub_deadline_allocation
from coordinator.solve.columns import laxity_shares
from coordinator.solve.heuristics import bound, decomposition, greedy, neighbourhood
from coordinator.solve.heuristics.annealing import Annealing
from coordinator.solve.heuristics.search_state import Score, SearchState
from coordinator.solve.milp import milp

PROVER = "prover"  # a thread; HiGHS heeds no interrupter, so it may go on until the search's time is over
SMALLEST = 400  # choices (nodes beyond the first, summed over items not held) from which on this road is taken
LARGEST_WHOLE = 5000  # items times nodes up to which the whole model is tried as well, and columns go before moves
CLOSE = 1e-6  # to a bound, relative, where the search ends
DESCENT_SECONDS = 3.0  # what it does not find, the neighbourhoods find sooner
FIRST, PARTS, LAXITY = 1 / 10, 0.6, 0.9  # of the time left: whole items at once, part by part, NLR by columns
FIRST_RUN, LONGER = 2.0, 3  # seconds of the first annealing; the last is where less than so many times as much is left
ANNEALED = 0.9  # of the time
REST = 4  # turns of the search, as long as columns are generated
LATE = 14  # items placed anew together for NLR
SIZES = ((8, 4), (12, 8), (24, 6), (6, 20))  # items of a ball, and items that have to give way


def takes(problem: Problem, limits: Limits) -> bool:
    """Whether a problem is for this road: large, every stream may go straight, and no memory, link or ruled-out
    placement could bind, which the state does not know."""
    choices = sum(len(item.nodes) - 1 for index, item in enumerate(problem.items) if index not in problem.held)
    plain = problem.meshed and not problem.stores and not problem.conflicts
    return choices >= SMALLEST and plain and limits.solver == "highs"


def allocate(problem: Problem, limits: Limits, watch: Watch | None = None, patience: float | None = None) -> Allocation:
    """The best plan found in the time given, with proven bounds. Raises InfeasibleError where none is possible,
    OutOfTimeError where none was found, then after `patience` seconds already."""
    search = _Search(problem, limits, watch, limits.seconds if patience is None else patience)
    try:
        search.run()
    except KeyboardInterrupt:
        if search.best is None or search.best[0].over > 0:
            raise
    return search.result()


def _unit(problem: Problem) -> Fraction:
    """What the traffic of every placement is a multiple of."""
    denominator = lcm(*(stream.tuples.denominator for stream in problem.streams))
    return Fraction(gcd(*(int(stream.tuples * denominator) for stream in problem.streams)), denominator)


@dataclass
class _Proof:
    """Filled by the proving thread. `even`: of plans with NLR 0; `any`: of all plans; None: not known yet."""

    even: float | None = None
    even_impossible: bool = False
    any: float | None = None
    impossible: bool = False
    nlr: float = 0.0
    guides: list[dict[int, bound.Label]] = field(default_factory=list)
    placements: list[dict[int, int]] = field(default_factory=list)
    generating: bool = False
    error: Exception | None = None


class _Search:
    def __init__(self, problem: Problem, limits: Limits, watch: Watch | None, patience: float) -> None:
        self.problem, self.limits, self.watch = problem, limits, watch
        self.began = time.monotonic()
        self.until = self.began + limits.seconds
        self.patience = patience
        self.even_ns = milp.proportional(problem)
        self.state = SearchState(problem, self.even_ns)
        self.dice = random.Random(limits.seed)  # noqa: S311 - a search, no secret
        self.proof = _Proof()
        self.unit = _unit(problem)
        self.best: tuple[Score, dict[int, int]] | None = None

    def run(self) -> None:
        """Everything until proven or out of time."""
        stop = self._stop
        greedy.start(self.state, stop)
        self._keep()
        # No daemon: an interpreter that ends while the solver runs crashes. `coordinator` does not wait for it.
        threading.Thread(target=self._prove, name=PROVER).start()
        if self._uneven():
            self._descend()
        self._anneal()
        turn = 0
        while not stop():
            began = time.monotonic()
            self._follow()
            score = self.state.score()
            late = greedy.late(self.state, self.dice, LATE) if turn % 4 or score.over > 0 else []
            if late and (score.over > 0 or score.nlr > self.proof.nlr * (1 + CLOSE)):
                greedy.recreate(self.state, late, self.dice)
            else:
                self._neighbourhood(turn)
            self._keep()
            turn += 1
            self._rest(time.monotonic() - began)

    def _anneal(self) -> None:
        """Runs that get longer, from the best plan each, while one with NLR 0 is possible: the last is the longest, and
        cools until there is just time to finish by neighbourhoods."""
        until, seconds = self._share(ANNEALED), FIRST_RUN
        while not self._stop() and not self.proof.even_impossible and time.monotonic() < until:
            began = time.monotonic()
            left = until - began
            seconds = seconds if LONGER * seconds < left else left

            def passed(began: float = began, seconds: float = seconds) -> float:
                self._follow()
                return 1.0 if self._stop() or self.proof.even_impossible else (time.monotonic() - began) / seconds

            Annealing(self.state, self.dice).run(passed, self._found)
            if self._uneven():
                return
            seconds *= 2

    def _found(self, place: Sequence[int]) -> None:
        self.state.load_placement(dict(enumerate(place)))
        self._keep()

    def _rest(self, turn_s: float) -> None:
        """Leaves the processor to column generation until it gives a placement: Python runs one thread at a time."""
        if self.proof.generating:
            time.sleep(min(REST * turn_s, max(0.0, self.until - time.monotonic())))

    def _neighbourhood(self, turn: int) -> None:
        size, others = SIZES[turn % len(SIZES)]
        items = neighbourhood.ball(self.state, self.dice, size)
        items += neighbourhood.crowd(self.state, items, self.dice, others)
        left = Limits(max(0.1, self.until - time.monotonic()), self.limits.seed + turn)
        neighbourhood.improve(self.state, items, self._due_ns(), self.dice, left)

    def result(self) -> Allocation:
        """The best plan as an allocation."""
        if self.proof.error:
            raise self.proof.error
        if self.proof.impossible:
            raise InfeasibleError([Mistake("infeasible", "no placement and sub-deadlines hold every deadline")])
        if self.best is None or self.best[0].over > 0:
            raise no_placement_in_time(self.limits.seconds)
        score, place = self.best
        self.state.load_placement(place)
        wanted = {index: Fraction(share) for index, share in self.state.wanted_ns().items()}
        d_ns = sub_deadline_allocation.settle(self.problem, place, wanted)
        if d_ns is None:
            raise InfeasibleError(
                [
                    Mistake(
                        "within_tolerance",
                        "the placement found misses a deadline by less than its tolerance",
                        "relax a deadline by 1 us",
                    )
                ]
            )
        hops = routes.direct(self.problem, place)
        nlr = round(score.nlr, 6)
        nlr_bound, traffic_bound = self._bounds(score)
        least = min(nlr, floor(nlr_bound * 1e6) / 1e6)
        found = Allocation(self.problem, place, d_ns, hops, nlr, least, False, "model")
        proven = self._closed(score) and Fraction(traffic_bound or 0.0) > found.traffic - self.unit
        return replace(found, proven=proven, traffic_bound=min(float(found.traffic), traffic_bound or 0.0))

    def _stop(self) -> bool:
        if time.monotonic() >= self.until or self.proof.impossible or self.proof.error:
            return True
        if self.best is None or self.best[0].over > 0:
            return time.monotonic() >= self.began + self.patience
        return self._closed(self.best[0])

    def _bounds(self, score: Score) -> tuple[float, float | None]:
        """NLR and traffic of any plan at least; the traffic of one with NLR 0 where this one has it."""
        return self.proof.nlr, self.proof.even if score.nlr == 0 else self.proof.any

    def _closed(self, score: Score) -> bool:
        """Whether there is no use in searching on. It is a proof where no other traffic lies between."""
        nlr_bound, traffic_bound = self._bounds(score)
        if score.over > 0 or traffic_bound is None or score.nlr > nlr_bound * (1 + CLOSE) + CLOSE:
            return False
        near = max(traffic_bound * 2 * CLOSE + CLOSE, float(self.unit) * (1 - CLOSE))
        return score.traffic < traffic_bound + near

    def _keep(self) -> None:
        """Remembers the state's placement where it is the best, else goes back to that; tells who watches."""
        score = self.state.score()
        if self.best is None or score.better(self.best[0]):
            self.best = score, dict(enumerate(self.state.place))
        elif self.best[0].better(score):
            self.state.load_placement(self.best[1])
        if self.watch:
            score = self.best[0]
            nlr_bound, traffic_bound = self._bounds(score)
            seconds = time.monotonic() - self.began
            self.watch(Progress(seconds, score.over == 0, score.nlr, score.traffic, nlr_bound, traffic_bound))

    def _due_ns(self) -> list[int]:
        """What every item may take at most with NLR as it is."""
        if self.state.score().nlr == 0 and self.state.score().over == 0:
            return self.state.due
        wanted = self.state.wanted_ns()
        return [max(self.state.least[index], int(wanted[index])) for index in range(len(self.state.place))]

    def _follow(self) -> None:
        """What the proof suggests, if anything is new."""
        while self.proof.guides and not self._stop():
            groups, kinds = bound.components(self.problem), bound.kinds(self.problem)
            found = greedy.from_guide(self.state, self.proof.guides.pop(0), groups, kinds)
            if self.best is None or self._uneven() or found.better(self.best[0]):
                self._descend()
            self._keep()
        while self.proof.placements and not self._stop():
            self.state.load_placement(self.proof.placements.pop(0))
            self._descend()

    def _descend(self) -> None:
        until = time.monotonic() + DESCENT_SECONDS
        greedy.descend(self.state, self.dice, lambda: self._stop() or time.monotonic() >= until)
        self._keep()

    def _prove(self) -> None:
        """A linear relaxation first, for a bound at once. Then whole items, part by part, and all together with what
        is proven of the parts; then, where that leaves a gap, the whole model itself, if it is small enough to hope."""
        try:
            self._prove_all()
        except Exception as error:  # raised again where the search ends: no plan with half its proof
            self.proof.error = error

    def _prove_all(self) -> None:
        even = bound.TrafficModel(self.problem, self.even_ns)
        relaxed = self._even(even, False, self.until)
        if self._uneven():
            self._prove_any()
        if self.proof.even_impossible or self._even(even, True, self._share(FIRST)).closed:
            return
        parts = decomposition.Decomposition(even, self.limits, self._raise_even, self.proof.guides.append)
        parts.run(even.prices(relaxed), self._share(PARTS), self._stop)
        self.proof.even_impossible = self.proof.even_impossible or parts.infeasible
        if self.proof.even_impossible:
            return
        parts.cut(even)
        self._even(even, True, self.until)
        if self._small():
            self._whole()

    def _small(self) -> bool:
        return len(self.state.place) * len(self.state.here) <= LARGEST_WHOLE

    def _share(self, part: float) -> float:
        """The instant at which a part of the time that is left is over."""
        now = time.monotonic()
        return now + max(0.0, self.until - now) * part

    def _uneven(self) -> bool:
        """Whether no plan with NLR 0 is known."""
        return self.best is None or self.best[0].nlr > 0 or self.best[0].over > 0

    def _even(self, model: bound.TrafficModel, whole: bool, until: float) -> milp.Bound:
        found = model.bound(self.limits, until, whole)
        self.proof.even_impossible = found.infeasible
        if not found.infeasible:
            self._raise_even(found.value)
        if whole and found.values:
            self.proof.guides.append(model.guide(found))
        return found

    def _raise_even(self, least: float) -> None:
        self.proof.even = max(self.proof.even or 0.0, least)

    def _raise_any(self, least: float) -> None:
        self.proof.any = max(self.proof.any or 0.0, least)

    def _prove_any(self) -> None:
        """Of plans with NLR above 0: stops as soon as one with NLR 0 is found."""
        traffic = bound.TrafficModel(self.problem, laxity_shares.latest_ns(self.problem))
        relaxed = traffic.bound(self.limits, self.until, False)
        self.proof.impossible = self.proof.impossible or relaxed.infeasible
        if relaxed.infeasible:
            return
        self._raise_any(relaxed.value)
        self._prove_laxity(self._share(LAXITY))
        if self._idle():
            return
        parts = decomposition.Decomposition(traffic, self.limits, self._raise_any)
        parts.run(traffic.prices(relaxed), self._share(PARTS), self._idle)
        self.proof.impossible = self.proof.impossible or parts.infeasible

    def _prove_laxity(self, until: float) -> None:
        from coordinator.solve.columns import generation  # loads numpy, which no other plan needs

        def raised(least: float) -> None:
            self.proof.impossible = self.proof.impossible or not isfinite(least)
            self.proof.nlr = max(self.proof.nlr, least if isfinite(least) else 0.0)

        def stop() -> bool:
            return self._idle() or time.monotonic() >= until

        def dived(found: dict[int, int]) -> None:
            self.proof.placements.append(found)
            self.proof.generating = False

        assert self.best is not None  # the search keeps its start before the proof begins
        score, place = self.best
        target = score.nlr if score.over == 0 else len(self.problem.items)
        columns = generation.Generation(self.problem, place, stop, raised, dived)
        self.proof.generating = self._small()
        columns.run(target)
        self.proof.generating = False

    def _idle(self) -> bool:
        """Whether there is nothing left to prove of plans with NLR above 0."""
        return self._stop() or not self._uneven()

    def _whole(self) -> None:
        """The unpruned model with all sub-deadlines at (1)."""
        model = milp.base(self.problem)
        milp.proportional_rows(model)
        found = milp.bound(model, model.traffic(), self.limits, self.until)
        if found.values:
            values = found.values
            self.proof.guides.append({i: ("node", n) for (i, n), one in model.z.items() if values[one] > 0.5})
        self._raise_even(found.value * (1 - bound.SAFETY))
