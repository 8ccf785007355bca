"""Mistakes in query.yaml, in cluster.yaml and on the planner's command line."""

# ruff: noqa: E501 - a table: a line per mistake
# fmt: off

from __future__ import annotations

from tests.contract.commands.newcomer_stage import QUERY, Case, Step, change, directory, remove, write

VALIDATE = "coordinator validate query.yaml cluster.yaml"
PLAN = "coordinator plan query.yaml cluster.yaml"
LINE = "query.yaml:"


def _file(did: str, what: str, mend: str, *steps: Step, fault: str) -> Case:
    return Case(did, VALIDATE, 2, what, mend, steps, fault=fault)


def _query(did: str, old: str, new: str, what: str, mend: str, fault: str) -> Case:
    return Case(did, VALIDATE, 2, what, mend, (change("query.yaml", old, new),), fault=fault)


def _cluster(did: str, old: str, new: str, what: str, mend: str, fault: str) -> Case:
    return Case(did, VALIDATE, 2, what, mend, (change("cluster.yaml", old, new),), fault=fault)


def _planned(did: str, options: str, what: str, mend: str, *steps: Step, code: int = 2, fault: str = "") -> Case:
    return Case(did, f"{PLAN} {options}".strip(), code, what, mend, steps, fault=fault)


WHOLE = (
    _file("there is no such file", "query.yaml: cannot be read: No such file", "give the path", remove("query.yaml"), fault="query.yaml unreadable"),
    _file("a directory", "query.yaml: cannot be read: Is a directory", "give the path", directory("query.yaml"), fault="query.yaml unreadable"),
    _file("an empty file", "query.yaml:1: is empty", "begin it with 'shimekiri: 1'", write("query.yaml", ""), fault="query.yaml:1 empty_file"),
    _file("a picture", "query.yaml:1: is not text", "write it as UTF-8", write("query.yaml", b"\x89PNG\r\n\x1a\n\0\xff"), fault="query.yaml:1 not_text"),
    _file(
        "tabs, and the line ends of another system", "query.yaml:4: has a tab", "indent with spaces",
        write("query.yaml", QUERY.replace("  ", "\t").replace("\n", "\r\n")), fault="query.yaml:4 tab",
    ),
    _file(
        "a section that is indented", "query.yaml:9: 'outputs' stands below 'operators'", "write 'outputs:' at the beginning of its line",
        write("query.yaml", QUERY.replace("outputs:\n  arm", "  outputs:\n    arm").replace("  counted:", "    counted:")),
        fault="query.yaml:9 unknown_key operators.outputs",
    ),
    _file("a quotation mark alone", "query.yaml:2: is not YAML: a quotation mark here has no second one", "write the one at the end", change("query.yaml", "query: sorting", 'query: "sorting'), fault="query.yaml:2 not_yaml"),
    Case(
        "query and cluster swapped", "coordinator plan cluster.yaml query.yaml", 2,
        "cluster.yaml: is a cluster, not a query", "give the cluster as the last file", fault="cluster.yaml file_of_another_kind",
    ),
    Case("no cluster", "coordinator plan query.yaml", 2, "QUERY... CLUSTER", "and then cluster.yaml"),
    Case("a plan as the query", "coordinator plan plan.json cluster.yaml", 2, "is a plan, not a query", "give a query.yaml", fault="plan.json file_of_another_kind"),
    Case("a query as the plan", "coordinator deploy query.yaml", 2, "query.yaml: is YAML, not a plan", "coordinator plan", fault="query.yaml file_of_another_kind"),
    Case("agents for a query", "coordinator up query.yaml", 2, "is a query, not a cluster", "give a cluster.yaml", fault="query.yaml file_of_another_kind"),
    Case("a query as the costs", f"{PLAN} --costs query.yaml", 2, "query.yaml: is a query, not a costs file", "give a costs.yaml", fault="query.yaml file_of_another_kind"),
    Case("a query and its cluster as the plan", "coordinator deploy query.yaml cluster.yaml", 2, "unexpected extra argument(s) (cluster.yaml)", "takes a plan.json"),
    Case("the plan's name without -o", f"{PLAN} new.json", 2, "new.json: is no cluster", "write '-o new.json'", fault="new.json file_of_another_kind"),
    Case("a wrong command", "coordinator pln", 2, "No such command 'pln'", "Did you mean 'plan'"),
    Case("a wrong option", f"{PLAN} --bestefort", 2, "No such option: --bestefort", "--best-effort"),
)
NAMES = (
    _query("a key twice", "  scale: {at", "  belt: {at", "query.yaml:5: 'belt' stands here a second time", "rename or", fault="query.yaml:5 key_twice"),
    _query("another version", "shimekiri: 1", "shimekiri: 2", "query.yaml:1: is written for version 2", "'shimekiri: 1'", fault="query.yaml:1 other_version shimekiri"),
    _query("no version", "shimekiri: 1\n", "", "shimekiri is missing", "add 'shimekiri: 1'", fault="query.yaml:1 missing_key shimekiri"),
    _query("a key", "deadline: 200 ms", "dedline: 200 ms", "query.yaml:10: outputs.arm.dedline", "did you mean 'deadline'?", fault="query.yaml:10 unknown_key outputs.arm.dedline"),
    _query("no blank after a colon", "deadline: 200 ms", "deadline:200 ms", "outputs.arm.deadline:200 ms is not known here", "write a blank after the colon: 'deadline: 200 ms'", fault="query.yaml:10 unknown_key outputs.arm.deadline:200 ms"),
    _query("an operator's node", "nodes: [b]", "at: b", "query.yaml:8: operators.count.at is not known here", "write 'nodes: [NODE]'", fault="query.yaml:8 unknown_key operators.count.at"),
    _query("an operator's deadline", "cost: 1 ms,", "cost: 1 ms, deadline: 50 ms,", "query.yaml:7: operators.weigh.deadline is not known here", "write it under 'outputs:'", fault="query.yaml:7 unknown_key operators.weigh.deadline"),
    _query("two streams in one text", "in: belt,", "in: belt scale,", "reads stream 'belt scale', which is unknown", "write 'in: [belt, scale]'", fault="query.yaml:7 unknown_stream operators.weigh.in"),
    _query("an operator", "my.weigh", "my.wiegh", "query.yaml:7: operator 'weigh' runs 'my.wiegh'", "did you mean 'my.weigh'?", fault="query.yaml:7 unknown_operator operators.weigh.run"),
    _query("a source", "in: belt,", "in: bolt,", "query.yaml:7: operator 'weigh' reads stream 'bolt'", "did you mean 'belt'?", fault="query.yaml:7 unknown_stream operators.weigh.in"),
    _query("a node", "at: b, deadline: 2", "at: c, deadline: 2", "query.yaml:10: output 'arm' names node 'c'", "there are a, b", fault="query.yaml:10 unknown_node outputs.arm.at"),
    _query("an output's origin", "from: weigh", "from: wiegh", "output 'arm' comes from 'wiegh'", "did you mean 'weigh'?", fault="query.yaml:10 unknown_stream outputs.arm.from"),
    _query("a type", "{at: a, type: json, arrival: {burst: 1", "{at: a, type: jsn, arrival: {burst: 1", "type 'jsn'", "did you mean 'json'?", fault="query.yaml:5 unknown_codec sources.scale.type"),
    _query("a side input", "{scale: scale}", "{scales: scale}", "has no side input 'scales'", "did you mean 'scale'?", fault="query.yaml:7 unknown_side_input operators.weigh.side.scales"),
    _query("a figure", "{n: count}", "{n: {median: g}}", "figure 'median' is unknown", "did you mean 'mean'?", fault="query.yaml:8 unknown_figure operators.count.with.n"),
    _query("a figure like no other", "{n: count}", "{n: zz}", "figure 'zz' is unknown", "there are count, max, mean", fault="query.yaml:8 unknown_figure operators.count.with.n"),
    _query("what becomes of late tuples", "cost: 1 ms,", "cost: 1 ms, on_late: skip,", "on_late is 'skip'", "write drop, deliver", fault="query.yaml:7 bad_on_late operators.weigh.on_late"),
    _cluster("a link's end", "[a, b]", "[a, c]", "cluster.yaml:5: links.0 names node 'c'", "there are a, b", fault="cluster.yaml:5 unknown_node links.0.between"),
    _cluster("a policy", '7700", policy: edf', '7700", policy: efd', "cluster.yaml:3: nodes.a.policy", "there are edf", fault="cluster.yaml:3 unknown_policy nodes.a.policy"),
)
VALUES = (
    _query("no unit", "deadline: 200 ms", "deadline: 5", "query.yaml:10: outputs.arm.deadline", "write 5 and one of ns, us", fault="query.yaml:10 missing_unit outputs.arm.deadline"),
    _query("a unit in words", "200 ms", "5 sec", "unit 'sec' is unknown", "use one of ns, us, µs, ms, s", fault="query.yaml:10 unknown_unit outputs.arm.deadline"),
    _query("a negative time", "200 ms", "-1 ms", "outputs.arm.deadline is '-1 ms'", "longer than 0, like '30 ms'", fault="query.yaml:10 not_above_zero outputs.arm.deadline"),
    _query("a deadline of nothing", "200 ms", "0 ms", "outputs.arm.deadline is '0 ms'", "longer than 0", fault="query.yaml:10 not_above_zero outputs.arm.deadline"),
    _query("a burst below nothing", "burst: 2", "burst: -2", "query.yaml:4: sources.belt.arrival.burst is -2", "write 1 or more", fault="query.yaml:4 out_of_range sources.belt.arrival.burst"),
    _query("a window of nothing", "time: 2 s", "time: 0 s", "operators.count.window.time is '0 s'", "longer than 0", fault="query.yaml:8 not_above_zero operators.count.window.time"),
    _query("hops beyond the window", "hop: 1 s", "hop: 5 s", "hop of 5 s beyond its length of 2 s", "make the hop at most 2 s", fault="query.yaml:8 hop_beyond_length operators.count.window"),
    _query("an aggregate of nothing", ", window: {time: 2 s, hop: 1 s}", "", "aggregates, but over what?", "add a window, like", fault="query.yaml:8 aggregate_without_window operators.count.run"),
    _query("a window that is a time", "{time: 2 s, hop: 1 s}", "2 s", "window is '2 s'", "like {time: 5 s}", fault="query.yaml:8 wrong_shape operators.count.window"),
    _query("a queue that is a size", "cost: 1 ms,", "cost: 1 ms, queue: 1 MiB,", "queue is '1 MiB'", "like {most: 1 MiB}", fault="query.yaml:7 wrong_shape operators.weigh.queue"),
    _query("an arrival that is a rate", "{burst: 1, period: 500 ms}", "20 Hz", "arrival is '20 Hz'", "like {burst: 10, period", fault="query.yaml:5 wrong_shape sources.scale.arrival"),
    _query("a burst without its period", "{burst: 1, period: 500 ms}", "{burst: 1}", "has the keys burst", "write one of {burst: 10", fault="query.yaml:5 arrival_keys sources.scale.arrival"),
    _query("no arrival", ", arrival: {burst: 1, period: 500 ms}", "", "sources.scale.arrival is missing", "add 'arrival:'", fault="query.yaml:5 missing_key sources.scale.arrival"),
    _query("no parameters", ", with: {grams: 5}", "", "parameter 'grams' of my.weigh is missing", "add it under 'with:'", fault="query.yaml:7 missing_parameter operators.weigh.with"),
    _query("a parameter's type", "grams: 5", "grams: heavy", "'grams' of my.weigh is 'heavy'", "write one of type integer", fault="query.yaml:7 parameter_type operators.weigh.with"),
    _query("a parameter's name", "grams: 5", "grams: 5, grms: 4", "parameter 'grms' of my.weigh is unknown", "did you mean 'grams'?", fault="query.yaml:7 unknown_parameter operators.weigh.with"),
    _query("a cycle", "in: belt,", "in: count,", "in a cycle: weigh -> count -> weigh", "read one of them through 'side:'", fault="query.yaml:7 cycle operators.weigh.in"),
    _query("a source without use", ", side: {scale: scale}", "", "query.yaml:5: stream 'scale' has no consumer", "or remove it", fault="query.yaml:5 unread_stream sources.scale"),
    _cluster("bits as the shop writes them", "100 Mbit/s", "100 Mbps", "unit 'Mbps' is unknown", "use one of bit/s", fault="cluster.yaml:5 unknown_unit links.0.bandwidth"),
    _cluster("an address without its port", '"127.0.0.1:7700"', '"127.0.0.1"', "is not HOST:PORT", "like '127.0.0.1:7700'", fault="cluster.yaml:3 no_host_and_port nodes.a.address"),
    _cluster("a port that no machine has", "127.0.0.1:7710", "127.0.0.1:99999", "is not HOST:PORT", "with a port up to 65535", fault="cluster.yaml:4 no_host_and_port nodes.b.address"),
    _cluster("one address for two", "127.0.0.1:7710", "127.0.0.1:7700", "is also that of node 'a'", "give each its own port", fault="cluster.yaml:4 address_twice nodes.b.address"),
    _cluster("an address off this machine", "127.0.0.1:7700", "10.0.0.1:7700", "address '10.0.0.1' is off loopback", "mutual-tls", fault="cluster.yaml:3 insecure_off_loopback nodes.a.address"),
)
PLANNED = (
    _planned(
        "a deadline that cannot be", "", "infeasible: output arm: belt admits tuples of up to 50 ms of age", "max_age",
        change("query.yaml", "200 ms", "10 ms"), code=3,
    ),
    _planned(
        "more than the nodes can do", "", "infeasible: node a: the 1 operator pinned to it use 100.0%", "--best-effort",
        change("query.yaml", "cost: 1 ms", "cost: 60 ms"), change("query.yaml", "burst: 2, period: 500", "burst: 1, period: 60"),
        change("query.yaml", "with: {grams: 5}", "nodes: [a], with: {grams: 5}"), code=3,
    ),
    _planned("a figure of the window", "--what-if 'count.hop=2 s'", "'count' has no field 'hop'", "did you mean 'count.window.hop'?", fault="unknown_field --what-if"),
    _planned("what if nobody is called so", "--what-if 'cuont.cost=2 ms'", "'cuont' is unknown", "did you mean 'count'?", fault="unknown_name --what-if"),
    _planned("what if nothing", "--what-if count.cost", "is not NAME.FIELD=VALUE", "write it like 'v2v.burst=20'", fault="no_change --what-if"),
    _planned("held to no node", "--place weigh=c", "--place weigh=c: node 'c' is unknown", "there are a, b", fault="unknown_node --place"),
    _planned("nothing held to a node", "--place wiegh=a", "operator 'wiegh' is unknown", "did you mean 'weigh'?", fault="unknown_operator --place"),
    _planned("a policy that is none", "--policy efd", "policy 'efd' is unknown", "there are edf", fault="unknown_policy --policy"),
    _planned("seconds with their unit", "--time-limit 10s", "'10s' is not a valid float range", "write a number without a unit, like 10"),
    _planned("into a directory", "-o .", "is a directory", "give the path of a file, like plan.json", fault="directory"),
    _planned("below a file", "-o query.yaml/plan.json", "query.yaml/plan.json: cannot be written", "name another place", fault="plan.json unwritable"),
    Case("a full disk", f"{PLAN} -o out.json", 2, "out.json: cannot be written: File too large", "make room", full=True, fault="out.json unwritable"),
)
SCALE = "{at: a, type: json, arrival: {burst: 1, period: 500 ms}}"
OWN = (
    _query("a timer of nothing", SCALE, "{at: a, every: 0 ms}", "sources.scale.every is '0 ms'", "longer than 0", fault="query.yaml:5 not_above_zero sources.scale.every"),
    _query("a timer faster than clocks", SCALE, "{at: a, every: 10 us}", "sources.scale.every is 10 us", "every 1 ms at most", fault="query.yaml:5 out_of_range sources.scale.every"),
    _query("an offset beyond the period", SCALE, "{at: a, every: 100 ms, offset: 100 ms}", "an 'offset' of 100 ms, and ticks every 100 ms", "shorter than 'every'", fault="query.yaml:5 offset_beyond_every sources.scale"),
    _query("an offset of nothing", SCALE, "{at: a, offset: 1 ms, type: json, arrival: {rate: 5}}", "has 'offset' without 'every'", "add 'every:'", fault="query.yaml:5 key_without_other sources.scale"),
    _query("a function that is misspelt", SCALE, "{at: a, run: my.scalle, every: 100 ms}", "source 'scale' runs 'my.scalle', which no node has installed", "did you mean 'my.scale'?", fault="query.yaml:5 unknown_operator sources.scale.run"),
    _query("a function without a pace", SCALE, "{at: a, run: my.scale}", "nothing says when 'my.scale' runs", "write 'every: 100 ms'", fault="query.yaml:5 no_pace sources.scale.arrival"),
    _query("two paces", SCALE, "{at: a, run: my.scale, every: 1 s, arrival: {rate: 5}}", "has 'every' and 'arrival'", "leave 'arrival:' to iterators", fault="query.yaml:5 every_and_arrival sources.scale"),
    _query("an iterator that is called", SCALE, "{at: a, run: my.scan, every: 100 ms}", "is an iterator and has a pace of its own", "write 'arrival:' for 'every:'", fault="query.yaml:5 other_pace sources.scale.run"),
    _query("a function that is iterated over", SCALE, "{at: a, run: my.scale, arrival: {rate: 5}}", "is called tick by tick", "write 'every: 100 ms'", fault="query.yaml:5 other_pace sources.scale.run"),
    _query("an operator as a source", SCALE, "{at: a, run: my.weigh, every: 100 ms}", "runs 'my.weigh', which is an operator", "write @source(...) above it", fault="query.yaml:5 operator_as_source sources.scale.run"),
    _query("a source as an operator", "run: my.weigh", "run: my.scale", "operator 'weigh' runs 'my.scale', which is a source", "name it under 'sources:'", fault="query.yaml:7 source_as_operator operators.weigh.run"),
    _query("a call longer than its period", SCALE, "{at: a, run: my.scale, every: 10 ms, cost: 10 ms}", "a 'cost' of 10 ms for each call, and ticks every 10 ms", "make 'every:' longer", fault="query.yaml:5 cost_beyond_every sources.scale"),
    _query("a parameter that no function has", SCALE, "{at: a, run: my.scale, every: 1 s, with: {gain: 2}}", "parameter 'gain' of my.scale is unknown", "there are none", fault="query.yaml:5 unknown_parameter sources.scale.with"),
    _planned(
        "a timer faster than its work", "", "infeasible: node a: the 1 operator pinned to it use 100.0%", "--best-effort",
        change("query.yaml", "{at: a, type: json, arrival: {burst: 2, period: 500 ms}, max_age: 50 ms}", "{at: a, every: 1 ms, max_age: 50 ms}"),
        change("query.yaml", "with: {grams: 5}", "nodes: [a], with: {grams: 5}"), code=3,
    ),
    Case(
        "a feed for a timer", "coordinator run --local --feed scale=feed.jsonl", 2, "--feed scale=feed.jsonl: the node of 'scale' makes its tuples itself",
        "leave --feed out", (change("query.yaml", SCALE, "{at: a, every: 100 ms}"),), fault="made_by_node --feed",
    ),
)
FED = "{at: a, type: json, arrival: {burst: 1, period: 500 ms}, from: {mqtt: 'mqtt://broker/scale'"
OUTSIDE = (
    _query("a broker of another kind", SCALE, FED.replace("mqtt:", "kafka:", 1) + "}}", "sources.scale.from.kafka is not known here", "there are encoding, mcap, mqtt", fault="query.yaml:5 unknown_key sources.scale.from.kafka"),
    _query("an address without a topic", SCALE, FED.replace("/scale", "") + "}}", "sources.scale.from has a place of mqtt that names no topic", "write one of {mqtt: mqtt://host/topic}", fault="query.yaml:5 connector_place sources.scale.from"),
    _query("a password in a query", SCALE, FED.replace("broker", "me:word@broker") + "}}", "has a name or a password, which plans do not carry", "in a file of their own", fault="query.yaml:5 connector_place sources.scale.from"),
    _query("results to many topics", "deadline: 200 ms}", "deadline: 200 ms, to: {mqtt: 'mqtt://broker/arm/#'}}", "outputs.arm.to has a place of mqtt that has a '+' or a '#'", "write one of {mqtt: mqtt://host/topic}", fault="query.yaml:10 connector_place outputs.arm.to"),
    _query("a key of zenoh with an empty part", SCALE, FED.replace("mqtt: 'mqtt://broker/scale'", "zenoh: tcp/router:7447, topic: arm//scale") + "}}", "sources.scale.from has a topic, 'arm//scale', that has a slash at an end, or two in a row", "write it like robot/camera", fault="query.yaml:5 connector_topic sources.scale.from"),
    _query("results to all keys of zenoh", "deadline: 200 ms}", "deadline: 200 ms, to: {zenoh: 'tcp/router:7447', topic: 'arm/**'}}", "outputs.arm.to has a topic, 'arm/**', that has a '*', and results go to one key", "write it like robot/camera", fault="query.yaml:10 connector_topic outputs.arm.to"),
    _query("a type that ROS 2 has not", "deadline: 200 ms}", "deadline: 200 ms, to: {mcap: arm.mcap, encoding: cdr, schema: std_msgs/Strong}}", "outputs.arm.to has a schema, 'std_msgs/Strong', that is none of the message types of ROS 2 Humble", "there is std_msgs/msg/String", fault="query.yaml:10 unknown_ros_type outputs.arm.to"),
    _query("a timer from a broker", SCALE, "{at: a, every: 1 s, from: {mqtt: 'mqtt://broker/scale'}}", "has a 'from', and its node makes its tuples itself", "remove 'from:'", fault="query.yaml:5 from_of_own sources.scale"),
)
CASES = {
    "Files that are something else": WHOLE, "Wrong names": NAMES, "Wrong values": VALUES, "Sources that a node makes itself": OWN, "From and to other systems": OUTSIDE, "Planning": PLANNED,
}
