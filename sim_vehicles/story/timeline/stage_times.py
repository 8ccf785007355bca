"""Time per stage of one result, from the instant its object was measured to the instant the brake begins.

The result is followed backwards from its OUTPUT record: the unit that gave it, what that unit was triggered by, the
link it came over, and so on to its admission. Each stage is the difference of two neighbouring instants, so the
stages add up to delivered - origin + reaction exactly, in nanoseconds. Only the triggering path is followed: a side
input triggers nothing, and at a join it is the tuple's own lineage, the branch that came last.

| stage | from | to |
|---|---|---|
| sensing | the measurement | the message leaves the station |
| channel | the message leaves the station | it is handed to the node |
| sending | it is handed to the node | ADMITTED |
| handover | it is at the node, or ready there | RAN's release, or SENT: a runtime's inbox, a batch, a join's partner |
| queue | release | start, and the times in between where it was switched away from |
| execution | start | the operator whose output goes on has ended |
| link | SENT at the one node | RECEIVED at the other: both sockets' waiting is included |
| actuation | delivered | the brake begins (the brake's reaction) |

A trace says when a unit ran, not when each of its operators did. The time of a unit of several is shared out in
proportion to what the plan says they cost (`shared_out`), the remainders going to the first ones.

Between nodes of different clocks an origin is an interval. Its middle is taken; what the last such link gets is the
rest of the latency, and `uncertain_ns` says how far either may be off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sim_vehicles.encounter.judgement import Judgement, Stage
from sim_vehicles.inputs.stimuli import HeardMessage
from sim_vehicles.story.timeline.deciding_tuple import DecidingTuple
from sim_vehicles.story.timeline.lineage_trace import LineageTrace, MissingRecordError
from sim_vehicles.story.timeline.run_trace import RunTrace

CLOSE_NS = 1_000  # recording time is written in seconds with decimals: closer than this is the same instant


@dataclass(frozen=True)
class StageTimes:
    """stages: oldest first. latency_ns: their sum without actuation, delivered - origin (middle of its interval).

    uncertain_ns: half the interval, which is the links' between nodes of different clocks; 0 on one clock.
    deadline_ns: of the output, from the origin.
    """

    stages: tuple[Stage, ...]
    latency_ns: int
    uncertain_ns: int
    deadline_ns: int


def explain_lap(trace: RunTrace, found: Judgement, messages: Sequence[HeardMessage]) -> StageTimes:
    """Of the tuple that decided a lap. messages: of the scene. Raises MissingRecordError."""
    assert found.deciding is not None
    delay_ns = 0 if found.brake is None else round(found.brake.by.delay_s * 1e9)
    return explain(trace, DecidingTuple.of(found.deciding), messages, delay_ns)


def explain(
    trace: RunTrace, deciding: DecidingTuple, messages: Sequence[HeardMessage] = (), delay_ns: int = 0
) -> StageTimes:
    """Of one tuple. delay_ns: of the brake. Raises MissingRecordError, which says what is not in the trace."""
    walked = LineageTrace(trace, deciding.lineage(trace.plan))
    last = walked.delivered(int(deciding.ordinal or 0), deciding.output)
    walked.back(*last)
    path = _balanced(walked.path, walked.latency_ns, walked.crossings)
    stages = [*_age(path[0], deciding, messages), *path[1:]]
    if delay_ns:
        stages.append(Stage("actuation", None, (), delay_ns))
    return StageTimes(tuple(stages), walked.latency_ns, walked.uncertain_ns, walked.deadline_ns)


def _balanced(path: list[Stage], latency_ns: int, crossings: list[int]) -> list[Stage]:
    """The path with its last link between different clocks made to fit the latency."""
    rest_ns = latency_ns - sum(stage.ns for stage in path)
    if not rest_ns:
        return path
    if not crossings:
        raise MissingRecordError(
            "contradicting_records", f"the records contradict one another by {rest_ns} ns: a record is damaged"
        )
    place = len(path) - 1 - crossings[0]  # crossings count from the newest
    return [*path[:place], replace(path[place], ns=path[place].ns + rest_ns), *path[place + 1 :]]


def _age(age: Stage, deciding: DecidingTuple, messages: Sequence[HeardMessage]) -> list[Stage]:
    """The age on admission, split as far as the instants of measuring, sending and handing over are known."""
    measured_s, sent_s, handed_s = _instants(deciding, messages)
    if measured_s is None or handed_s is None:
        return [age]
    known_ns = round((handed_s - measured_s) * 1e9)
    if not 0 <= known_ns <= age.ns + CLOSE_NS:
        return [age]
    known_ns = age.ns if abs(known_ns - age.ns) <= CLOSE_NS else known_ns
    channel_ns = 0 if sent_s is None else min(known_ns, max(0, round((handed_s - sent_s) * 1e9)))
    stages = [Stage("sensing", None, (), known_ns - channel_ns)]
    if channel_ns:
        stages.append(Stage("channel", None, (), channel_ns))
    if age.ns > known_ns:
        stages.append(Stage("sending", age.node, (), age.ns - known_ns))
    return stages


def _instants(
    deciding: DecidingTuple, messages: Sequence[HeardMessage]
) -> tuple[float | None, float | None, float | None]:
    """Measured, sent and handed over, in seconds of the recording. The scene holds the messages as they came."""
    measured_s, delivered_s = deciding.measured_s, deciding.delivered_s
    if measured_s is None or deciding.at_s is not None:
        return measured_s, deciding.sent_s, deciding.at_s
    same = [
        message
        for message in messages
        if (message.station, message.object) == (deciding.station, deciding.object)
        and abs(message.measured_s - measured_s) * 1e9 <= CLOSE_NS
        and (delivered_s is None or message.at_s <= delivered_s)
    ]
    if not same:
        return measured_s, None, None
    last = max(same, key=lambda message: message.at_s)
    return measured_s, last.sent_s, last.at_s
