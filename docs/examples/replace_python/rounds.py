"""The rounds of a job that runs with gorun --on-failure=replace: see docs/elastic.md."""

import json
import os
import select
import socket


class Rounds:
    """What the agent says of the rounds of this worker's job."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["GORUN_ROUND_SOCKET"])
        self.received = b""
        self.round = self._read()["round"]  # in which this worker starts
        self.over = False
        self.following = None  # the document of the next round, when it has come

    def is_over(self, wait=0):
        """Whether the round is over: a worker has died, nodes come or go, or a worker has revoked it. It waits so many seconds for that."""
        while not self.over and self._has_document(wait):
            self._take(self._read())
        return self.over

    def enter(self, why):
        """Waits for the next round, and enters it. Returns those who died before it. If the round is not over, ends it for all ranks and says why."""
        if not self.is_over(wait=1):  # if a worker has died, the agent says so by then
            self._send({"round": self.round, "revoke": why})
        while self.following is None:
            self._take(self._read())
        document, self.following = self.following, None
        self.round, self.over = document["round"], False
        os.environ.update(document["env"])
        self._send({"round": self.round})
        return document.get("died", [])

    def _take(self, document):
        if document["round"] > self.round and not document.get("over"):
            self.following = document
        self.over = True

    def _send(self, document):
        self.socket.sendall(json.dumps(document).encode() + b"\n")

    def _has_document(self, wait):
        return b"\n" in self.received or bool(select.select([self.socket], [], [], wait)[0])

    def _read(self):
        """Waits for the next document."""
        while b"\n" not in self.received:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the agent has gone")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)
