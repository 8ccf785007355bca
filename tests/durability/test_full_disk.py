"""An agent whose disk is full starts again after a crash, and what it has can be collected."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from node_agent.host.files.reserve import BYTES
from tests.node_agent.live import ROOT

APART = ["unshare", "--user", "--map-root-user", "--mount"]


def test_it_starts_in_the_room_of_its_reserve_and_hands_over_what_it_has(tmp_path: Path) -> None:
    try:
        subprocess.run([*APART, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a small disk needs a mount namespace, which is not to be had here: {error}")
    command = [*APART, sys.executable, "-m", "tests.durability.full_disk", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["plans"] == ["COMMITTED"] and told["code"] == 0
    assert "the start took the reserve" in told["log"]
    assert (told["repeated"], told["sent"], told["handed"]) == (0, 220, 220), told
    assert told["reserve"] == BYTES, "it is there again"
