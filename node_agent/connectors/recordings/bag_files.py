"""Which files a bag of ROS 2 has, and whether each message in them is packed: as its metadata.yaml says.

Nothing of a bag is unpacked into a file, which has no bound: a bag whose files are packed is refused.
"""

from pathlib import Path, PurePath
from typing import NamedTuple

from ruamel.yaml import YAML

from node_agent.client.address_book import InputError

_METADATA = "metadata.yaml"
_MOST_METADATA_BYTES = 1 << 20
_UNPACK = "`rosbags-convert --src BAG --dst OTHER` makes one that is not packed"


class BagFiles(NamedTuple):
    """paths: in the order of time. packing: of each message, "" or zstd."""

    paths: tuple[Path, ...]
    packing: str = ""


def bag_files(path: Path) -> BagFiles:
    """Of a bag's directory; of one of its files: that. Raises InputError."""
    if not path.exists():
        raise InputError("unreadable", "is not there", file=path)
    if not path.is_dir():
        return BagFiles((path,))
    file = path / _METADATA
    try:
        with file.open("rb") as stream:
            text = stream.read(_MOST_METADATA_BYTES + 1)
    except OSError as error:
        mend = "`ros2 bag reindex` makes it"
        raise InputError("unreadable", f"cannot be opened ({error.strerror})", mend, file=file) from error
    if len(text) > _MOST_METADATA_BYTES:
        raise InputError("too_large", f"has more than {_MOST_METADATA_BYTES >> 20} MiB", file=file)
    try:
        about = YAML(typ="safe").load(text)["rosbag2_bagfile_information"]
        names = [PurePath(each).name for each in about["relative_file_paths"]]
        packed, packing = (str(about.get(f"compression_{each}") or "").lower() for each in ("mode", "format"))
    except Exception as error:  # of YAML, over text that may be anything
        why = " ".join(f"{type(error).__name__} {error}".split())  # YAML says it in several lines
        mend = "`ros2 bag reindex` makes it anew"
        raise InputError("damaged", f"does not describe a bag ({why:.200})", mend, file=file) from None
    if packed not in ("", "none", "message"):
        raise InputError("unknown_format", f"the files of this bag are packed (mode {packed})", _UNPACK, file=file)
    if packed == "message" and packing != "zstd":
        raise InputError("unknown_format", f"the messages are packed with {packing}; zstd is read", _UNPACK, file=file)
    return BagFiles(tuple(path / each for each in names), packing if packed == "message" else "")
