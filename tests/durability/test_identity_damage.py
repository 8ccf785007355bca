"""A damaged identity is refused in a sentence, or is the same identity: no bit of it makes an agent somebody else's."""

import shutil
from pathlib import Path

import pytest

from node_agent.tls import identity
from node_agent.tls.names import CA, CERTIFICATE, KEY, TlsError
from tests.durability.damages import apply, damages
from tests.tls_identities import Authority

FILES = (CA, CERTIFICATE, KEY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("certs")).node("a")


@pytest.mark.parametrize("sample", [40, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_identity_is_refused_in_a_sentence_or_is_the_same(
    folder: Path, tmp_path: Path, name: str, sample: int | None
) -> None:
    told = identity.load(folder, "a")
    for damage in damages(folder / name, sample):
        damaged = tmp_path / "a"
        shutil.copytree(folder, damaged)
        apply(damaged / name, damage)
        try:
            found = identity.load(damaged, "a")
        except TlsError as error:
            assert str(damaged) in str(error) and "\n" not in str(error), damage.what
        else:
            assert (found.name, found.until_s) == (told.name, told.until_s), damage.what
        finally:
            shutil.rmtree(damaged)
