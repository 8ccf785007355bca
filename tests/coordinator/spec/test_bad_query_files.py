"""Every way in which the two files can be wrong: exit code 2, the file and line, what is wrong, and the mend."""

# ruff: noqa: E501 - tables: a line per mistake

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.errors import BadInputError
from coordinator.spec import input_files
from tests.coordinator.wording import Wording, facts, mended, printed
from tests.sampling import sample

Files = Callable[[str, str], tuple[Path, Path]]
Fact = tuple[str, int, str, str]
QUERY_WORDING, CLUSTER_WORDING = Wording("validate", "query.yaml"), Wording("validate", "cluster.yaml")
NO_QUERY_WORDING, OPERATORS_WORDING = Wording("validate", "no query"), Wording("validate", "operators.json")

QUERY = """\
shimekiri: 1
query: sorting
sources:
  belt: {at: a, type: json, arrival: {burst: 2, period: 500 ms}}
  scale: {at: b, type: json, arrival: {burst: 1, period: 500 ms}}
operators:
  weigh: {run: pass, in: belt, cost: 1 ms, nodes: [a]}
  light: {run: filter, in: weigh, cost: 1 ms, with: {keep: 1, of: 2}}
  check: {run: pass, in: scale, cost: 1 ms}
outputs:
  arm: {from: light, at: b, deadline: 100 ms}
  log: {from: check, at: a, deadline: 1 s}
"""
CLUSTER = """\
shimekiri: 1
nodes:
  a: {address: "127.0.0.1:7700", cap: 0.9}
  b: {address: "127.0.0.1:7710"}
links: [{between: [a, b], latency: 1 ms, bandwidth: 100 Mbit/s}]
operators: operators.json
security: insecure-loopback
"""
OPERATORS = """{"shimekiri": 1, "codecs": ["json", "my.Box"], "operators": {
 "my.sort": {"version": "1", "kind": "map", "inputs": {"box": "json"}, "side": {"arm": "json"}, "output": "json",
             "with": {"limit": {"type": "number", "default": 0.5, "required": false}, "name": {"type": "string",
             "required": true}}},
 "my.pack": {"version": "1", "kind": "map", "inputs": {"box": "my.Box"}, "side": {}, "output": "my.Box", "with": {}},
 "my.both": {"version": "1", "kind": "join", "inputs": {"left": "json", "right": "json"}, "side": {}, "output": "json",
             "with": {}}}}
""".replace('"kind"', '"code": "' + "0" * 64 + '", "kind"')


def _refused(
    files: Files, query: str = QUERY, cluster: str = CLUSTER, operators: str = OPERATORS
) -> tuple[list[Fact], list[str]]:
    """File, line, code and subject of every problem, and what is printed."""
    paths = files(query, cluster)
    (paths[0].parent / "operators.json").write_text(operators)
    try:
        input_files.read_files(*paths)
    except BadInputError as error:
        assert error.exit_code == 2
        assert mended(error.problems)
        return [facts(problem) for problem in error.problems], printed(error, paths[0].parent)
    return [], []


def test_the_files_as_they_stand_are_right(files: Files) -> None:
    assert _refused(files) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "subject"),
    [
        ("run: filter", "run: filtre", 8, "unknown_operator", "operators.light.run"),
        ("in: belt", "in: light", 7, "cycle", "operators.weigh.in"),
        ("in: belt", "in: belts", 7, "unknown_stream", "operators.weigh.in"),
        ("nodes: [a]", "nodes: [zz]", 7, "unknown_node", "operators.weigh.nodes"),
        ("nodes: [a]", "nodes: [a.1]", 7, "unknown_node", "operators.weigh.nodes"),
        ("nodes: [a]", "nodes: [a], forbid_nodes: [a, b]", 7, "may_run_nowhere", "operators.weigh.forbid_nodes"),
        ("nodes: [a]", "forbid_nodes: [c]", 7, "unknown_node", "operators.weigh.forbid_nodes"),
        ("nodes: [a]", "memory: 1 kg", 7, "unknown_unit", "operators.weigh.memory"),
        ("{at: a, type: json,", "{at: c, type: json,", 4, "unknown_node", "sources.belt.at"),
        ("from: light, at: b", "from: light, at: c", 11, "unknown_node", "outputs.arm.at"),
        ("deadline: 100 ms", "deadline: 0 ms", 11, "not_above_zero", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: -5 ms", 11, "not_above_zero", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: 100", 11, "missing_unit", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: '100'", 11, "no_quantity", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: 100 parsecs", 11, "unknown_unit", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: soon", 11, "no_quantity", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: [100 ms]", 11, "no_quantity", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: 0.5 ns", 11, "too_fine", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: 99999999999 h", 11, "too_large_quantity", "outputs.arm.deadline"),
        ("belt, cost: 1 ms", "belt, cost: .nan", 7, "not_finite", "operators.weigh.cost"),
        ("belt, cost: 1 ms", "belt, cost: .inf", 7, "not_finite", "operators.weigh.cost"),
        ("belt, cost: 1 ms", "belt, cost: inf ms", 7, "no_quantity", "operators.weigh.cost"),
        ("belt, cost: 1 ms", "belt, cost: 0 ms", 7, "not_above_zero", "operators.weigh.cost"),
        ("belt, cost: 1 ms", "belt, hang: 500 us", 7, "hang_too_short", "operators.weigh"),
        ("scale: {at: b", "belt: {at: b", 5, "key_twice", ""),
        ("in: belt,", "in: belt, in: belt,", 7, "key_twice", ""),
        ("  check:", "  scale:", 9, "name_twice", "operators.scale"),
        (", arrival: {burst: 1, period: 500 ms}", "", 5, "missing_key", "sources.scale.arrival"),
        ("{burst: 1, period: 500 ms}", "{burst: 1}", 5, "arrival_keys", "sources.scale.arrival"),
        ("{burst: 1, period: 500 ms}", "{burst: 0, period: 500 ms}", 5, "out_of_range", "sources.scale.arrival.burst"),
        ("{burst: 1, period: 500 ms}", "{rate: .nan}", 5, "not_finite", "sources.scale.arrival.rate"),
        ("{burst: 1, period: 500 ms}", "{rate: -3}", 5, "out_of_range", "sources.scale.arrival.rate"),
        ("{burst: 1, period: 500 ms}", "{trace: none.txt}", 5, "unreadable_recording", "sources.scale.arrival.trace"),
        ("{burst: 1, period: 500 ms}", "{jcp: {period: 1 ms, min_gap: 1 ms}}", 5, "gap_above_period", "sources.scale.arrival.jcp"),
        ("type: json, arrival: {burst: 2", "type: jsn, arrival: {burst: 2", 4, "unknown_codec", "sources.belt.type"),
        ("{keep: 1, of: 2}", "{kep: 1, of: 2}", 8, "unknown_parameter", "operators.light.with"),
        ("{keep: 1, of: 2}", "{keep: one, of: 2}", 8, "parameter_type", "operators.light.with"),
        ("{keep: 1, of: 2}", "{keep: true, of: 2}", 8, "parameter_type", "operators.light.with"),
        ("{keep: 1, of: 2}", "{keep: 3, of: 2}", 8, "bad_filter", "operators.light.with"),
        ("run: pass, in: belt", "run: my.sort, in: belt, with: {limit: .nan, name: x}", 7, "parameter_type", "operators.weigh.with"),
        ("run: pass, in: belt", "run: my.sort, in: belt", 7, "missing_parameter", "operators.weigh.with"),
        ("run: pass, in: belt", "run: my.sort, with: {name: x}, in: belt, side: {arn: scale}", 7, "unknown_side_input", "operators.weigh.side.arn"),
        ("run: pass, in: belt", "run: my.sort, with: {name: x}, in: belt, side: {arm: skale}", 7, "unknown_stream", "operators.weigh.side.arm"),
        ("run: pass, in: belt", "run: my.pack, in: belt", 7, "type_mismatch", "operators.weigh.in"),
        ("run: pass, in: belt", "run: pass, in: [belt, scale]", 7, "wrong_number_of_inputs", "operators.weigh.in"),
        ("run: pass, in: belt", "run: union, in: belt", 7, "too_few_inputs", "operators.weigh.in"),
        ("run: pass, in: belt", "run: union, in: [belt, belt]", 7, "stream_read_twice", "operators.weigh.in"),
        ("run: pass, in: belt", "run: join, in: [belt, scale]", 7, "no_common_source", "operators.weigh.in"),
        ("run: pass, in: belt", "run: my.both, in: {left: belt, rigth: scale}", 7, "unknown_input", "operators.weigh.in.rigth"),
        ("  log: {from: check", "  log: {from: light", 9, "unread_stream", "operators.check"),
        ("from: light", "from: belt", 11, "output_of_source", "outputs.arm.from"),
        ("from: light", "from: ligth", 11, "unknown_stream", "outputs.arm.from"),
        ("outputs:", "output:", 10, "unknown_key", "output"),
        ("run: filter", "chain: filter", 8, "options_of_chain_member", "operators.light"),
        ("  check: {run", "  O1..O3: {chain: [pass, pass], in: belt, cost: 1 ms}\n  check: {run", 9,
         "chain_length", "operators.O1..O3.chain"),
        ("run: pass, in: belt", "in: belt", 7, "run_or_chain", "operators.weigh"),
        ("nodes: [a]", "nodes: []", 7, "no_node", "operators.weigh.nodes"),
        ("nodes: [a]", "hang: 1 ms", 7, "hang_too_short", "operators.weigh"),
        ("nodes: [a]", "state: migrate", 7, "migrate", "operators.weigh.state"),
        ("nodes: [a]", "within: 50 ms", 7, "not_available_yet", "operators.weigh.within"),
        ("deadline: 100 ms", "deadline: 100 ms, wait: 1", 11, "missing_unit", "outputs.arm.wait"),
        ("deadline: 100 ms", "deadline: 100 ms, throughput: 3", 11, "throughput_without_latency", "outputs.arm"),
        ("deadline: 100 ms", "deadline: 100 ms, throughput: 0, latency: 0 s", 11, "out_of_range", "outputs.arm.throughput"),
        ("deadline: 100 ms", "deadline: 100 ms, latency: 3 ms", 11, "latency_without_throughput", "outputs.arm"),
        ("deadline: 100 ms", "deadline: 100 ms, queue: 3 B", 11, "queue_holds_no_tuple", "outputs.arm.queue"),
        ("deadline: 100 ms", "wait: 100 ms", 11, "missing_key", "outputs.arm.deadline"),
        ("deadline: 100 ms", "deadline: 100 ms, age: 99 ms", 11, "age_below_deadline", "outputs.arm.age"),
        ("deadline: 100 ms", "deadline: 100 ms, age: -1 ms", 11, "not_above_zero", "outputs.arm.age.limit"),
        ("deadline: 100 ms", "deadline: 100 ms, age: .nan", 11, "not_finite", "outputs.arm.age.limit"),
        ("deadline: 100 ms", "deadline: 100 ms, age: {without: [belt]}", 11, "missing_key", "outputs.arm.age.limit"),
        ("deadline: 100 ms", "deadline: 100 ms, age: {limit: 1 s, without: []}", 11, "too_short", "outputs.arm.age.without"),
        ("deadline: 100 ms", "deadline: 100 ms, age: {limit: 1 s, without: [blet]}", 11, "source_not_behind", "outputs.arm.age.without"),
        ("deadline: 100 ms", "deadline: 100 ms, age: {limit: 1 s, without: [scale]}", 11, "source_not_behind", "outputs.arm.age.without"),
        ("deadline: 100 ms", "deadline: 100 ms, age: {limit: 1 s, without: [belt]}", 11, "no_source_left", "outputs.arm.age.without"),
        ("deadline: 100 ms", "deadline: 100 ms, reaction: 0 s", 11, "not_above_zero", "outputs.arm.reaction.limit"),
        ("deadline: 100 ms", "deadline: 100 ms, reaction: soon", 11, "no_quantity", "outputs.arm.reaction.limit"),
        ("deadline: 100 ms", "deadline: 100 ms, reaction: {limit: 1 s, without: [light]}", 11, "source_not_behind", "outputs.arm.reaction.without"),
        ("shimekiri: 1", "shimekiri: 2", 1, "other_version", "shimekiri"),
        ("query: sorting", "query: ''", 2, "bad_name", "query"),
        ("nodes: [a]", "selectivity: {at_most: 0.5}", 7, "wrong_shape", "operators.weigh.selectivity.at_most"),
        ("nodes: [a]", "selectivity: {at_most: [[5]]}", 7, "wrong_shape", "operators.weigh.selectivity.at_most.0.1"),
        ("nodes: [a]", "selectivity: {at_most: [[5, 2, 1]]}", 7, "wrong_shape", "operators.weigh.selectivity.at_most.0"),
        ("nodes: [a]", "nodes: a", 7, "wrong_shape", "operators.weigh.nodes"),
        ("nodes: [a]", "sync: {timeout: 50 ms}", 7, "sync_kind", "operators.weigh.sync"),
        ("nodes: [a]", "sync: {on: all, within: 5 ms}", 7, "sync_kind", "operators.weigh.sync"),
        ("nodes: [a]", "sync: {on: all, keep: 3}", 7, "keep_without_within", "operators.weigh.sync"),
        ("nodes: [a]", "sync: {within: 5 ms, keep: 5000}", 7, "out_of_range", "operators.weigh.sync.keep"),
        ("nodes: [a]", "sync: {each: 5 ms, timeout: 9 ms}", 7, "timeout_of_each", "operators.weigh.sync"),
        ("nodes: [a]", "sync: any", 7, "wrong_shape", "operators.weigh.sync"),
        ("nodes: [a]", "sync: all", 7, "sync_of_map", "operators.weigh.sync"),
        ("nodes: [a]", "sync: all, window: {time: 5 s}", 7, "sync_of_window", "operators.weigh"),
        ("run: pass, in: belt", "run: join, sync: all, in: [belt, light]", 7, "cycle", "operators.weigh.in"),
        ("run: filter, in: weigh, cost: 1 ms, with: {keep: 1, of: 2}", "run: join, in: [weigh, belt], sync: all", 8, "several_ways_to_fusion", "operators.light.in"),
        ("  log: {from", "  log {from", 12, "not_yaml", ""),
    ],
)  # fmt: skip
def test_query(files: Files, old: str, new: str, line: int, code: str, subject: str) -> None:
    assert QUERY.count(old) == 1, old
    found, lines = _refused(files, query=QUERY.replace(old, new))
    assert ("query.yaml", line, code, subject) in found
    QUERY_WORDING.check(f"{old} -> {new}", lines)


@pytest.mark.parametrize(
    ("text", "line", "code"),
    [
        ("", 1, "empty_file"),
        ("# nothing\n", 1, "empty_file"),
        ("just words", 1, "no_keys"),
        ("- 1\n- 2\n", 1, "no_keys"),
        ("a: [1, 2\nb: 3\n", 2, "not_yaml"),
        ("a: \x00", 1, "not_yaml"),
    ],
)
def test_not_a_query(files: Files, text: str, line: int, code: str) -> None:
    found, lines = _refused(files, query=text)
    assert found == [("query.yaml", line, code, "")]
    NO_QUERY_WORDING.check(text, lines)


@pytest.mark.parametrize(
    ("text", "line", "refused"),
    [
        ("a: " + 64 * "[" + 64 * "]", 1, False),
        ("a:\n  " + 65 * "[" + 65 * "]", 2, True),
        ("{a: " * 100_000, 1, True),
        ("- " * 3000, 1, True),
        ("\n".join(" " * depth + "a:" for depth in range(1000)), 1, True),
    ],
    ids=["64 brackets", "65 brackets", "braces", "dashes", "indentation"],
)
def test_what_is_nested_too_deep_is_refused_at_once(files: Files, text: str, line: int, refused: bool) -> None:
    found, lines = _refused(files, query=text)
    assert (("query.yaml", line, "not_yaml", "") in found) is refused, lines


@pytest.mark.parametrize("section", ["sources", "operators", "outputs"])
def test_an_empty_section(files: Files, section: str) -> None:
    lines = QUERY.splitlines()
    start = lines.index(f"{section}:")
    end = next((i for i in range(start + 1, len(lines)) if not lines[i].startswith(" ")), len(lines))
    found, _ = _refused(files, query="\n".join([*lines[:start], f"{section}: {{}}", *lines[end:]]))
    assert ("query.yaml", start + 1, "too_short", section) in found


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "subject"),
    [
        ("cap: 0.9", "cap: .nan", 3, "not_finite", "nodes.a.cap"),
        ("cap: 0.9", "cap: 1.5", 3, "out_of_range", "nodes.a.cap"),
        ("cap: 0.9", "speed: .inf", 3, "not_finite", "nodes.a.speed"),
        ("cap: 0.9", "speed: 0", 3, "out_of_range", "nodes.a.speed"),
        ("cap: 0.9", "cores: 0", 3, "out_of_range", "nodes.a.cores"),
        ("cap: 0.9", "cores: 65", 3, "out_of_range", "nodes.a.cores"),
        ("cap: 0.9", "core_link: 1 us", 3, "core_link_of_one_core", "nodes.a.core_link"),
        ("cap: 0.9", "cores: 2, core_link: -1 us", 3, "negative", "nodes.a.core_link"),
        ("cap: 0.9", "memory: 256", 3, "missing_unit", "nodes.a.memory"),
        ("cap: 0.9", "memory: 256 MeB", 3, "unknown_unit", "nodes.a.memory"),
        ("cap: 0.9", "policy: edff", 3, "unknown_policy", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: bts, fi: 3 ms}", 3, "unknown_policy_parameter", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: ats, share: 2 %}", 3, "unknown_policy_parameter", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: edf, phi: 3 ms}", 3, "unknown_policy_parameter", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: bts, phi: 3}", 3, "bad_policy_duration", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: bts, phi: 0 ms}", 3, "bad_policy_duration", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: bts, k: 0}", 3, "bad_policy_number", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: bts, k: 1.5}", 3, "bad_policy_number", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: adaptive, share: 0.02}", 3, "bad_policy_share", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: adaptive, share: 100 %}", 3, "bad_policy_share", "nodes.a.policy"),
        ("cap: 0.9", "policy: {name: edf, batch: all}", 3, "bad_policy_number", "nodes.a.policy"),
        ("cap: 0.9", "policy: {k: 5}", 3, "no_policy_name", "nodes.a.policy"),
        ("cap: 0.9", "policy: [edf]", 3, "no_policy_name", "nodes.a.policy"),
        ("cap: 0.9", "policy: 'bts:k=5,k=6'", 3, "policy_parameter_twice", "nodes.a.policy"),
        ("cap: 0.9", "policy: 'bts:5'", 3, "bad_policy_parameter", "nodes.a.policy"),
        ("cap: 0.9", "kap: 0.9", 3, "unknown_key", "nodes.a.kap"),
        ("cap: 0.9", "emulate: {cost_per_tuple: 1}", 3, "missing_unit", "nodes.a.emulate.cost_per_tuple"),
        ("cap: 0.9", "cpu: -1", 3, "out_of_range", "nodes.a.cpu"),
        ("between: [a, b]", "between: [a, c]", 5, "unknown_node", "links.0.between"),
        ("between: [a, b]", "between: [a, a]", 5, "link_to_itself", "links.0.between"),
        ("latency: 1 ms", "latency: 1", 5, "missing_unit", "links.0.latency"),
        ("latency: 1 ms", "latency: -1 ms", 5, "negative", "links.0.latency"),
        ("100 Mbit/s", "100", 5, "missing_unit", "links.0.bandwidth"),
        ("100 Mbit/s", "0 Mbit/s", 5, "not_above_zero", "links.0.bandwidth"),
        ("127.0.0.1:7700", "192.168.1.7:7700", 3, "insecure_off_loopback", "nodes.a.address"),
        ("127.0.0.1:7700", "pi1.local:7700", 3, "insecure_off_loopback", "nodes.a.address"),
        ("127.0.0.1:7700", "127.0.0.1", 3, "no_host_and_port", "nodes.a.address"),
        ("127.0.0.1:7700", "127.0.0.1:77000", 3, "no_host_and_port", "nodes.a.address"),
        ("127.0.0.1:7700", "127.0.0.1:7710", 4, "address_twice", "nodes.b.address"),
        ("insecure-loopback", "tls", 7, "unknown_security", "security"),
        ("insecure-loopback", "insecure-loopback\ncertificates: certs", 8, "unused_certificates", "certificates"),
        ("insecure-loopback", "mutual-tls\ncertificates: ''", 8, "too_short", "certificates"),
        ("insecure-loopback", "none", 7, "unknown_security", "security"),
        ("operators.json", "nothing.json", 6, "unreadable", "operators"),
        ("  b:", "  a:", 4, "key_twice", ""),
    ],
)  # fmt: skip
def test_cluster(files: Files, old: str, new: str, line: int, code: str, subject: str) -> None:
    assert CLUSTER.count(old) == 1, old
    found, lines = _refused(files, cluster=CLUSTER.replace(old, new))
    assert ("cluster.yaml", line, code, subject) in found
    CLUSTER_WORDING.check(f"{old} -> {new}", lines)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "not_json"),
        ("[]", "wrong_shape"),
        ('{"shimekiri": 9}', "other_version"),
        ('{"shimekiri": 1, "operators": {"x": {"kind": "magic", "inputs": {}, "output": "json"}}}', "wrong_shape"),
        ('{"shimekiri": 1, "operators": {"x": {"kind": "map", "inputs": {}, "output": "json"}}}', "no_code_hash"),
    ],
)
def test_operators(files: Files, text: str, code: str) -> None:
    found, lines = _refused(files, operators=text)
    assert found == [("cluster.yaml", 6, code, "operators")]
    OPERATORS_WORDING.check(text, lines)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as raised:
        input_files.read_files(tmp_path / "none.yaml", None)
    assert [facts(problem) for problem in raised.value.problems] == [("none.yaml", 0, "unreadable", "")]


def test_several_problems_are_told_together(files: Files) -> None:
    query = QUERY.replace("run: filter", "run: filtre").replace("at: b, deadline", "at: d, deadline")
    query = query.replace("in: scale", "in: skale")
    assert [each[:2] for each in _refused(files, query=query)[0]] == [("query.yaml", n) for n in (8, 9, 11)]
    cluster = CLUSTER.replace("cap: 0.9", "policy: lifo")
    both, _ = _refused(files, query=QUERY.replace("100 ms", "100"), cluster=cluster)
    assert [each[0] for each in both] == ["cluster.yaml", "query.yaml"]


def test_a_query_alone_is_checked_without_nodes_and_installed_operators(files: Files) -> None:
    query, _ = files(QUERY.replace("run: filter", "run: filtre"), CLUSTER)
    input_files.read_files(query, None)


WEIRD = [
    "null",
    "[]",
    "{}",
    "-1",
    "1e400",
    ".nan",
    "true",
    "2020-01-01",
    "'☃'",
    "[[a]]",
    "{a: {b: c}}",
    "'x' * 3",
    "&x [*x]",
    "999999999999999999999",
]


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the values of a text stand: after `: `, up to a comma, brace, bracket or the end of the line."""
    import re

    return [match.span(1) for match in re.finditer(r":[ \n]+([^\s,{}\[\]]+)", text)]


@pytest.mark.parametrize("weird", sample(WEIRD, 3))
@pytest.mark.parametrize("which", ["query", "cluster"])
def test_weird_values_are_refused_in_sentences_or_are_right(files: Files, weird: str, which: str) -> None:
    text = QUERY if which == "query" else CLUSTER
    for start, end in _spans(text):
        changed = text[:start] + weird + text[end:]
        found, lines = _refused(files, **{which: changed})
        assert {each[0] for each in found} <= {"query.yaml", "cluster.yaml"}
        assert all("\n" not in line and len(line) < 400 for line in lines)
