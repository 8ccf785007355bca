"""HTTP/2 as far as gRPC needs it of a server, on bytes: nothing here reads a socket or a clock.

Begin at http2_connection.py: bytes come in, requests come out. header_fields.py is HPACK, with its code in huffman.py.
[RFC 9113](https://www.rfc-editor.org/rfc/rfc9113), [RFC 7541](https://www.rfc-editor.org/rfc/rfc7541).
"""
