"""Whether a policed source was held to exactly its curve."""

from typing import NamedTuple

from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.stories import Library, Story

MOST = 2  # stretches of so many periods are looked at, by the plans


class Curve(NamedTuple):
    """Any k * tuples + 1 in a row span at least k * period_ns less the slack, by plan, for k up to MOST."""

    tuples: int
    period_ns: int
    slack_ns: dict[str, int]

    def broken(self, passed: list[int], at_ns: int, slack_ns: int, most: int) -> bool:
        """Whether a tuple at that instant after these would break it."""
        for k in range(1, most + 1):
            if k * self.tuples > len(passed):
                return False
            if at_ns - passed[-k * self.tuples] < k * self.period_ns - slack_ns:
                return True
        return False


def check_police(story: Story, library: Library, source: int, curve: Curve, found: Verdicts) -> None:
    """One incarnation of the source's node. A record that is missing may be of a tuple that passed, so nothing is known
    of what is shed then."""
    shed = {
        (each.epoch, each.seq) for each in story.records
        if isinstance(each, rec.Shed) and each.source == source and each.policy == rec.POLICY_ARRIVALS
    }  # fmt: skip
    passed: list[int] = []
    for record in story.records:
        if not isinstance(record, rec.Admitted) or record.source != source:
            continue
        slack_ns = curve.slack_ns.get(library.plan_of(record), max(curve.slack_ns.values()))
        if (record.epoch, record.seq) in shed:
            found.counts["policed"] += 1
            if not story.holed and not curve.broken(passed, record.at_ns, slack_ns, 2 * MOST + 1):
                found.say(f"{record[3:6]} was shed by policing, and would have conformed")
            continue
        if curve.broken(passed, record.at_ns, slack_ns, MOST) and not story.holed:
            found.say(f"{record[3:6]} was let pass by policing, and does not conform")
        passed.append(record.at_ns)
