"""The rounds of a job that runs with gorun --on-failure=replace: see docs/elastic.md."""

import json
import os
import socket


class Rounds:
    """What the agent says of the rounds of this worker's job."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["GORUN_ROUND_SOCKET"])
        self.lines = self.socket.makefile("rw")
        self.next()  # the round in which this worker starts

    def next(self):
        """Waits for the next document."""
        line = self.lines.readline()
        if not line:
            raise EOFError("the agent has gone")
        return json.loads(line)

    def enter(self):
        """Waits for the next round, and enters it. Returns those who died before it."""
        document = self.next()
        while document.get("over"):
            document = self.next()
        os.environ.update(document["env"])
        self.lines.write(json.dumps({"round": document["round"]}) + "\n")
        self.lines.flush()
        return document.get("died", [])
