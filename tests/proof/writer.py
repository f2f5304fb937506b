"""A bandit behind a socket, in a process made to be killed. Another takes its place at once."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from typing import Any

import accrual as ac


def open_bandit(url: str | None) -> ac.Bandit:
    return ac.Bandit(arms=["jazz", "rock"], window=1000, store=url)


def answer(bandit: ac.Bandit, request: dict[str, Any]) -> Any:
    if "value" in request:
        return bandit.observe(request["id"], request["value"], key=request["key"]).late
    made = bandit.decide(key=request["key"])
    return made.id, made.arm


def serve(bandit: ac.Bandit, connection: socket.socket, eager: bool) -> None:
    with connection.makefile("rw") as lines:
        for line in lines:
            request = json.loads(line)
            if eager and "value" in request:  # the control: acknowledged first
                print("false", file=lines, flush=True)
                answer(bandit, request)
            else:
                print(json.dumps(answer(bandit, request)), file=lines, flush=True)


def main(place: str, url: str, eager: bool) -> None:
    """For each line of input: start a process, print its number, and wait for its end."""
    open_bandit(url).close()  # what is compiled and imported here need not be in each of them
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(64)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            break
        print(child, flush=True)
        os.waitpid(child, 0)
    else:
        return
    bandit = open_bandit(url)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(bandit, connection, eager), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3] == "eager")
