"""A cluster's certificate authority and identities: how they are made, their folder, and why one is refused.

Only making certificates needs the package cryptography, reading an identity does not. Begin at identity.py, which every
call to an agent takes. certificates.py is behind `coordinator certs`.
"""
