"""Prometheus: the page by its own parser, what is documented, hostile requests, and real agents under load."""

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import ssl
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from node_agent.client.client import Sink, Source
from node_agent.control.deployment import Deployment, State
from node_agent.control.metrics import exposition, http_server, sampling
from node_agent.control.metrics.families import FAMILIES
from node_agent.control.metrics.sampling import EDGES_NS, Asked, Operator, Process
from node_agent.control.spool.spool_gauge import SpoolLevel
from node_agent.host import ipc
from node_agent.runtime.links.delivery_counts import DeliveryCounts
from tests.node_agent.live import ROOT, Agent, chain_plan, kinds, spooled, store, store_places, until
from tests.tls_identities import Authority

SECOND = 10**9
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Samples:
    """All samples by name and labels, less the prefix."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type != "unknown", family.name
        for sample in family.samples:
            key = sample.name.removeprefix("shimekiri_"), frozenset(sample.labels.items())
            assert key not in found, "twice"
            found[key] = sample.value
    return found


def of(samples: Samples, name: str, **labels: str) -> float:
    """The sum of a name's samples that have these labels."""
    found = [value for (each, own), value in samples.items() if each == name and own >= frozenset(labels.items())]
    assert found, f"no {name} with {labels}"
    return sum(found)


def status(**changes: Any) -> ipc.Status:
    values: dict[str, Any] = {
        "id": 1, "boot": 2, "rt": True, "started_ns": SECOND, "at_ns": 3 * SECOND, "busy_ns": SECOND // 2,
        "overhead_ns": 7, "queue_bytes": 640, "records_written": 9, "longest_hold_ns": 100_000,
        "plans": (("ab" * 32, 3, 2, "q", 4, 5, 6),), "counters": {}, "queue_limit_bytes": 1 << 20,
    }  # fmt: skip
    return ipc.Status(**{**values, **changes})


def asked(*statuses: ipc.Status | None, **changes: Any) -> Asked:
    values: dict[str, Any] = {
        "node": "a", "cores": len(statuses), "version": "1", "clock": "c", "serving": True, "statuses": statuses,
        "restarts": {0: 2}, "plans": [Deployment("ab" * 32, 3, State.COMMITTED, "q")],
        "operators": [Operator("ab" * 32, "O1", 10, 5 * SECOND, SECOND)], "processes": [Process("control", 4096, 1.5)],
        "spool": (64, 128, 3),
    }  # fmt: skip
    return Asked(**{**values, **changes})


COUNTERS = {
    "shed.late": 3, "shed.window-aware": 4, "lost.operator_error": 5, "degraded.map": 6, "operator_errors": 7,
    "operator_errors.O.1": 7, "policed_arrivals.in": 8, "windows.W.opened": 9, "windows.W.closed": 5,
    "windows.W.abandoned": 4, "windows.W.abandoned_removed": 4, "windows.W.skipped": 0, "windows.W.load_ppm": 1_500_000,
    "windows.W.empty": 3, "windows.W.empty_within": 1, "windows.W.offered": 11, "windows.W.denied": 2,
    "tuples_refused": 12, "tuples_given_up": 13, "link_full": 14, "links_stalled": 15,
    "figures_left_out": 16,
}  # fmt: skip


def full() -> Asked:
    """Something of every family."""
    counts = DeliveryCounts()
    for latency_ns in (10_000, 20_000, 3_000_000, 900 * SECOND):
        counts.add(latency_ns, latency_ns, SECOND)
    return asked(
        status(
            counters=COUNTERS,
            outputs=(("out", SECOND, counts.met, counts.late, 0, counts.worst_ns, tuple(counts.latencies())),),
            units=(("ab" * 32, 1, ("O1", "O2", "O3"), SECOND, 2, 30, 4, 5, 6, 7 * SECOND, 9 * SECOND, 8 * SECOND, 1),),
            sources=(("ab" * 32, "in", 100, 10, 1, 5, 3),),
            links=(("b", True, 5, 500, 3, 2),),
        ),
        None,
        until_s=1.8e9,
        spool_level=SpoolLevel(64, 128, 7 * SECOND, 9 * SECOND),
        connectors=ipc.Connectors((("in", "from", "mqtt", True, (("received", 3),), True, 0, ""),), 77, 2),
    )


def test_a_page_says_what_was_asked() -> None:
    samples = parsed(sampling.text(full()))
    assert of(samples, "runtime_up", place="a") == 1 and of(samples, "runtime_up", place="a.1") == 0
    assert of(samples, "runtime_restarts_total", place="a") == 2
    assert of(samples, "runtime_uptime_seconds") == 2 and of(samples, "busy_seconds_total") == 0.5
    assert of(samples, "plan_info", plan="abababab", query="q", state="committed", epoch="3") == 1
    assert of(samples, "plan_waiting_tuples", plan="abababab") == 5
    assert of(samples, "shed_tuples_total", policy="window-aware") == 4
    assert of(samples, "lost_tuples_total", cause="operator_error") == 5
    assert of(samples, "operator_errors_total", operator="O.1") == 7
    assert of(samples, "policed_tuples_total", declared="arrivals", of="in") == 8
    assert of(samples, "windows_ended_total", operator="W", end="closed") == 5
    assert of(samples, "windows_empty_total", operator="W") == 3
    assert of(samples, "windows_empty_within_total", operator="W") == 1
    assert of(samples, "windows_without_result_total", end="abandoned", cause="removed") == 4
    assert of(samples, "window_door_load_ratio") == 1.5 and of(samples, "window_door_tuples_total") == 11
    assert of(samples, "window_door_decisions_total", what="denied") == 2
    assert of(samples, "source_shed_tuples_total", source="in") == 10
    assert of(samples, "unit_runs_total", unit="1 O1..O3") == 30
    assert of(samples, "unit_response_seconds_sum") == 7 and of(samples, "unit_worst_response_seconds") == 8
    assert of(samples, "link_up", peer="b") == 1 and of(samples, "link_resent_tuples_total") == 2
    assert of(samples, "operator_cpu_seconds_sum", operator="O1") == 5
    assert of(samples, "events_total") == of(samples, "events_total", event="links_stalled") == 15
    assert of(samples, "connector_up", stream="in", direction="from", kind="mqtt") == 1
    assert of(samples, "connector_messages_total", event="received") == 3
    assert of(samples, "connectors_restarts_total") == 2
    assert of(samples, "samples_left_out") == 16 and of(samples, "trace_dropped_records_total") == 3


def test_buckets_of_latencies_are_exact() -> None:
    samples = parsed(sampling.text(full()))
    below = {float(dict(labels)["le"]): value for (name, labels), value in samples.items() if name.endswith("_bucket")}
    assert list(below.values()) == sorted(below.values()) and below[float("inf")] == 4
    for edge_ns in EDGES_NS:
        assert below[edge_ns / 1e9] == sum(each <= edge_ns for each in (10_000, 20_000, 3_000_000))
    for latency_ns in range(1, 1 << 20, 997):
        counts = DeliveryCounts()
        counts.add(latency_ns, 0, SECOND)
        ((most_ns, _),) = counts.latencies()
        assert all((latency_ns <= edge) == (most_ns <= edge) for edge in EDGES_NS)


def test_labels_are_escaped_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    name = 'a "quoted\\n\n{x="y"} \udc80' + "z" * 500
    samples = parsed(sampling.text(asked(status(sources=(("ab" * 32, name, 1, 0, 0, 0, 0),)))))
    (labels,) = (dict(labels) for each, labels in samples if each == "source_admitted_tuples_total")
    assert labels["source"].startswith('a "quoted\\n\n{x="y"} ?zz') and len(labels["source"]) == exposition.MOST_LABEL
    monkeypatch.setattr(exposition, "MOST_SAMPLES", 3)
    many = {f"event{number}": number for number in range(10)}
    samples = parsed(sampling.text(asked(status(counters=many))))
    assert sum(name == "events_total" for name, _ in samples) == 3 and of(samples, "samples_left_out") == 7


def manual() -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Names, labels and helps: of bold rows the labels of all rows that follow, in braces further ones."""
    above: tuple[str, ...] = ()
    for line in (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines():
        if line.startswith("| **"):
            above = tuple(line.split("**")[1].split(", "))
        elif line.startswith("| `"):
            name, text = line.strip("| ").split(" | ")
            name, _, more = name.strip("`").rstrip("}").partition("{")
            yield name, above + (tuple(more.split(", ")) if more else ()), text


def test_the_manual_lists_what_is_served() -> None:
    rows = list(manual())
    assert sorted(rows) == sorted((each.name, each.labels, each.help) for each in FAMILIES)
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text().split("| name |")[0]
    for each in FAMILIES:
        assert (f"`{each.name}`" in page) == (each.kind in (exposition.HISTOGRAM, exposition.SUMMARY)), each.name
    served = {line.split()[2] for line in sampling.text(full()).splitlines() if line.startswith("# TYPE")}
    assert served == {f"shimekiri_{each.name}" for each in FAMILIES}, "each is served, and can be"
    for each in FAMILIES:
        assert each.name.endswith("_total") == (each.kind == exposition.COUNTER), each.name


# -- the server


class _Told:
    def __init__(self) -> None:
        self.asked = 0

    async def page(self) -> str:
        self.asked += 1
        return "x 1\n"

    async def health(self) -> tuple[bool, str]:
        return False, "not well"


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server of its own loop."""
    loop = asyncio.new_event_loop()
    bound = loop.run_until_complete(http_server.serve("127.0.0.1", 0, _Told()))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield bound
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def spoken(port: int, data: bytes) -> bytes:
    """What comes back until the connection is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as end:
        end.sendall(data)
        found = b""
        while piece := end.recv(65536):
            found += piece
    return found


@pytest.mark.parametrize(
    ("request_", "status_"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", b"503"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
        (b"GET /metrics/../x HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", b"405"),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde", b"400"),
        (b"GET /metrics HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (b"GET  /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"get /metrics HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\nHost: x\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nno field\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 65 + b"\r\n", b"400"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", b"400"),
        (b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\na: " + b"x" * 20_000, b"431"),
    ],
)
def test_requests(port: int, request_: bytes, status_: bytes) -> None:
    head, _, body = spoken(port, request_).partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert first.split()[1] == status_ and b"Connection: close" in fields
    assert f"Content-Length: {len(body)}".encode() in fields


def test_silent_ones_are_closed_and_do_not_keep_others_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = [
        socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(3 * http_server.MOST_CONNECTIONS)
    ]
    try:
        assert b" 200 " in spoken(port, b"GET /metrics HTTP/1.1\r\n\r\n")
        for each in silent[: 2 * http_server.MOST_CONNECTIONS]:
            assert not each.recv(10), "closed without an answer"
    finally:
        for each in silent:
            each.close()
    monkeypatch.setattr(http_server, "READ_S", 0.2)
    assert spoken(port, b"GET /met") == b""


def test_what_is_not_read_is_not_kept(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "WRITE_S", 0.2)

    async def large(_: object) -> str:
        return "x" * (16 << 20)  # more than the kernel takes

    monkeypatch.setattr(_Told, "page", large)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            end = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            end.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        until(lambda: len(list(Path("/proc/self/fd").iterdir())) == before + 4)


# -- real agents


def scraped(agent: Agent, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{agent.ready['metrics']}{path}", timeout=20) as answer:
        assert path != "/metrics" or answer.headers["Content-Type"] == exposition.CONTENT_TYPE
        return str(answer.read().decode())


def test_a_real_agent_under_load(tmp_path: Path) -> None:
    store(tmp_path / "s", chain_plan())
    with Agent(tmp_path / "s", "--metrics", "127.0.0.1:0") as agent:
        pages: list[Samples] = []
        with Sink(agent.data, "out") as sink, Source(agent.data, "in") as source:
            for _ in range(5):
                source.send_many(range(200))
                pages.append(parsed(scraped(agent)))
                for _ in range(200):
                    sink.get(20)
            until(lambda: of(parsed(scraped(agent)), "output_results_total") == 1000)
            samples = parsed(scraped(agent))
        assert scraped(agent, "/health") == "ok\n"
        control = next(pid for pid in agent.children() if pid != agent.runtime())
        os.kill(control, signal.SIGKILL)
        until(lambda: control not in agent.children())
        until(lambda: _answers(agent))
        assert of(parsed(scraped(agent)), "source_admitted_tuples_total") == 1000, "on the same port again"
        assert agent.stop() == 0
    for earlier, later in zip(pages, [*pages[1:], samples], strict=True):
        for key, value in earlier.items():
            assert not key[0].endswith("_total") or later[key] >= value, key
    assert of(samples, "source_admitted_tuples_total", source="in") == of(samples, "unit_runs_total") == 1000
    assert of(samples, "output_latency_seconds_count", output="out") == 1000
    assert of(samples, "runtime_up", node="a", place="a") == of(samples, "agent_serving") == 1
    assert {dict(labels)["process"] for name, labels in samples if name == "process_resident_memory_bytes"} == {
        "supervisor", "control", "runtime a",
    }  # fmt: skip
    assert of(samples, "process_resident_memory_bytes") > 1 << 20 and of(samples, "operator_cpu_seconds_count") > 0
    assert kinds(spooled(tmp_path / "s"))["RAN"] == 1000, "the trace says the same"


def _answers(agent: Agent) -> bool:
    try:
        return bool(scraped(agent))
    except OSError:
        return False


def test_places_are_told_apart(tmp_path: Path) -> None:
    plans = [chain_plan("a"), chain_plan("a.1", index=1, sources=[], outputs=[], units=[], operators=[], streams=[])]
    store_places(tmp_path / "s", plans)
    with Agent(tmp_path / "s", "--cores", "2", "--metrics", "127.0.0.1:0") as agent:
        samples = parsed(scraped(agent))
        assert agent.stop() == 0
    assert of(samples, "runtime_up", place="a") == of(samples, "runtime_up", place="a.1") == 1
    assert of(samples, "source_admitted_tuples_total", place="a") == 0
    assert of(samples, "process_resident_memory_bytes", process="runtime a.1") > 1 << 20


def test_under_tls_a_certificate_of_the_ca_may_read_and_nobody_else(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "certs")
    identity, client = authority.node("a"), authority.client()
    other = Authority(tmp_path / "others").client()
    with Agent(tmp_path / "s", "--metrics", "127.0.0.1:0", "--tls", str(identity)) as agent:
        port = agent.ready["metrics"]
        context = ssl.create_default_context(cafile=str(client / "ca.pem"))
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # as it is by default since Python 3.13
        context.load_cert_chain(client / "cert.pem", client / "key.pem")
        samples = parsed(_over_tls(port, context))
        assert of(samples, "runtime_up") == 1 and of(samples, "certificate_expiry_timestamp_seconds") > 1.7e9
        for folder in (None, other):
            context = ssl.create_default_context(cafile=str(client / "ca.pem"))
            if folder is not None:
                context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
            with pytest.raises((ssl.SSLError, OSError)):
                assert _over_tls(port, context), "an empty answer is a connection that was closed"
        with pytest.raises((OSError, http.client.HTTPException)):
            scraped(agent)
        (control,) = (pid for pid in agent.children() if pid != agent.runtime())
        files = Path(f"/proc/{control}/fd")
        before = len(list(files.iterdir()))
        with contextlib.ExitStack() as stack:  # begun handshakes, each of which takes memory there
            for _ in range(4 * http_server.MOST_CONNECTIONS):
                end = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
                with contextlib.suppress(OSError):
                    end.sendall(b"\x16\x03\x01")
            assert len(list(files.iterdir())) <= before + http_server.MOST_CONNECTIONS + 2
            context = ssl.create_default_context(cafile=str(client / "ca.pem"))
            context.load_cert_chain(client / "cert.pem", client / "key.pem")
            assert of(parsed(_over_tls(port, context)), "runtime_up") == 1
        assert agent.stop() == 0
    assert "Traceback" not in agent.log.read_text()


def _over_tls(port: int, context: ssl.SSLContext) -> str:
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
        context.wrap_socket(plain, server_hostname="a.node.shimekiri") as end,
    ):
        end.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        found = b""
        while piece := end.recv(65536):
            found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise OSError("no page")
    return body.decode()


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server_:
        port = server_.getsockname()[1]
        with pytest.raises(AssertionError, match=rf"metrics cannot be served on 127.0.0.1:{port}.*--metrics"):
            Agent(tmp_path / "s", "--metrics", f"127.0.0.1:{port}")
