"""Whether a side input's value was the latest that had come to its node."""

from protos import records as rec
from tests.simulation.agents.agent_checker import Verdicts
from tests.simulation.agents.agents_line import plan
from tests.simulation.agents.stories import Key, Library, Story
from tests.simulation.agents.street.street_line import STREET_PLANS, StreetLine

NODE, OPERATOR = "b", "near"


class SideCheck:
    """Of `near`: each result has the value of the tuple that was absorbed last before its instance began."""

    def __init__(self, line: StreetLine, library: Library, numbers: dict[Key, int], found: Verdicts) -> None:
        self.line, self.library, self.numbers, self.found = line, library, numbers, found
        self.units: dict[str, int] = {}
        for name in STREET_PLANS:
            local = plan(name).nodes[NODE]
            operator = next(each.id for each in local.operators if each.name == OPERATOR)
            self.units[name] = next(each.id for each in local.units if operator in each.operators)

    def run(self) -> None:
        """All results."""
        for given in self.line.given:
            if given.of != OPERATOR:
                continue
            key: Key = given.lineage[:3]
            expected = [each for story in self.library.with_key(NODE, key) for each in self._expected(story, key)]
            if expected and given.value["beside"] not in expected and None not in expected:
                self.found.say(f"near: {key} has {given.value['beside']} beside it, and not {expected}")
            self.found.counts["results with a side value"] += given.value["beside"] != -1

    def _expected(self, story: Story, key: Key) -> list[int | None]:
        """What may be attached, of each instance of the tuple; None: nobody knows."""
        found: list[int | None] = []
        for record in story.by_key[key]:
            if isinstance(record, rec.Ran) and record.unit == self.units.get(self.library.plan_of(record)):
                found.append(None if story.holed else self._latest(story, record))
        return found

    def _latest(self, story: Story, ran: rec.Ran) -> int | None:
        """-1: nothing had come. Under the plan itself, or one before: what comes under that is news for this one until
        something has come under a later one, as it does before where a node goes on under a plan of its old disk."""
        latest: int | None = -1
        newest = 0  # epoch of what has come so far
        under, lives = self._epoch(ran), story.lives()
        life = lives.get(ran.flags & rec.PLAN_EPOCH_MASK)
        for record in story.records:
            if not isinstance(record, rec.Absorbed) or lives.get(record.flags & rec.PLAN_EPOCH_MASK) != life:
                continue
            if record.at_ns <= ran.start_ns and newest <= self._epoch(record) <= under:
                newest = self._epoch(record)
                latest = self.numbers.get((record.source, record.epoch, record.seq))
        return latest

    def _epoch(self, record: rec.Record) -> int:
        return self.library.epochs.get(record.flags & rec.PLAN_EPOCH_MASK, 0)
