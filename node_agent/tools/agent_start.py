"""`node-agent run`: its options are checked, and the supervisor begins.

Nothing of argparse is loaded for it: the supervisor's memory is also that of every process it forks.
"""

import ipaddress
import re
import sys
from pathlib import Path

from node_agent.problems import ProblemError
from node_agent.tools.run_options import RunOptions

MOST_CORES = 64


class InputError(ProblemError):
    """Bad arguments: exit code 2."""


def run(parsed: RunOptions) -> int:
    """Check the options and run the agent; returns its exit code."""
    import gc

    gc.disable()  # imports make no garbage; each process enables it when it is ready
    from node_agent.host.clock import clock_domain
    from node_agent.host.files.state_dir import StateDir, StateError
    from node_agent.host.settings import Settings
    from node_agent.supervisor.supervisor import Supervisor

    try:
        name = parsed.name
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,32}", name):
            raise InputError(
                "other_name", f"--name {name!r}: use letters, digits, _, . and -, at most 32", subject="--name"
            )
        for file in parsed.operators:
            if not file.is_file():
                raise InputError("no_file", f"--operators {file}: no such file", subject="--operators")
        if not 0 <= parsed.drift_ppm <= 100_000:
            raise InputError(
                "out_of_range", f"--drift-ppm {parsed.drift_ppm}: between 0 and 100000", subject="--drift-ppm"
            )
        if not 0.01 <= parsed.sync <= 3600:
            raise InputError("out_of_range", f"--sync {parsed.sync:g}: between 0.01 and 3600 seconds", subject="--sync")
        if len(parsed.clock_domain) > 40:
            raise InputError("too_large", "--clock-domain: at most 40 characters", subject="--clock-domain")
        tls = parsed.tls
        control, data = address("--control", parsed.control, tls), address("--data", parsed.data, tls)
        metrics = address("--metrics", parsed.metrics, tls) if parsed.metrics else None
        check_cores(name, parsed.cores, data[1])
        if tls is not None:
            _check_identity(tls, name, parsed.log_json)
        state = StateDir(parsed.state or Path(".shimekiri") / name)
    except InputError as error:
        return say(f"node-agent: {error}", 2)
    except StateError as error:
        return say(f"node-agent: {error}", 1)
    settings = Settings(
        name=name, control=control, data=data, state=state, operators=tuple(parsed.operators),
        drift_ppm=parsed.drift_ppm, clock=parsed.clock_domain or clock_domain(), rt=not parsed.no_rt,
        cores=parsed.cores, tls=tls, checks=parsed.check_operators,
        log_json=parsed.log_json, metrics=metrics, sync_s=parsed.sync,
    )  # fmt: skip
    return Supervisor(settings).run()


def check_cores(name: str, cores: int, port: int) -> None:
    """Whether the node can have so many places. Raises InputError."""
    if not 1 <= cores <= MOST_CORES:
        raise InputError("out_of_range", f"--cores {cores}: between 1 and {MOST_CORES}", subject="--cores")
    if cores == 1:
        return
    if "." in name or len(name) > 29:
        text = f"--name {name!r}: with several cores at most 29 characters and no '.', which names places"
        raise InputError("other_name", text, subject="--name")
    if port and port + cores - 1 > 65535:
        text = f"--data: {cores} cores take the ports from {port} on"
        raise InputError("out_of_range", text, f"give one up to {65536 - cores}", subject="--data")


def _check_identity(folder: Path, name: str, log_json: bool) -> None:
    from node_agent.host.log import WARNING, Log
    from node_agent.tls import identity
    from node_agent.tls.names import TlsError

    try:
        found = identity.load(folder, name)
    except TlsError as error:
        raise InputError("no_identity", f"--tls {error}", subject="--tls") from None
    log = Log(name, "supervisor", log_json)
    if found.days_left < identity.SOON_DAYS:
        log.say("certificate_ends", f"{found.summary}: run `coordinator certs CLUSTER.yaml --renew` before", WARNING)
    if found.loose:
        log.say("key_open", f"{found.loose}; chmod 600, unless that is meant", WARNING)
    if why := identity.lax(folder):
        what = f"{folder} is refused by strict verifiers, such as programs that read metrics ({why})"
        log.say("certificate_lax", f"{what}: run `coordinator certs` again, which says how to renew it", WARNING)


def address(option: str, text: str, tls: Path | None = None) -> tuple[str, int]:
    """Host and port; other machines are let in under TLS alone. Raises InputError."""
    host, _, port = text.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit() or int(port) > 65535:
        message = f"{option} {text!r}: write HOST:PORT, such as 127.0.0.1:7700 or [::1]:7700"
        raise InputError("not_an_address", message, subject=option)
    if host == "localhost":
        host = "127.0.0.1"
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        raise InputError("not_an_address", f"{option} {text!r}: give an IP address", subject=option) from None
    if not loopback and tls is None:
        raise InputError(
            "no_identity",
            f"{option} {text}: this address can be reached from other machines, and without an identity nothing is"
            " encrypted and everybody is believed",
            "make identities with `coordinator certs CLUSTER.yaml` and give --tls certs/NAME, or use a loopback"
            " address such as 127.0.0.1",
            subject=option,
        )
    return host, int(port)


def say(text: str, code: int) -> int:
    """Print it where mistakes are printed; returns the code."""
    print(text, file=sys.stderr)  # noqa: T201
    return code
