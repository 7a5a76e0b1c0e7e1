"""A proxy between a client and a server, over a separate socket, whose connections a test can break."""

from __future__ import annotations

import socket
import tempfile
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = ".s.PGSQL.5432"


class BreakableProxy:
    """A proxy that drops the server's answer to one request, which the server does execute.

    The server keeps its end of the broken connection, as after a failure of the network.
    """

    def __init__(self, server: Path) -> None:
        self._server = server
        self._dead: list[socket.socket] = []
        self.cut_after: bytes | None = None
        self.cuts = 0

    def serve(self, listening: socket.socket) -> None:
        """Serve one connection after the other, until the socket is closed."""
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                threading.Thread(target=self._pass_on, args=(client,), daemon=True).start()

    def close(self) -> None:
        """Close the server ends of broken connections."""
        for end in self._dead:
            end.close()

    def _pass_on(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(self._server / NAME))
        lost = threading.Event()

        def answers() -> None:
            with suppress(OSError):
                while data := server.recv(65_536):
                    if lost.is_set():
                        break
                    client.sendall(data)
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

        answering = threading.Thread(target=answers, daemon=True)
        answering.start()
        with suppress(OSError), client:
            while data := client.recv(65_536):
                if self.cut_after is not None and self.cut_after in data:
                    self.cut_after = None
                    self.cuts += 1
                    lost.set()
                server.sendall(data)
        if lost.is_set():
            self._dead.append(server)
            return
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        answering.join()
        server.close()


@contextmanager
def proxy_to(server: Path) -> Iterator[tuple[BreakableProxy, str]]:
    """Yield a proxy to the server whose socket is in a directory, and the directory of the proxy's socket."""
    line = BreakableProxy(server)
    with (
        tempfile.TemporaryDirectory(prefix="perftrail-line-") as directory,
        socket.socket(socket.AF_UNIX) as listening,
    ):
        listening.bind(f"{directory}/{NAME}")
        listening.listen()
        thread = threading.Thread(target=line.serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield line, directory
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            line.close()
