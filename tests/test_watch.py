"""``nmsolve watch``: a run is followed while it goes on, by who knows the token, and nothing is written or given away."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from browser_support import chromium
from command_support import run_here

from nmsolve.cli.watch import MOST_BYTES, MOST_CONNECTIONS, Server, Watcher, events_from, page_of
from nmsolve.kinds.progress import LIVE, live
from nmsolve.model.bound import Event

TOKEN = "token"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    """A folder with a running search of two events, and the port of its server."""
    server = Server(("127.0.0.1", 0), Watcher)
    server.folder, server.token = tmp_path, TOKEN  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, server.server_port
    server.shutdown()
    server.server_close()


def asked(
    port: int, path: str, method: str = "GET", host: str | None = None
) -> tuple[int, str, dict[str, str]]:
    """Return status, body and headers of an answer."""
    line = HTTPConnection("127.0.0.1", port, timeout=10)
    line.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
    reply = line.getresponse()
    return reply.status, reply.read().decode(), dict(reply.getheaders())


def test_events_are_whole_lines_from_where_the_last_ones_ended(tmp_path: Path) -> None:
    """While the search runs; a new search begins at 0 again, and afterwards the file is gone."""
    with live(tmp_path) as (tell,):
        tell(Event(0.1, "incumbent", "a", 5.0))
        first = events_from(tmp_path, 0)
        assert [e["objective"] for e in first["events"]] == [5.0] and first["state"] == "runs"  # type: ignore[union-attr]
        assert events_from(tmp_path, first["next"])["events"] == []  # type: ignore[arg-type]
        with open(tmp_path / LIVE, "a") as file:
            file.write('{"type": "bound", "bou')
        assert events_from(tmp_path, first["next"])["events"] == []  # type: ignore[arg-type]
        assert events_from(tmp_path, 10**9)["again"]
    assert not (tmp_path / LIVE).exists() and events_from(tmp_path, 0)["state"] == "ends"
    (tmp_path / "report.html").write_text("x")
    assert events_from(tmp_path, 0)["state"] == "finished"
    with live(None) as none:
        assert none == []


def test_only_who_knows_the_token_is_answered(served: tuple[Path, int]) -> None:
    """Not under another name of the host either (DNS rebinding); other methods and other files do not exist."""
    folder, port = served
    (folder / "secret.json").write_text("{}")
    (folder / "report.html").write_text("<h1>done</h1>")
    status, text, headers = asked(port, f"/{TOKEN}/")
    assert (
        status == 200
        and text == "<h1>done</h1>"
        and "default-src 'none'" in headers["Content-Security-Policy"]
    )
    for path in (
        "/",
        "/events",
        "/wrong/",
        "/wrong/events",
        f"/{TOKEN}",
        f"/{TOKEN}/../secret.json",
    ):
        assert asked(port, path)[0] == 403, path
    assert asked(port, f"/{TOKEN}/secret.json")[0] == 404
    assert asked(port, f"/{TOKEN}/", host="evil.example")[0] == 403
    assert asked(port, f"/{TOKEN}/", "POST")[0] == 501
    for begin in ("-1", "x", "9" * 400, "%D9%A3"):
        assert json.loads(asked(port, f"/{TOKEN}/events?from={begin}")[1])["state"] == "finished"


def test_a_run_is_followed_to_its_page(tmp_path: Path) -> None:
    """Two commands side by side; in a browser the figures appear, then the explorable page."""
    browser = next(given := chromium())
    run_here("generate", "mesh-comm", "--nodes", "60", "--side", "8", "--out", tmp_path / "g.json")
    out = tmp_path / "run"
    out.mkdir()
    nmsolve = [sys.executable, "-m", "nmsolve"]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    watch = subprocess.Popen([*nmsolve, "watch", str(out)], **quiet)  # type: ignore[call-overload]
    assert watch.stdout is not None
    url = watch.stdout.readline().strip()
    assert urlsplit(url).hostname == "127.0.0.1" and len(urlsplit(url).path) > 20
    words = ["map", str(tmp_path / "g.json"), "-m", "mesh:8x8", "-t", "12", "-o", str(out)]
    with subprocess.Popen([*nmsolve, *words], **quiet) as run:  # type: ignore[call-overload]
        page = browser.new_page()
        said: list[str] = []
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: said.append(r.url) if not r.url.startswith(url) else None)
        page.goto(url)
        page.wait_for_selector('[data-is=best]:text-matches("[0-9]")', timeout=40_000)
        assert page.locator("[data-is=time] svg").count() == 1 and (out / LIVE).exists()
        page.wait_for_selector("#explorer[data-ready=yes]", timeout=30_000)
        assert run.wait(60) == 0 and said == [] and not (out / LIVE).exists()
    watch.send_signal(signal.SIGINT)
    assert watch.wait(10) == 0
    given.close()


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    assert "no such folder" in run_here("watch", tmp_path / "no", code=2).stderr
    server = Server(("127.0.0.1", 0), Watcher)
    said = run_here("watch", tmp_path, "--port", server.server_port, code=2).stderr
    server.server_close()
    assert f"--port {server.server_port}: it cannot be used" in said


def test_a_full_disk_ends_the_lines_and_not_the_search(tmp_path: Path) -> None:
    """Writing fails: the observer is quiet from then on."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    (tmp_path / LIVE).symlink_to("/dev/full")
    with live(tmp_path) as (tell,):
        for k in range(3):
            tell(Event(k * time.time(), "incumbent", "a", 5.0))
    assert not (tmp_path / LIVE).exists()


def test_lines_that_are_no_events_are_passed_over(tmp_path: Path) -> None:
    """Also those that do not end; what comes after them is read."""
    good = json.dumps({"type": "note", "text": "here"}) + "\n"
    endless = b"x" * (3 * MOST_BYTES) + b"\n"
    lines = b"not json\n[1]\n\xff\xfe\n" + b"[" * 5000 + b"\n" + good.encode() + endless + good.encode()
    (tmp_path / LIVE).write_bytes(lines)
    at, events = 0, []
    for _ in range(6):
        found = events_from(tmp_path, at)
        at = found["next"]  # type: ignore[assignment]
        events += found["events"]  # type: ignore[operator]
    assert [e["text"] for e in events] == ["here", "here"]


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    """A pipe would never end; a link leads elsewhere."""
    (tmp_path / "elsewhere").write_text("secret")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "report.html").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(folder / "route.html")
    assert "secret" not in page_of(folder)
    os.mkfifo(folder / LIVE)
    assert events_from(folder, 0)["events"] == []
    (folder / LIVE).unlink()
    (folder / LIVE).symlink_to(tmp_path / "elsewhere")
    assert events_from(folder, 0)["events"] == []


def test_clients_that_leave_or_come_in_crowds_do_no_harm(
    served: tuple[Path, int], capfd: pytest.CaptureFixture[str]
) -> None:
    folder, port = served
    (folder / "report.html").write_text("x" * 2**22)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port)) as line:
            line.sendall(f"GET /{TOKEN}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            line.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # leaves with a reset
    crowd = [socket.create_connection(("127.0.0.1", port)) for _ in range(MOST_CONNECTIONS + 8)]
    closed = 0
    for line in crowd[MOST_CONNECTIONS:]:
        line.settimeout(10)
        with contextlib.suppress(ConnectionError):
            closed += line.recv(1) == b""
    assert closed > 0
    for line in crowd:
        line.close()
    time.sleep(0.2)
    assert asked(port, f"/{TOKEN}/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err
