"""The subcommands `doctor` and `grant-rt` of an agent. Light to import: what they need comes in when they run."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

EXAMPLES = """examples:
  node-agent doctor                                        is this machine fit for an agent?
  node-agent doctor --control 127.0.0.1:7700 --data 127.0.0.1:7701 --state /var/lib/shimekiri --cores 3
  node-agent doctor --json                                 the same for machines
  node-agent grant-rt                                      how this user gets real-time priorities
  sudo $(command -v node-agent) grant-rt --apply           the same, done: a line in /etc/security/limits.d

Give doctor the arguments that `run` will have. Each finding is `ok`, `note` (the agent runs, but know this) or `wrong`
(it does not start, or cannot keep what plans promise), with its mend below. Nothing is changed; some MiB are written
to the state directory's disk and removed. Exit codes: 0 nothing is wrong; 1 something is; 2 bad arguments.
"""
COMMANDS = ("doctor", "grant-rt")
Addresses = Callable[[], tuple[tuple[str, int], tuple[str, int]]]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The two parsers."""
    raw = argparse.RawDescriptionHelpFormatter
    doctor = commands.add_parser(
        "doctor", help="is this machine fit for an agent?", epilog=EXAMPLES, formatter_class=raw
    )
    doctor.add_argument("--control", default="127.0.0.1:0", metavar="HOST:PORT", help="as with run")
    doctor.add_argument("--data", default="127.0.0.1:0", metavar="HOST:PORT", help="as with run")
    doctor.add_argument("--tls", type=Path, metavar="DIR", help="as with run: the identity is checked, too")
    doctor.add_argument("--cores", type=int, default=1, metavar="K", help="as with run (default 1)")
    doctor.add_argument("--state", type=Path, default=Path(".shimekiri"), metavar="DIR", help="as with run")
    doctor.add_argument("--no-rt", action="store_true", help="as with run: real time is not wanted")
    doctor.add_argument("--json", action="store_true", help="the findings as JSON")
    grant = commands.add_parser(
        "grant-rt", help="how a user gets real-time priorities", epilog=EXAMPLES, formatter_class=raw
    )
    grant.add_argument(
        "--user", default="", metavar="NAME", help="who runs the agent (default: you; with sudo, who called it)"
    )
    grant.add_argument("--apply", action="store_true", help="write the limits.d file; needs root, may be repeated")
    grant.add_argument(
        "--limits-dir", type=Path, metavar="DIR", help="another limits.d, such as that of a mounted card"
    )


def run(parsed: argparse.Namespace, addresses: Addresses) -> int:
    """Run one of the two; returns the exit code. addresses: control and data, read (and refused) as by `run`."""
    try:
        return _doctor(parsed, addresses) if parsed.command == "doctor" else _grant_real_time(parsed)
    except KeyboardInterrupt:
        return 130


def _doctor(parsed: argparse.Namespace, addresses: Addresses) -> int:
    control, data = addresses()
    try:
        from node_agent.tools.doctor.examine import Asked, Sources, examine
    except ImportError as error:  # the one package that it needs itself
        mend = f"{shlex.quote(sys.executable)} -m pip install psutil"
        return _say(f"node-agent: doctor cannot import {error.name}: {mend}", 1)
    from node_agent.tools.doctor import finding

    asked = Asked(control, data, parsed.state, parsed.cores, not parsed.no_rt, parsed.tls)
    findings = examine(asked, Sources())
    text = json.dumps(finding.document(findings), indent=1) if parsed.json else finding.table(findings)
    return _show(text) or finding.exit_code(findings)


def _grant_real_time(parsed: argparse.Namespace) -> int:
    from node_agent.host.scheduling import SUPERVISOR_PRIORITY
    from node_agent.tools.doctor import readers
    from node_agent.tools.doctor import real_time_permission as granting

    python = Path(sys.executable).resolve()
    user = parsed.user or caller()
    limits = parsed.limits_dir or granting.LIMITS
    again = f"sudo {shlex.quote(sys.executable)} -m node_agent grant-rt --apply --user {shlex.quote(user)}"
    if parsed.limits_dir:
        again += f" --limits-dir {shlex.quote(str(limits))}"
    grant = granting.RealTimePermission(user, python, limits, again)
    try:
        granting.check_user(user)
        if parsed.limits_dir and not limits.is_dir():
            text = f"--limits-dir {limits}: no such directory"
            raise granting.GrantOptionError("no_file", text, subject="--limits-dir")
        if not parsed.limits_dir and not known(user):
            text = f"--user {user}: there is no such user here"
            raise granting.GrantOptionError("unknown_user", text, subject="--user")
        if parsed.apply:
            return _show(granting.apply(grant))
    except granting.GrantError as error:
        return _say(f"node-agent: {error}", error.exit_code)
    allowed = readers.real_time(Path("/proc/self/status")).highest >= SUPERVISOR_PRIORITY
    return _show(granting.instructions(grant, allowed))


def caller() -> str:
    """The user who asks: with sudo the one who called it; a user without a name is named by number."""
    import pwd

    behind = os.environ.get("SUDO_USER", "") if os.geteuid() == 0 else ""
    if behind:
        return behind
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def known(user: str) -> bool:
    """Whether this machine has a user of that name."""
    import pwd

    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _show(text: str) -> int:
    """On stdout; 0, or 1 where that is full or closed."""
    try:
        print(text, flush=True)  # noqa: T201
    except OSError as error:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # what is buffered is not tried again at the exit
        return 1 if isinstance(error, BrokenPipeError) else _say(f"node-agent: stdout: {error.strerror}", 1)
    return 0


def _say(text: str, code: int) -> int:
    print(text, file=sys.stderr)  # noqa: T201
    return code
