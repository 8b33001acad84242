"""A worker that takes part in --on-failure=replace, and writes a line from time to time, until it has written 120."""

import json
import os
import socket
import threading
import time


def follow(agent):
    """Enters each round that the agent tells of."""
    lines = agent.makefile("rw")
    lines.readline()  # the round in which this worker starts
    for line in lines:
        document = json.loads(line)
        if not document.get("over"):
            lines.write(json.dumps({"round": document["round"]}) + "\n")
            lines.flush()


agent = socket.socket(socket.AF_UNIX)
agent.connect(os.environ["GORUN_ROUND_SOCKET"])
threading.Thread(target=follow, args=[agent], daemon=True).start()
for step in range(120):
    print("step", step, flush=True)
    time.sleep(0.1)
