"""Rules that the records of every incarnation keep, under any query and any fault, as far as none is missing.

- A tuple is admitted under a plan that is committed here then, and one plan is at a time.
- A tuple that came from a peer under a plan has committed it, and is taken over once.
- What LOAD adds up is what the records before it say, and where some are missing, no more than GAPs say.
- Nothing is written of a tuple under a plan that has drained.
- An operator that was killed since it hung has a record of its tuple.
- An incarnation begins with a count of its own; where it ended in order, all its plans have.
- A tuple that its client knows to be admitted has a record of it, unless records are missing and the trace says so.
"""

from collections import Counter
from collections.abc import Mapping

from protos import records as rec
from tests.simulation.agents.agent_checker import ABOUT_TUPLES, Verdicts
from tests.simulation.agents.agents_line import FED
from tests.simulation.agents.stories import Key, Library, Story


def check_rules(library: Library, hung: list[tuple[str, str]], found: Verdicts) -> None:
    """All incarnations. hung: node and boot of those that were killed since an operator hung."""
    for story in library.stories:
        causes = {each.cause for each in story.records if isinstance(each, rec.Lost) and not each.never_left}
        if (story.node, story.boot) in hung and not story.holed and rec.CAUSE_OPERATOR_HUNG not in causes:
            found.say(f"{story.node} {story.epoch}: its operator hung and was killed, and no record says which tuple")
    counts = Counter((story.node, story.epoch) for story in library.stories)
    for (node, epoch), count in counts.items():
        if count > 1:
            found.say(f"{count} incarnations of {node} have the epoch {epoch}")
    for story in library.stories:
        found.counts["record GAP"] += sum(each.kind == rec.GAP for each in story.records)
        _Rules(story, found).run()


def check_admitted(library: Library, numbers: Mapping[Key, int], found: Verdicts) -> None:
    """numbers: of the tuples that their client knows to be admitted."""
    for source, node in FED.values():
        stories = library.of(node)
        for key in (key for key in numbers if key[0] == source):
            there = [each for each in stories if each.epoch == key[1]]
            if there and not any(each.holed or key in each.by_key for each in there):
                found.say(f"{key} was admitted, as its client knows, and no record of {node} says so")
                break


class _Rules:
    def __init__(self, story: Story, found: Verdicts) -> None:
        self.story, self.found = story, found
        self.states: dict[int, int] = {}  # by epoch of the plan, modulo 128
        self.admitted = self.refused = 0
        self.received: set[tuple[int, ...]] = set()
        # Sources that no client feeds.
        self.windows = {each.source for each in story.records if isinstance(each, rec.Window)}

    def run(self) -> None:
        """In the order in which they were written."""
        self._each()
        self._missing()
        open_ = {rec.STATE_PREPARED, rec.STATE_COMMITTED, rec.STATE_DRAINING}
        story = self.story
        if not story.holed and story.sealed == rec.STATE_ENDED and open_ & set(self.states.values()):
            self._say("it has ended in order, and a plan of it has not")

    def _each(self) -> None:
        before: rec.Record | None = None
        for index, record in enumerate(self.story.records[: self.story.whole]):
            if isinstance(record, rec.Received) and isinstance(before, rec.Plan):
                self.found.counts["proven commit"] += before.state == rec.STATE_COMMITTED
            before = record
            self.found.counts["record GAVE_UP"] += record.kind == rec.GAVE_UP
            if record.kind in ABOUT_TUPLES and self.states.get(record.flags & rec.PLAN_EPOCH_MASK) == rec.STATE_DRAINED:
                self._say(f"{record[3:6]} has a record of kind {record.kind} under a plan that had drained")
            if isinstance(record, rec.Plan):
                self._plan(record)
            elif isinstance(record, rec.Admitted):
                self.admitted += 1
                self._admitted(record)
            elif isinstance(record, rec.Received):
                self._received(record)
            elif isinstance(record, rec.Refused):
                self.refused += record.tuples
            elif isinstance(record, rec.Load) and record.flags & rec.FLAG:
                self._load(index, record)

    def _missing(self) -> None:
        """A runtime that finds its ring full drops records and counts them not; what a spool drops it has counted."""
        told = 0
        for index, record in enumerate(self.story.records[: self.story.counted]):
            if isinstance(record, rec.Gap):
                told += record.dropped - 1
                self.found.counts["records that a GAP counts"] += record.dropped
            elif told and isinstance(record, rec.Load) and not index <= record.records_before <= index + told:
                self._say(f"record {index} says that {record.records_before} were before it, GAPs that {told} lack")
                return

    def _plan(self, record: rec.Plan) -> None:
        epoch = record.plan_epoch & rec.PLAN_EPOCH_MASK
        self.states[epoch] = record.state
        self.found.counts[f"plan {rec.STATES[record.state]}"] += 1

    def _admitted(self, record: rec.Admitted) -> None:
        epoch = record.flags & rec.PLAN_EPOCH_MASK
        state = self.states.get(epoch, 0)
        window = record.ref in self.windows
        if state != rec.STATE_COMMITTED and not (window and state == rec.STATE_DRAINING):
            self._say(f"{record[3:6]} was admitted under a plan that is {rec.STATES[state]}")
        if sum(each == rec.STATE_COMMITTED for each in self.states.values()) > 1:
            self._say("two plans admit at a time")

    def _received(self, record: rec.Received) -> None:
        state = self.states.get(record.flags & rec.PLAN_EPOCH_MASK, 0)
        if state not in {rec.STATE_COMMITTED, rec.STATE_DRAINING}:
            self._say(f"{record[3:6]} came under a plan that is {rec.STATES[state]}")
        key = (record.source, record.epoch, record.seq, record.ordinal, record.stream)
        if key in self.received:
            self._say(f"{key} was taken over twice")
        self.received.add(key)

    def _load(self, index: int, record: rec.Load) -> None:
        if record.records_before != index:
            self._say(f"record {index} says that {record.records_before} were written before it")
        if record.admitted != self.admitted % rec.COUNTED:
            self._say(f"{self.admitted} were admitted by the records, {record.admitted} by the sum")
        if record.refused != self.refused % rec.COUNTED:
            self._say(f"{self.refused} were refused by the records, {record.refused} by the sum")

    def _say(self, text: str) -> None:
        self.found.say(f"{self.story.node} {self.story.epoch}: {text}")
