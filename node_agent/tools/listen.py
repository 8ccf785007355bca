"""`node-agent listen`: results of an output as JSON lines."""

import argparse
import json
import os
import sys

from node_agent.client.address_book import InputError, addresses_of, client_codecs, data_address, identity_folder
from node_agent.client.client import AgentError, Result, Sink
from node_agent.operators.codecs import Codec, CodecError, UnknownCodecError
from node_agent.operators.signature import OperatorError
from node_agent.tls.names import TlsError


def run(parsed: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    try:
        return _listen(parsed)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # as with `| head`: the reader has what they wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at its end
        return 0
    except (InputError, OperatorError, TlsError) as error:
        return _say(str(error), 2)
    except UnknownCodecError as error:
        return _say(f"{error}; this command takes --operators FILE.py as well", 2)
    except AgentError as error:
        return _say(str(error), 1)


def _listen(parsed: argparse.Namespace) -> int:
    addresses = addresses_of(parsed.node, parsed.addresses)
    address, tls = data_address(parsed.node, addresses), identity_folder(parsed.tls, addresses)
    codecs = client_codecs(parsed.operators)
    waits = {"connect_timeout": parsed.patience, "outage": parsed.outage}
    with Sink(address, parsed.output, **waits, on_outage=_say, codecs=codecs, tls=tls) as sink:
        if not parsed.quiet:
            _say(f"{parsed.output} at {address}, results from now on")
        shown = unreadable = 0
        while parsed.count is None or shown < parsed.count:
            try:
                line = as_line(sink.get(parsed.timeout), sink.codec)
            except TimeoutError:
                break
            except CodecError as error:
                unreadable += 1
                if unreadable == 1:
                    _say(f"a result that cannot be read: {error}")
                continue
            print(line, flush=True)  # noqa: T201
            shown += 1
        if unreadable:
            _say(f"{unreadable} results could not be read")
        if parsed.count is not None and shown < parsed.count:
            return _say(f"{shown} of {parsed.count} results came; none for {parsed.timeout:g} s", 4)
        return 0


def as_line(result: Result, codec: Codec) -> str:
    """One line of ASCII JSON: value, at_ns, latency_ns [lo, hi], lineage [source, epoch, seq, ordinal]."""
    values = {
        "value": codec.to_json(result.value), "at_ns": result.at_ns, "latency_ns": result.latency_ns,
        "lineage": result.lineage,
    }  # fmt: skip
    return json.dumps(values)


def _say(text: str, code: int = 0) -> int:
    print(f"node-agent listen: {text}", file=sys.stderr, flush=True)  # noqa: T201
    return code
