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

    def is_over(self):
        """Whether the round is over: a worker has died, or nodes come or go. It does not wait."""
        while not self.over and self._has_document():
            self._take(self._read())
        return self.over

    def enter(self):
        """Waits for the next round, and enters it. Returns those who died before it."""
        while self.following is None:
            self._take(self._read())
        document, self.following = self.following, None
        self.round, self.over = document["round"], False
        os.environ.update(document["env"])
        self.socket.sendall(json.dumps({"round": self.round}).encode() + b"\n")
        return document.get("died", [])

    def _take(self, document):
        if document["round"] > self.round and not document.get("over"):
            self.following = document
        self.over = True

    def _has_document(self):
        return b"\n" in self.received or bool(select.select([self.socket], [], [], 0)[0])

    def _read(self):
        """Waits for the next document."""
        while b"\n" not in self.received:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the agent has gone")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return json.loads(line)
