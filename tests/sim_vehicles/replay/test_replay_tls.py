"""A replay into an agent that speaks TLS, with the identity that addresses.json names."""

import json
from pathlib import Path

import pytest

from sim_vehicles.errors import FeedError
from sim_vehicles.replay.live_laps import LiveReplay
from sim_vehicles.replay.preparation import Options, prepare
from tests.node_agent.live import Agent, chain_plan
from tests.sentences import Wording
from tests.sim_vehicles.replay.replay_plans import small_plan, write
from tests.tls_identities import Authority

SAID = Wording("replay", "tls")

MS = 1_000_000


def said(options: Options) -> str:
    with pytest.raises(FeedError) as failed:
        LiveReplay(prepare(options)).run()
    return str(failed.value)


def test_the_identity_of_the_addresses_is_used(tmp_path: Path) -> None:
    """The agent has no plan: what it says about that is heard behind the handshake only."""
    authority, path = Authority(tmp_path / "certs"), tmp_path / "addresses.json"
    node = authority.node(chain_plan().node)
    authority.coordinator()
    with Agent(tmp_path / "s", "--tls", str(node)) as agent:
        write(tmp_path, small_plan(2), agent.data)
        options = Options("crossing_50", path, start_ns=9_500 * MS, until_ns=11_000 * MS, rate=float("inf"))
        values = json.loads(path.read_text())
        assert "this agent speaks TLS" in said(options)
        path.write_text(json.dumps({**values, "tls": "certs/coordinator"}))
        assert "deploy the plan first" in said(options)
        path.write_text(json.dumps({**values, "tls": str(tmp_path / "nowhere")}))
        assert "nowhere" in said(options)
        stranger = Authority(tmp_path / "others").client()
        path.write_text(json.dumps({**values, "tls": str(stranger)}))
        assert "deploy the plan first" not in said(options)
        path.write_text(json.dumps({**values, "tls": 7}))
        with SAID.refuses("addresses.json wrong_shape tls"):
            prepare(options)
