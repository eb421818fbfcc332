"""An HTTP server of files on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Server:
    """Files and behaviour of the server, and the (path, range) of each request."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)  # bytes after which replies end, in order
    codes: list[int] = field(default_factory=list)  # errors to reply with first
    requests: list[tuple[str, str]] = field(default_factory=list)


class Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, address: object) -> None:
        """Ignore clients that disconnect, which the tests do on purpose."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            byte_range = self.headers.get("Range", "")
            state.requests.append((self.path, byte_range))
            body, etag = state.files.get(self.path), state.etags.get(self.path, '"1"')
            if state.codes or body is None:
                self.send_error(state.codes.pop(0) if state.codes else 404)
                return
            start = 0
            if byte_range and state.ranges and self.headers.get("If-Range") == etag:
                start = int(byte_range.removeprefix("bytes=").rstrip("-"))
                if start >= len(body):
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{len(body)}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
            self.send_header("Content-Length", str(len(body) - start))
            self.send_header("ETag", etag)
            self.end_headers()
            cut = state.cuts.pop(0) if state.cuts else len(body)
            self.wfile.write(body[start : start + cut])
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        http.shutdown()
        thread.join()
