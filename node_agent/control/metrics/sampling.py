"""From what control knows and the runtimes answer to samples. Pure: what was asked is in `Asked`."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from node_agent.control.deployment import Deployment
from node_agent.control.metrics.exposition import Page
from node_agent.control.metrics.families import FAMILIES
from node_agent.control.spool.spool_gauge import SpoolLevel
from node_agent.host import ipc
from node_agent.host.files.place_names import place_name
from protos.latency import Verdict

VERDICTS = tuple(Verdict)
WINDOW_ENDS = ("closed", "abandoned", "skipped")
# Latencies are counted in four buckets for each doubling; every fourth edge is served, from 16 us to 69 s.
EDGES_NS = tuple((((1 << octave) - 4) << 12) - 1 for octave in range(3, 25))
OWN_FAMILY = {"tuples_refused": "refused_tuples_total", "tuples_given_up": "given_up_tuples_total"} | {
    "link_full": "link_full_tuples_total"
}
PPM = 1_000_000


class Process(NamedTuple):
    """memory_bytes: resident."""

    name: str
    memory_bytes: int
    cpu_s: float


class Operator(NamedTuple):
    """Calls that were measured, of one plan."""

    plan: str
    name: str
    calls: int
    total_ns: int
    worst_ns: int


class Asked(NamedTuple):
    """Of one agent. statuses: by core, None where a runtime does not answer."""

    node: str
    cores: int
    version: str
    clock: str
    serving: bool
    statuses: Sequence[ipc.Status | None]
    restarts: Mapping[int, int]
    plans: Sequence[Deployment]
    operators: Sequence[Operator]
    processes: Sequence[Process]
    spool: tuple[int, int, int]  # bytes, limit, records dropped
    until_s: float | None = None  # when the certificate ends; None: there is none
    spool_level: SpoolLevel | None = None
    connectors: ipc.Connectors = ipc.Connectors((), 0)


def text(asked: Asked) -> str:
    """The page."""
    page = Page(asked.node, FAMILIES)
    page.add("agent_info", 1, asked.version, asked.clock)
    page.add("agent_serving", asked.serving)
    if asked.until_s is not None:
        page.add("certificate_expiry_timestamp_seconds", asked.until_s)
    for plan in asked.plans:
        page.add("plan_info", 1, plan.hash[:8], plan.query, plan.state.name.lower(), str(plan.epoch))
    left_out = 0
    for core, status in enumerate(asked.statuses):
        place = place_name(asked.node, core)
        page.add("runtime_up", status is not None, place)
        page.add("runtime_restarts_total", asked.restarts.get(core, 0), place)
        if status is not None:
            _place(page, place, status)
            _outputs(page, place, status)
            _counters(page, place, status.counters)
            left_out += status.counters.get("figures_left_out", 0)
    _connectors(page, asked.connectors)
    for operator in asked.operators:
        page.seconds("operator_cpu_seconds", operator.total_ns, operator.plan[:8], operator.name, part="_sum")
        page.add("operator_cpu_seconds", operator.calls, operator.plan[:8], operator.name, part="_count")
        page.seconds("operator_worst_cpu_seconds", operator.worst_ns, operator.plan[:8], operator.name)
    for process in asked.processes:
        page.add("process_resident_memory_bytes", process.memory_bytes, process.name)
        page.add("process_cpu_seconds_total", round(float(process.cpu_s), 3), process.name)
    for name, value in zip(("spool_bytes", "spool_limit_bytes", "dropped_records_total"), asked.spool, strict=True):
        page.add(f"trace_{name}", value)
    if asked.spool_level is not None:
        page.seconds("trace_spool_oldest_seconds", asked.spool_level.oldest_ns)
        if asked.spool_level.full_in_ns is not None:
            page.seconds("trace_spool_full_in_seconds", asked.spool_level.full_in_ns)
    page.add("samples_left_out", page.left_out + left_out)
    return page.text()


def _connectors(page: Page, found: ipc.Connectors) -> None:
    for stream, direction, kind, connected, events, *_ in found.rows:
        page.add("connector_up", connected, stream, direction, kind)
        for event, n in events:
            page.add("connector_messages_total", n, stream, direction, kind, event)
    if found.rows or found.restarts:
        page.add("connectors_restarts_total", found.restarts)


def _place(page: Page, place: str, status: ipc.Status) -> None:
    page.add("runtime_realtime", status.rt, place)
    page.seconds("runtime_uptime_seconds", status.at_ns - status.started_ns, place)
    page.seconds("busy_seconds_total", status.busy_ns, place)
    page.seconds("overhead_seconds_total", status.overhead_ns, place)
    page.seconds("longest_hold_seconds", status.longest_hold_ns, place)
    page.add("queue_bytes", status.queue_bytes, place)
    page.add("queue_limit_bytes", status.queue_limit_bytes, place)
    page.add("trace_records_total", status.records_written, place)
    for hash_, _, _, _, ready, waiting, unacknowledged in status.plans:
        page.add("plan_ready_jobs", ready, place, hash_[:8])
        page.add("plan_waiting_tuples", waiting, place, hash_[:8])
        page.add("plan_unacknowledged_tuples", unacknowledged, place, hash_[:8])
    for hash_, name, admitted, shed, lost, refused, policed in status.sources:
        found = (("admitted", admitted), ("refused", refused), ("shed", shed), ("policed", policed), ("lost", lost))
        for what, n in found:
            page.add(f"source_{what}_tuples_total", n, place, hash_[:8], name)
    for hash_, id_, operators, sub_deadline_ns, queued, runs, shed, lost, *of_sample in status.units:
        timed, timed_ns, _, recent_ns, _ = of_sample
        of = (place, hash_[:8], _unit(id_, operators))
        page.add("unit_queued_jobs", queued, *of)
        page.add("unit_runs_total", runs, *of)
        page.add("unit_shed_tuples_total", shed, *of)
        page.add("unit_lost_tuples_total", lost, *of)
        page.seconds("unit_response_seconds", timed_ns, *of, part="_sum")
        page.add("unit_response_seconds", timed, *of, part="_count")
        page.seconds("unit_worst_response_seconds", recent_ns, *of)
        page.seconds("unit_sub_deadline_seconds", sub_deadline_ns, *of)
    for peer, connected, tuples, held_bytes, unacknowledged, resent in status.links:
        page.add("link_up", connected, place, peer)
        page.add("link_held_tuples", tuples, place, peer)
        page.add("link_held_bytes", held_bytes, place, peer)
        page.add("link_unacknowledged_tuples", unacknowledged, place, peer)
        page.add("link_resent_tuples_total", resent, place, peer)


def _unit(id_: int, operators: Sequence[str]) -> str:
    """First and last operator, as in the report; the number keeps them apart."""
    ends = operators[0] if len(operators) == 1 else f"{operators[0]}..{operators[-1]}" if operators else ""
    return f"{id_} {ends}"


def _outputs(page: Page, place: str, status: ipc.Status) -> None:
    for name, deadline_ns, *verdicts, worst_ns, latencies in status.outputs:
        for verdict, n in zip(VERDICTS, verdicts, strict=True):
            page.add("output_results_total", n, place, name, verdict)
        page.seconds("output_deadline_seconds", deadline_ns, place, name)
        page.seconds("output_worst_latency_seconds", worst_ns, place, name)
        for edge_ns in EDGES_NS:
            below = sum(results for most_ns, results in latencies if most_ns <= edge_ns)
            page.add("output_latency_seconds", below, place, name, part="_bucket", le=repr(edge_ns / 1e9))
        every = sum(results for _, results in latencies)
        page.add("output_latency_seconds", every, place, name, part="_bucket", le="+Inf")
        page.add("output_latency_seconds", every, place, name, part="_count")


def _counters(page: Page, place: str, counters: Mapping[str, int]) -> None:
    """Those with a meaning of their own, by the family of that; the others by their names."""
    for counter, n in sorted(counters.items()):
        kind, _, rest = counter.partition(".")
        if counter in OWN_FAMILY:
            page.add(OWN_FAMILY[counter], n, place)
        elif kind == "shed":
            page.add("shed_tuples_total", n, place, rest)
        elif kind == "lost":
            page.add("lost_tuples_total", n, place, rest)
        elif kind == "degraded":
            page.add("degraded_tuples_total", n, place, rest)
        elif kind == "operator_errors" and rest:
            page.add("operator_errors_total", n, place, rest)
        elif kind.startswith("policed_") and rest:
            page.add("policed_tuples_total", n, place, kind.removeprefix("policed_"), rest)
        elif kind == "windows" and "." in rest:
            _window(page, place, *rest.rpartition(".")[::2], n)
        elif counter not in {"operator_errors", "figures_left_out"}:
            page.add("events_total", n, place, counter)


def _window(page: Page, place: str, operator: str, what: str, n: int) -> None:
    end, _, cause = what.partition("_")
    if what == "opened":
        page.add("windows_opened_total", n, place, operator)
    elif what in WINDOW_ENDS:
        page.add("windows_ended_total", n, place, operator, what)
    elif what in {"empty", "empty_within"}:
        page.add(f"windows_{what}_total", n, place, operator)
    elif what == "load_ppm":
        page.add("window_door_load_ratio", n / PPM, place, operator)
    elif end in WINDOW_ENDS:
        page.add("windows_without_result_total", n, place, operator, end, cause)
    elif what in {"decided", "denied"}:
        page.add("window_door_decisions_total", n, place, operator, what)
    else:
        page.add("window_door_tuples_total", n, place, operator, what)
