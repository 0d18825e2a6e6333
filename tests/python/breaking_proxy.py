"""A unix socket in front of a server's that breaks connections."""

import socket
import threading


class BreakingProxy:
    """Hands bytes through both ways: the first connection breaks when budgets[0] bytes have gone through, the second at
    budgets[1], and so on; those that come later stay. Listens from construction until close()."""

    def __init__(self, path, server_path, budgets):
        self.target = f"unix:{path}"
        self.connections = self.bytes = 0
        self._server_path, self._budgets = server_path, list(budgets)
        self._lock = threading.Lock()
        self._sockets = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        for end in [self._listener, *self._sockets]:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server_path)
            budget = [self._budgets.pop(0) if self._budgets else float("inf")]
            self.connections += 1
            self._sockets += [client, server]
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._move, args=(*ends, budget), daemon=True).start()

    def _move(self, source, sink, budget):
        try:
            while data := source.recv(1 << 16):
                with self._lock:
                    data = data[: int(min(len(data), budget[0]))]
                    budget[0] -= len(data)
                    self.bytes += len(data)
                sink.sendall(data)
                if budget[0] <= 0:
                    break
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
