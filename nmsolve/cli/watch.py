"""``nmsolve watch RUN``: the page of a run while it goes on, for one browser on this machine.

The server listens on 127.0.0.1 alone, cannot change anything, and answers only requests with the token of the address.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import threading
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import parse_qs, urlsplit

from nmsolve.kinds.answer import OK
from nmsolve.kinds.progress import LIVE
from nmsolve.kinds.registry import kinds
from nmsolve.model.errors import InputError
from nmsolve.report.drawing import PALETTE
from nmsolve.report.page import fill

if TYPE_CHECKING:
    from nmsolve.cli.commands import WatchOptions

#: Bytes of events in one answer, at most; of a page; connections at once; seconds that a browser may take to ask.
MOST_BYTES, MOST_PAGE, MOST_CONNECTIONS, PATIENCE = 2**20, 2**26, 32, 30.0
#: What the browser may do with the page: run its own script and ask this server, nothing else.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'"


@cache
def _pages() -> list[str]:
    """Names of the pages of finished runs, of whatever kind."""
    return list(dict.fromkeys([*(one.page for one in kinds()), "pareto.html"]))


def run_watch(o: WatchOptions) -> int:
    """Serve until Ctrl-C.

    Raises
    ------
    InputError : no such folder, or the port is taken
    """
    if not o.run.is_dir():
        raise InputError(
            "there is no such folder", str(o.run), "the --out of a run that goes on, or of a finished one"
        )
    try:
        server = Server(("127.0.0.1", o.port), Watcher)
    except OSError as error:
        raise InputError(
            f"it cannot be used ({error.strerror})", f"--port {o.port}", "a free port, or 0 for any"
        ) from None
    server.folder, server.token = o.run, secrets.token_urlsafe(16)  # type: ignore[attr-defined]
    print(f"http://127.0.0.1:{server.server_port}/{server.token}/", flush=True)  # type: ignore[attr-defined]
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return OK
    finally:
        server.server_close()
    return OK


class Server(ThreadingHTTPServer):
    """Serves few browsers at a time; says nothing of those that leave in the middle of an answer."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread; of too many connections at once the last is closed."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, then make room."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors but those of the connection."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Watcher(BaseHTTPRequestHandler):
    """Answers with the page, or with what happened since."""

    timeout = PATIENCE

    def do_GET(self) -> None:
        """Page at ``/TOKEN/``, events from byte N on at ``/TOKEN/events?from=N``; everything else is not there."""
        asked, own = urlsplit(self.path), f"127.0.0.1:{self.server.server_port}"  # type: ignore[attr-defined]
        parts = asked.path.split("/")
        known = len(parts) == 3 and secrets.compare_digest(parts[1].encode(), self.server.token.encode())  # type: ignore[attr-defined]
        if self.headers.get("Host") not in (own, own.replace("127.0.0.1", "localhost")) or not known:
            self.send_error(HTTPStatus.FORBIDDEN, "the address needs its token")
        elif parts[2] == "":
            self._send(page_of(self.server.folder).encode(), "text/html; charset=utf-8")  # type: ignore[attr-defined]
        elif parts[2] == "events":
            begin = parse_qs(asked.query).get("from", ["0"])[0]
            at = int(begin) if begin.isascii() and begin.isdigit() and len(begin) < 16 else 0
            self._send(json.dumps(events_from(self.server.folder, at)).encode(), "application/json")  # type: ignore[attr-defined]
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(self, data: bytes, kind: str) -> None:
        self.send_response(HTTPStatus.OK)
        for name, value in (
            ("Content-Type", kind), ("Content-Length", str(len(data))), ("Cache-Control", "no-store"),
            ("Content-Security-Policy", POLICY), ("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff"),
        ):  # fmt: skip
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the terminal belongs to the user."""


def page_of(folder: Path) -> str:
    """Return the page of a finished run, or one that follows a run that goes on."""
    for name in _pages() if not (folder / LIVE).exists() else ():
        with suppress(OSError), _regular(folder / name) as file:
            return file.read(MOST_PAGE).decode("utf-8", "replace")
    return fill("watch.html.j2", folder=str(folder), palette=list(PALETTE))


def events_from(folder: Path, at: int) -> dict[str, object]:
    """Return the whole lines of the running search from byte ``at`` on, where the next ones begin, and how far the run is.

    ``state`` : ``runs``, ``ends`` (the search has ended, the page is not there yet), ``finished``
    """
    try:
        with _regular(folder / LIVE) as file:
            size = file.seek(0, 2)
            begin = at if at <= size else 0  # a new search has begun
            file.seek(begin)
            data = file.read(MOST_BYTES)
    except OSError:
        done = any((folder / name).exists() for name in _pages())
        return {"state": "finished" if done else "ends", "next": 0, "events": []}
    end = data.rfind(b"\n") + 1
    if not end and len(data) == MOST_BYTES:
        end = MOST_BYTES  # a line that does not end is passed over, piece by piece
    whole = data[:end]
    events = [event for line in whole.splitlines() if (event := _event(line)) is not None]
    return {"state": "runs", "again": begin < at, "next": begin + len(whole), "events": events}


def _regular(path: Path) -> BinaryIO:
    """Open a plain file. FileNotFoundError for anything else: a pipe would never end, and a link leads elsewhere."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise FileNotFoundError(path)
    return file


def _event(line: bytes) -> dict[str, object] | None:
    """Return the event of a line; None if it is none."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
