"""The spool says how full it is, how old its oldest record, and when it will be full, before it drops anything."""

from node_agent.control.spool.spool_gauge import LOOK_NS, SpoolGauge, SpoolLevel
from node_agent.control.spool.spool_protocol import Incarnation, Segment, Spool
from node_agent.host.log import Log
from protos.segments import Chain

LIMIT = 1000
SECOND = LOOK_NS


class Lines(Log):
    """A log whose lines are read here."""

    def __init__(self) -> None:
        super().__init__("a", "control")
        self.said: list[tuple[str, object]] = []

    def say(self, event: str, text: str, level: str = "", kind: str = "", **fields: object) -> bool:
        self.said.append((level, fields["per_cent"]))
        return True


def _spool(*bytes_: int) -> Spool:
    spool = Spool(LIMIT)
    spool.restore(Incarnation(Chain(5, 0)))
    spool.incarnations[5].segments = [Segment(number, number + 1, each) for number, each in enumerate(bytes_)]
    return spool


def test_the_instant_at_which_it_is_full_is_that_of_the_present_rate() -> None:
    spool = _spool(100)
    gauge = SpoolGauge(spool, Lines())
    assert gauge.look(0) == SpoolLevel(100, LIMIT, 1, None), "no rate is known yet"
    for second in range(1, 61):
        spool.incarnations[5].segments[0].bytes = 100 + 5 * second
        now = gauge.look(second * SECOND)
    assert now == SpoolLevel(400, LIMIT, 60 * SECOND, 120 * SECOND)
    spool.incarnations[5].segments = [Segment(1, 2, 50)]  # collected
    assert gauge.look(61 * SECOND) == SpoolLevel(50, LIMIT, 1, None)
    assert gauge.look(200 * SECOND).full_in_ns is None, "it does not grow"
    spool.incarnations[5].segments = []
    assert gauge.look(201 * SECOND).oldest_ns == 0


def test_the_age_of_what_was_there_when_control_began_is_that_of_its_file() -> None:
    spool = _spool(10, 10)
    ages = {(5, 0): 90 * SECOND, (5, 1): 30 * SECOND}
    gauge = SpoolGauge(spool, Lines(), ages.__getitem__)
    assert gauge.look(1000 * SECOND).oldest_ns == 90 * SECOND
    spool.incarnations[5].segments = [Segment(1, 2, 10), Segment(2, 3, 10)]
    assert gauge.look(1005 * SECOND).oldest_ns == 35 * SECOND


def test_the_log_says_each_stage_once_until_there_is_room_again() -> None:
    spool, log = _spool(0), Lines()
    gauge = SpoolGauge(spool, log)
    for at, used in enumerate((400, 500, 600, 810, 950, 999, 300, 800)):
        spool.incarnations[5].segments[0].bytes = used
        gauge.look(at * SECOND, dropped=used == 999)
    assert log.said == [("warning", 50), ("warning", 81), ("error", 100), ("warning", 80)]
