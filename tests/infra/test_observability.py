"""The example configuration of Prometheus: valid YAML, and every metric and label in it is one that agents serve."""

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from node_agent.control.metrics.families import FAMILIES

FOLDER = Path(__file__).parents[2] / "infra" / "observability"


def load(name: str) -> Any:
    return YAML(typ="safe").load((FOLDER / name).read_text())


def test_the_scrape_configuration_names_the_rules_and_both_ways_to_scrape() -> None:
    found = load("prometheus.yml")
    assert [(FOLDER / name).exists() for name in found["rule_files"]] == [True]
    plain, secure = found["scrape_configs"]
    assert "scheme" not in plain and all(t.startswith("127.") for t in plain["static_configs"][0]["targets"])
    assert secure["scheme"] == "https" and {"ca_file", "cert_file", "key_file"} <= set(secure["tls_config"])
    assert secure["tls_config"]["server_name"].endswith(".node.shimekiri")


def test_alerts_ask_for_metrics_and_labels_that_there_are() -> None:
    records, alerts = (group["rules"] for group in load("alerts.yml")["groups"])
    families = {f"shimekiri_{each.name}": {"node", "le", *each.labels} for each in FAMILIES}
    made = {rule["record"] for rule in records}
    assert {"AgentDown", "DeadlinesMissed", "DeadlinesMaybeMissed", "TuplesShed"} <= {rule["alert"] for rule in alerts}
    for rule in (*records, *alerts):
        if "alert" in rule:
            assert {"alert", "expr", "labels", "annotations"} <= set(rule) and rule["labels"]["severity"]
        expression = rule["expr"]
        assert set(re.findall(r"shimekiri:[\w:]+", expression)) <= made
        assert expression.count("(") == expression.count(")")
        names = re.findall(r"shimekiri_\w+", expression)
        asked = set(re.findall(r"(\w+)=~?\"", expression)) | set(
            re.findall(r"labels\.(\w+)", str(rule.get("annotations")))
        )
        for by in re.findall(r"by \(([\w, ]+)\)", expression):
            asked |= set(by.split(", "))
        for name in names:
            assert name in families, name
        if names:
            assert asked <= set().union(*(families[name] for name in names)), rule
