"""Wording of agents' counters, of the reasons why a window gave no result, and of code that was edited."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator.monitoring.status_response import ConnectorStatus

BOOKKEEPING = frozenset({"highest_epoch", "plans_kept", "policing_told"})  # counters that say nothing to people

RAISED = "operator_errors"
CONNECTOR = "connector."  # .DIRECTION.STREAM.EVENT
WORDS = {
    "tuples_refused": "tuples of sources refused; their senders got the reasons",
    "tuples_given_up": "tuples given up on their way to another node: too late for every output",
    "link_full": "tuples lost because the queue to another node was full",
    "sink_tuples_dropped": "results dropped for listeners that are too slow or take another type",
    "tuples_of_unknown_plan": "tuples refused that came of a plan that is not here",
    "tuples_refused_by_peer": "tuples lost since another node does not have their plan: does this one run an old one?",
    "marks_of_unknown_plan": "punctuation for windows came of a plan that is not here",
    "connections_refused": "connections refused or closed for what came over them",
    "connections_unread": "connections closed because their other end does not read",
    "strangers_crowded": "connections closed because too many had not said who they are",
    "not_authorised": "connections closed because their certificate is of somebody else",
    "tls_refused": "connections not made because a certificate was not accepted",
    "tls_plain": "connections not made because one end does not speak TLS",
    "tls_unfinished": "connections that ended during their TLS handshake",
    "tls_broken": "connections closed for bytes that were damaged on their way",
    "links_stalled": "times that a link to another node stood still and was made anew",
    "links_refused": "times that another node refused this one",
    "links_fenced": "times that another node refused this one because one of its name is there: is there a copy of it?",
    "fenced": "connections refused because the incarnation of their node that is here is not an earlier one",
    "peers_began_anew": "nodes that count their starts anew and took the place of one that was gone",
    "payloads_undecodable": "tuples that could not be decoded",
    "payloads_unencodable": "results that could not be encoded",
    RAISED: "times that an operator raised; its tuple was lost",
    "memory_relieved": "queued tuples shed because the queues were beyond their limit",
    "memory_beyond_queues": "times that the process had grown by more than its queues may hold",
    "plans_damaged": "plans on disk that are damaged",
    "plans_not_resumed": "plans on disk that could not be resumed",
    "cpu_not_pinned": "times that a core to run on did not exist",
    "probes_unmatched": "clock probes answered that were not asked",
    "calls_refused": "calls to the agent that it refused: its log says which, and why",
    "calls_unauthorised": "calls to the agent by others than the coordinator",
    "trace_problems": "problems with the trace",
    "files_damaged": "damaged files, set aside",
    "runtimes_stood_still": "runtimes that stood still, were killed and started again",
    "controls_stood_still": "control processes that stood still, were killed and started again",
    "connectors_restarts": "times that the process of the connectors ended and was started again",
    "figures_left_out": "outputs, sources or units left out of the status, which has room for some hundreds",
}
PREFIXES = {
    "state_lost": "new beginnings of operator {}, whose state went with its runtime",
    "policed_arrivals": "tuples of source {} beyond what it declared, shed",
    "policed_results": "results of operator {} beyond what it declared, shed",
    RAISED: "times that operator {} raised",
    "windows_spoilt": "times that a tuple or a function spoilt windows of {}",
}
LOST = {
    "operator_error": "because an operator raised",
    "operator_hung": "because an operator hung",
    "queue_full": "because the queues were full",
    "link_full": "because the queue to another node was full",
    "decode": "because they could not be decoded",
    "join_expired": "waiting for a partner that never came",
    "ordinals": "because an operator returned too many results",
    "no_route": "because another node could not be reached",
    "encode": "because they could not be encoded",
    "stopped": "because their plan was stopped",
}
WITHOUT = {  # of windows
    "removed": "a tuple in it was shed or lost",
    "deadline": "it could not have been in time any more",
    "crowded": "too many windows were open",
    "value": "a tuple lacked its field, or had no number there",
    "memory": "its state grew too large",
    "error": "a function of yours raised",
    "stopped": "its plan was stopped",
}
CONNECTORS = {  # by what was counted
    "received": "came",
    "admitted": "admitted",
    "delivered": "delivered",
    "refused_unreadable": "refused: not of the stream's type",
    "refused_stamp": "refused: no stamp that can be used",
    "refused_by_agent": "refused by the agent",
    "refused_no_agent": "lost while the agent did not answer",
    "stamps_ahead": "with a stamp ahead of this clock",
    "stamps_back": "with a stamp before that of an earlier one",
    "connections_lost": "connections lost",
    "gaps": "gaps of unknown length",
    "lost": "lost",
}
SHED = {  # by policy
    "late": "too late for every output, or for the operator",
    "rate": "above the source's limit",
    "memory": "the queues were full",
    "arrivals": "beyond the declared arrivals",
    "selectivity": "beyond the declared results",
    "window": "windows without a result",
    "window-aware": "before windows that would not have been in time",
    "front": "before windows, the oldest first",
    "random": "before windows, by chance",
    "drop-tail": "before windows, the newest first",
    "outdated": "too late for every output, as a result",
    "replaced": "by a newer tuple, before those of the other inputs came",
    "unmatched": "without a tuple of every other input",
    "stale": "a side input had no value, or one that may be too old",
}
EDITED = (
    "edited since the agent loaded it, and what runs is as it was; to run the new code, start the agent again, write"
    " operators.json anew, plan and deploy; until then the agent refuses this plan when it starts again"
)
ENDS = {"abandoned": "begun and given up", "skipped": "never begun"}


def counters(counts: Mapping[str, int]) -> Iterator[str]:
    """A line for each counter that is not 0; a sum of which the parts are there is left out."""
    connectors = {name: n for name, n in counts.items() if name.startswith(CONNECTOR)}
    others = {name: n for name, n in counts.items() if name not in connectors}
    sums = {name.partition(".")[0] for name in others if "." in name}
    for name, n in others.items():
        if n and name not in BOOKKEEPING and name not in sums:
            yield f"{n:,} {counter(name)}"
    yield from _connectors(connectors)


def apart(connectors: Iterable[ConnectorStatus]) -> Iterator[str]:
    """A line for each that is not connected: since when, and why."""
    for each in connectors:
        if not each.connected:
            span = lasting(each.apart_ns)
            since = f"not connected for {span}" if each.was_connected else f"never connected since it began {span} ago"
            yield f"{_connector(each.direction, each.stream)}: {since}: {each.why or 'it is being connected'}"


def lasting(ns: int) -> str:
    """A span that nobody counts in parts of a second."""
    minutes, seconds = divmod(ns // 10**9, 60)
    return f"{minutes} min" if minutes else f"{seconds} s"


def _connector(direction: str, stream: str) -> str:
    return f"{'source' if direction == 'from' else 'output'} {stream}, its connector"


def _connectors(counts: Mapping[str, int]) -> Iterator[str]:
    """A line for each: what became of its messages."""
    found: dict[str, list[str]] = {}
    for name, n in counts.items():
        direction, _, rest = name.removeprefix(CONNECTOR).partition(".")
        stream, _, event = rest.rpartition(".")
        found.setdefault(_connector(direction, stream), []).append(f"{n:,} {CONNECTORS.get(event, event)}")
    yield from (f"{of}: {', '.join(figures)}" for of, figures in found.items())


def counter(name: str) -> str:
    """What is counted: `tuples lost because the queues were full`."""
    prefix, _, of = name.partition(".")
    if prefix == "lost" and of:
        return f"tuples lost {LOST.get(of, of)}"
    if of and prefix in PREFIXES:
        return PREFIXES[prefix].format(of)
    return WORDS.get(name, name.replace("_", " "))


def without_result(found: Mapping[str, int]) -> Iterator[str]:
    """Of one window operator's counters: how many windows ended without a result, and why; a line each."""
    for end, meant in ENDS.items():
        if n := found.get(end, 0):
            why = {key.removeprefix(f"{end}_"): of for key, of in found.items() if key.startswith(f"{end}_") and of}
            causes = ", ".join(f"{of:,} because {WITHOUT.get(cause, cause)}" for cause, of in sorted(why.items()))
            yield f"{n:,} {end} ({meant})" + (f": {causes}" if causes else "")
