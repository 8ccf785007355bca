"""SHA-256 and BLAKE2b of the interpreter itself: `hashlib` has the same, and loads OpenSSL for them, 4 MB that an agent
without TLS has no use for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b
    try:
        from _sha2 import sha256
    except ImportError:
        try:
            from _sha256 import sha256  # of Python 3.11
        except ImportError:
            from hashlib import sha256

__all__ = ["blake2b", "sha256"]
