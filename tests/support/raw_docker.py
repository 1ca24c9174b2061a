"""The least that an exec in Docker takes: the same requests as ours, raw and blocking, without a client library."""

from __future__ import annotations

import json
import socket


class RawDocker:
    """``create + start + inspect`` as plain blocking HTTP: kept-alive for the first and last, one taken over."""

    def __init__(self, path: str, container: str) -> None:
        self._path, self._container = path, container
        self._kept = self._connect()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        return connection

    @staticmethod
    def _ask(connection: socket.socket, method: str, path: str, body: object) -> bytes:
        data = json.dumps(body).encode() if body else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        return connection.recv(65536)

    async def exec(self) -> None:
        wanted = {"Cmd": ["bash", "-c", "true"], "AttachStdout": True, "AttachStderr": True}
        created = self._ask(self._kept, "POST", f"/containers/{self._container}/exec", wanted)
        number = json.loads(created.partition(b"\r\n\r\n")[2])["Id"]
        with self._connect() as taken:
            self._ask(taken, "POST", f"/exec/{number}/start", {"Detach": False, "Tty": False})
            while taken.recv(65536):
                pass
        state = self._ask(self._kept, "GET", f"/exec/{number}/json", None)
        assert json.loads(state.partition(b"\r\n\r\n")[2])["ExitCode"] == 0
