"""A tuple's way through units of one node that follow each other, in one busy period, by how many came just before it.

Let the tuple be released to the first of the units at r, to unit j of them within E_j of that, due d_j after that. So
every job of it is due by D = r + max_j (E_j + d_j). Let t0 be the last instant up to r at which no job that is due by
D is pending, and F the end of the tuple's last job. From t0 on something due by D is pending: up to r by the choice of
t0, from r on the tuple's own jobs. So up to F the node runs nothing that is due later, but for one instance that began
before t0, and what is due by D and runs was released from t0 on. With a = r - t0 and s = (start of the last job) - t0:

    s = max {C_k : d_k > D - t0} + sum_k gamma_k(n_k) + gamma_last(own - 1),   n_k = alpha_k(min(D - t0 - d_k, s))

as in `response`, where the units are one. Who delays the tuple at several of the units counts once, and one
blocks once. A job of these units that runs in this time is of a tuple that came to the first of them from t0 on: the
jobs of an earlier one are due by D, so they had ended by t0. So alpha of the first bounds n_k of each, and
`own`; what comes to a later one by another way is added (`besides`).

Of the tuples from which jobs of these units run in that time let `since` be how many of the same source came from the
first of them to this one, itself included. Then own <= since + (those of other sources by a), and n_k <= since + (those
of other sources by then) + (those after it). A tuple in the busy period came from t0 on, so t0 is at the latest when
the first of the `since` came: if that one was delayed less than this one, it was not in its way for all of it. `fold`
says what this is worth. It holds for units that run single tuples in the order of their release (batches of one).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, chain

from coordinator.calculus.curves import Curve, Time, TooLongError
from coordinator.calculus.demand import Load, Steps
from coordinator.calculus.response import Rivals, blocked_looks, end_of, released_by
from coordinator.calculus.selectivity import Selectivity

MOST_ENDS = 3000  # of one passage
MOST_NEEDED = 4096
SINGLY = 16  # in the busy period
BEFORE_SINGLY = 16  # before the tuple
_NOW: Time = 0


@dataclass(frozen=True)
class Passage:
    """Through `units`, in order, to the end of operator number `stage` of the last. `after`: E_j, how long after its
    first release a tuple is released to each. `others`: what comes to the first from other sources; `besides`: what
    comes to each not by way of the one before; None: nothing."""

    units: tuple[Steps, ...]
    after: tuple[Time, ...]
    stage: int
    others: Curve | None = None
    besides: tuple[Curve | None, ...] = (None,)

    @property
    def due(self) -> Time:
        """After the first release, for all of its jobs."""
        return max(after + each.task.deadline for after, each in zip(self.after, self.units, strict=True))

    def more(self, t: Time) -> int:
        """Tuples of other sources in a closed window of length t."""
        return self.others.count(t) if self.others is not None and t >= 0 else 0


@dataclass(frozen=True)
class Ends:
    """Of tuples of which `since` of their source came in their busy period, or a few more: released at[i] after its
    beginning they end by `latest[i]`, the greatest of those up to i; `took[i]`: the longest from the release on of
    those from i on."""

    since: int
    at: tuple[Time, ...]
    latest: tuple[Time, ...]
    took: tuple[Time, ...]


def ends(loaded: Load, passage: Passage) -> list[Ends]:
    """By `since`, from 1 on. Raises TooLongError."""
    first, last = passage.units[0], passage.units[-1].task
    others = [each for each in loaded.steps if all(each is not one for one in passage.units)]
    rivals = Rivals.of(others)
    looks = _looks(passage, others, loaded.busy)
    groups = list(_groups(first.counts[-1]))
    if len(looks) * len(groups) > MOST_ENDS:
        raise TooLongError(f"{len(looks)} releases to look at, of up to {first.counts[-1]} tuples")
    found: dict[int, list[tuple[Time, Time]]] = {}
    for a, at, blocked in blocked_looks(first.task, looks, passage.due, others, loaded.busy):
        due, came, more = a + passage.due, first.count(a), passage.more(a)
        for least, since in reversed([each for each in groups if each[0] <= came]):
            own = min(came, since + more)
            if len(passage.units) == 1:
                start = rivals.start(_NOW, blocked + last.work(own - 1), due)
            else:
                start = rivals.start(_NOW, blocked, due, partial(_before, passage, since, a, due))
                own = _own(passage, own, a, start)
            if start < at:
                break  # nothing due by then would still be waiting at that time, of fewer neither
            runs = min(last.work(1, passage.stage + 1), last.work(own) - last.work(own - 1))
            found.setdefault(least, []).append((at, end_of(start, runs, rivals.chores)))
    return [_ends(since, found[since]) for since in sorted(found)]


def _groups(most: int, singly: int = SINGLY) -> Iterator[tuple[int, int]]:
    """One by one first, then ever more together: own jobs are as the largest of a group has them, t0 as the least."""
    least = 1
    while least <= most:
        largest = least + least // singly
        yield least, largest
        least = largest + 1


def _ends(since: int, found: Sequence[tuple[Time, Time]]) -> Ends:
    took = [end - a for a, end in found]
    longest = list(accumulate(reversed(took), max))[::-1]
    return Ends(since, tuple(a for a, _ in found), tuple(accumulate((end for _, end in found), max)), tuple(longest))


def _looks(passage: Passage, others: Sequence[Steps], busy: Time) -> list[Time]:
    """Releases worth a look, ascending: those at which more is due in time, or more may have come before."""
    due = passage.due
    first = passage.units[0]
    more = [] if passage.others is None else list(passage.others.points(busy))
    looks = {0, *first.times, *more}
    looks |= {at + each.task.deadline - due for each in others if not each.task.chore for at in each.times}
    for each, after, beside in zip(passage.units, passage.after, passage.besides, strict=True):
        came = list(chain(first.times, more, each.times, [] if beside is None else beside.points(busy)))
        looks |= {at + each.task.deadline - due for at in came} | {at - after for at in came}
    return sorted(at for at in looks if 0 <= at <= busy)


def _before(passage: Passage, since: int, a: Time, due: Time, start: Time) -> Time:
    """What these units themselves run before the last of the tuple's jobs, which starts then."""
    first, last = passage.units[0], passage.units[-1].task
    own = min(first.count(a), since + passage.more(a))
    done = last.work(_own(passage, own, a, start) - 1)
    for position, each in enumerate(passage.units[:-1]):
        done += each.task.work(_jobs(position, passage, since, a, released_by(each, due, start)))
    return done


def _own(passage: Passage, own: int, a: Time, start: Time) -> int:
    """Jobs of the last unit up to the tuple's, of `own` of the first. What comes to it, or to one before it, by another
    way counts up to when the tuple comes there."""
    for after, beside in zip(passage.after, passage.besides, strict=True):
        own += 0 if beside is None else beside.count(max(0, min(a + after, start)))
    return max(1, min(own, passage.units[-1].count(max(0, min(a + passage.after[-1], start)))))


def _jobs(position: int, passage: Passage, since: int, a: Time, by: Time) -> int:
    """Of a unit before the last, of tuples that came to the first by then, and of what came by another way."""
    if by < 0:
        return 0
    first, each = passage.units[0], passage.units[position]
    later = first.count(by - a) - 1 if by > a else 0
    jobs = min(first.count(by), since + passage.more(by) + later)
    for beside in passage.besides[: position + 1]:
        jobs += 0 if beside is None else beside.count(by)
    return min(each.count(by), jobs)


def fold(
    came: Sequence[Time], found: Sequence[Ends], passes: tuple[Selectivity, ...] = (), wanted: int | None = None
) -> list[Time]:
    """When tuples leave, the first so many (None: all), from when they come, both counted from one instant of a tuple
    (its admission).

    came[q]: the latest at which that one comes which is q before it in its source; what is beyond the list comes no
    later than the last in it. The tuple q before it has released at[i] after t0, so t0 <= came[q] - at[i]; and t0 <=
    came[q + k - 1], as the module's head says, where k tuples have to come for `since` to pass the operators before
    (`passes`). It ends by `latest` after t0. The largest over all cases is what
    holds: of those with at[i] <= came[q] - came[q + k - 1] the second is the lesser, of the others the first. Those far
    before leave with the first of a group that comes no earlier.
    """
    left: list[Time] = []
    cases = [(each.at, each.latest, each.took, _needed(each.since, passes) - 1) for each in found]
    wanted, last = len(came) if wanted is None else min(wanted, len(came)), len(came) - 1
    for q, beyond in _groups(wanted, BEFORE_SINGLY):
        own, worst = came[q - 1], None
        for at, latest, took, earlier in cases:
            first = came[min(q - 1 + earlier, last)]
            split = bisect_right(at, own - first)
            if split and (worst is None or latest[split - 1] + first > worst):
                worst = latest[split - 1] + first
            if split < len(took) and (worst is None or took[split] + own > worst):
                worst = took[split] + own
        assert worst is not None
        left += [worst] * (min(beyond, wanted) - q + 1)
    return left


@cache
def _needed(jobs: int, passes: tuple[Selectivity, ...]) -> int:
    """The fewest tuples in a row of which so many pass."""
    for each in reversed(passes):
        if each.pairs == ((1, 1),):
            continue
        tuples = jobs
        while each(tuples) < jobs and tuples < MOST_NEEDED:
            tuples += 1
        jobs = tuples
    return jobs


__all__ = ["Ends", "Passage", "ends", "fold"]
