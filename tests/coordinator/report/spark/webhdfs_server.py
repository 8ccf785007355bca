"""A small WebHDFS server on loopback, of a folder: what Hadoop's client needs to write, list, read, rename and remove.

Answers name no content type: the classes by which Hadoop's client reads one are not among PySpark's jars, and without
one it looks no further. The protocol: https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

PREFIX = "/webhdfs/v1"


class Handler(BaseHTTPRequestHandler):
    """One connection. Data goes where a redirection leads, here to the same server."""

    protocol_version = "HTTP/1.1"
    server: WebHdfs

    def log_message(self, *given: Any) -> None:
        """Nothing."""

    def _ask(self) -> tuple[str, Path, dict[str, str]]:
        parts = urlsplit(self.path)
        words = {key.lower(): value for key, value in parse_qsl(parts.query)}
        path = unquote(parts.path).removeprefix(PREFIX).lstrip("/")
        self.server.asked.append(words["op"].upper())
        return words["op"].upper(), self.server.folder / path, words

    def _answer(self, document: Any = None, code: int = 200, headers: dict[str, str] | None = None) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(code)
        for name, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _missing(self, path: Path) -> None:
        kind = "java.io.FileNotFoundException"
        problem = {"exception": kind.rpartition(".")[2], "javaClassName": kind, "message": f"{path} does not exist"}
        self._answer({"RemoteException": problem}, 404)

    def do_GET(self) -> None:
        op, path, words = self._ask()
        if not path.exists():
            self._missing(path)
        elif op == "GETFILESTATUS":
            self._answer({"FileStatus": _status(path, "")})
        elif op == "LISTSTATUS":
            found = [_status(each, each.name) for each in sorted(path.iterdir())] if path.is_dir() else [
                _status(path, "")]  # fmt: skip
            self._answer({"FileStatuses": {"FileStatus": found}})
        elif op == "OPEN":
            self._open(path, words)
        elif op == "GETFILEBLOCKLOCATIONS":
            self._answer({"BlockLocations": {"BlockLocation": [_block(path)]}})
        else:
            self._answer(code=400)

    def _open(self, path: Path, words: dict[str, str]) -> None:
        if "redirected" not in words:
            self._redirect()
            return
        start = int(words.get("offset", 0))
        with path.open("rb") as file:
            file.seek(start)
            body = file.read(int(words["length"])) if "length" in words else file.read()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _redirect(self) -> None:
        host, port = self.server.server_address[:2]
        self._answer(None, 307, {"Location": f"http://{host!s}:{port}{self.path}&redirected=true"})

    def do_PUT(self) -> None:
        op, path, words = self._ask()
        body = self._body()
        if op == "CREATE" and "redirected" not in words:
            self._redirect()
        elif op == "CREATE":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
            self._answer(code=201)
        elif op == "MKDIRS":
            path.mkdir(parents=True, exist_ok=True)
            self._answer({"boolean": True})
        elif op == "RENAME":
            self._answer({"boolean": self._rename(path, words["destination"])})
        else:
            self._answer({})

    def _rename(self, path: Path, to: str) -> bool:
        target = self.server.folder / to.lstrip("/")
        if not path.exists() or not target.parent.is_dir():
            return False
        path.rename(target / path.name if target.is_dir() else target)
        return True

    def do_DELETE(self) -> None:
        _, path, _ = self._ask()
        there = path.exists()
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        self._answer({"boolean": there})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = bytearray()
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return bytes(found)


def _status(path: Path, suffix: str) -> dict[str, Any]:
    kind, there = ("DIRECTORY" if path.is_dir() else "FILE"), path.stat()
    return {
        "pathSuffix": suffix, "type": kind, "length": 0 if path.is_dir() else there.st_size, "owner": "o", "group": "g",
        "permission": "755", "accessTime": 0, "modificationTime": int(there.st_mtime * 1000), "blockSize": 1 << 27,
        "replication": 1, "fileId": there.st_ino, "childrenNum": 0, "storagePolicy": 0,
    }  # fmt: skip


def _block(path: Path) -> dict[str, Any]:
    return {
        "hosts": ["127.0.0.1"], "names": ["127.0.0.1:1"], "topologyPaths": ["/r/127.0.0.1:1"], "cachedHosts": [],
        "storageTypes": ["DISK"], "offset": 0, "length": path.stat().st_size, "corrupt": False,
    }  # fmt: skip


class WebHdfs(ThreadingHTTPServer):
    """asked: operations, in order."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.asked = folder, list[str]()

    @property
    def url(self) -> str:
        """Its root."""
        return f"webhdfs://127.0.0.1:{self.server_address[1]}"


@contextmanager
def serving(folder: Path) -> Iterator[WebHdfs]:
    """A server, until the end."""
    with WebHdfs(folder) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
