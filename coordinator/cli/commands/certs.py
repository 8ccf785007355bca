"""`coordinator certs`: a certificate authority for a cluster, and an identity for everyone in it."""

from __future__ import annotations

import json
import shlex
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator.cli.lines import tell

if TYPE_CHECKING:
    from coordinator.fleet.identity.certificate_folder import Entry, Made
    from coordinator.spec.cluster import Machines

EPILOG = """Examples:

  coordinator certs cluster.yaml             (what is missing)

  coordinator certs cluster.yaml --renew     (before they end)

  coordinator certs cluster.yaml --new-ca    (a key was stolen)"""

SOON = timedelta(days=60)
THERE = "shimekiri-tls"  # the folder on a node, in the home of who logs in


def register(app: typer.Typer) -> None:
    """Adds the command."""

    @app.command(epilog=EPILOG)
    def certs(
        cluster: Annotated[Path, typer.Argument(help="cluster.yaml")],
        output: Annotated[
            Path | None, typer.Option("--out", "-o", help="Folder. Default: 'certificates' of the file, else certs.")
        ] = None,
        renew: Annotated[
            bool, typer.Option("--renew", help="New keys and certificates, signed by the same CA.")
        ] = False,
        new_ca: Annotated[
            bool, typer.Option("--new-ca", help="Start over; what was there is moved aside and trusted no more.")
        ] = False,
        as_json: Annotated[
            bool, typer.Option("--json", help="JSON: folder, identities with their ends, warnings.")
        ] = False,
    ) -> None:
        """Make a certificate authority for a cluster and a folder with an identity for each node, for the coordinator,
        and for programs that feed and listen. What is there and in order is kept.

        A certificate names who and not where: addresses may change without a new one.
        """
        from coordinator.fleet.identity import certificate_folder, certificates
        from coordinator.spec import cluster as cluster_file
        from coordinator.spec.files import security

        machines = cluster_file.machines(cluster)
        if machines.security == security.INSECURE:
            security.check_names(machines.nodes, machines.file)
        machines.file.check()
        folder, now = output or machines.certificates, certificates.now()
        made = certificate_folder.make(folder, list(machines.nodes), renew=renew, new_ca=new_ca, now=now)
        warnings = _warnings(made, cluster, output, machines, now)
        if as_json:
            typer.echo(json.dumps({**_values(folder, made, machines), "warnings": warnings}))
        else:
            for line in (*_table(folder, made), *_next(folder, made, machines)):
                typer.echo(line)
        for line in warnings:
            tell(line)


def _table(folder: Path, made: Made) -> list[str]:
    from coordinator.spec.files.security import name_of

    rows = [(str(folder / "ca.pem"), made.ca_name, made.ca)]
    rows += [(str(entry.path), name_of(name), entry) for name, entry in made.identities.items()]
    wide, high = max(len(path) for path, _, _ in rows), max(len(name) for _, name, _ in rows)
    return [
        f"{path:<{wide}}  {name:<{high}}  {entry.begins:%Y-%m-%d} to {entry.ends:%Y-%m-%d}  "
        f"{'new' if entry.made else 'kept'}"
        for path, name, entry in rows
    ]


def _next(folder: Path, made: Made, machines: Machines) -> list[str]:
    """What to take where."""
    copies = _copies(made, machines)
    lines = []
    if copies and any(made.identities[name].made for name in copies):
        lines += ["", "to each node its own folder and no other; there: node-agent run --tls " + THERE]
        lines += [f"  {command}" for name, command in copies.items() if made.identities[name].made]
    if made.ca.made:
        lines += [
            "",
            f"{folder / 'ca.key'} stays here: who has it can pass for any node. Keep a copy in a safe place.",
            f"{made.identities['client'].path} is for programs elsewhere that feed or listen.",
        ]
    if made.before is not None:
        lines += ["", f"what was there is in {made.before}; until a node has its new folder, only that talks to it."]
    return lines


def _copies(made: Made, machines: Machines) -> dict[str, str]:
    """By node: the command that brings its identity there; none for nodes on this machine's loopback."""
    from coordinator.fleet.addresses import split
    from coordinator.spec.files.security import is_loopback

    commands = {}
    for name, node in machines.nodes.items():
        host = split(node.address)[0]
        if is_loopback(host):
            continue
        target = f"[{host}]" if ":" in host else host
        source = shlex.quote(str(made.identities[name].path))
        commands[name] = f"ssh {host} mkdir -p -m 700 {THERE} && scp -p {source}/*.pem {target}:{THERE}/"
    return commands


def _warnings(made: Made, cluster: Path, output: Path | None, machines: Machines, now: datetime) -> list[str]:
    from coordinator.spec.files.security import INSECURE

    lines = []
    for path in made.others:
        lines.append(f"{path}: of no node in {cluster}, and valid all the same; only --new-ca ends that")
    for entry in (made.ca, *made.identities.values()):
        if entry.exposed:
            key = entry.path.with_suffix(".key") if entry is made.ca else entry.path / "key.pem"
            lines.append(f"{key}: others than its owner may use it; chmod 600 {shlex.quote(str(key))}")
        mend = "--new-ca" if entry is made.ca or entry.made else "--renew"
        if entry.missing:
            what = f"strict verifiers refuse it, as it has no {', '.join(entry.missing)}"
            lines.append(f"{entry.path}: {what}; run this again with {mend}")
        if entry.ends - now < SOON:
            when = f"ends on {entry.ends:%Y-%m-%d}; run this again with {mend} before"
            if entry.ends <= now:
                when = f"has expired on {entry.ends:%Y-%m-%d}; run this again with {mend}"
            lines.append(f"{entry.path}: {when}")
    if machines.security == INSECURE:
        lines.append(f"{cluster} does not use them yet: write 'security: mutual-tls' there")
    elif output is not None and output.resolve() != machines.certificates.resolve():
        lines.append(f"{cluster} looks for them in {machines.certificates}: write 'certificates:' there, or move them")
    return lines


def _values(folder: Path, made: Made, machines: Machines) -> dict[str, Any]:
    def entry(each: Entry) -> dict[str, Any]:
        told = {"from": each.begins.isoformat(), "until": each.ends.isoformat(), "new": each.made}
        return {"path": str(each.path), **told}

    return {
        "folder": str(folder),
        "ca": {"name": made.ca_name, **entry(made.ca)},
        "identities": {name: entry(each) for name, each in made.identities.items()},
        "copy": _copies(made, machines),
        "before": None if made.before is None else str(made.before),
        "others": [str(path) for path in made.others],
    }
