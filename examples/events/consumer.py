"""Reads the events of the gateway and prints a line for each (docs/events.md).

    python3 examples/events/consumer.py control.sock events.cursor [one]

The first argument is the Unix socket of the gateway's control listener (`control: {socket: control.sock}`), the second a file for the cursor.
With a third argument, the program ends after one answer. A real consumer stores its own changes and the cursor in one transaction; this one
writes the cursor after its lines, so that an event is printed again after a crash: a reader of the lines knows each by its sequence.
"""

import http.client
import json
import os
import socket
import sys
import time
import urllib.parse


class Control(http.client.HTTPConnection):
    """A connection to the control listener's socket."""

    def __init__(self, path):
        # Longer than the longest wait of the gateway.
        super().__init__("localhost", timeout=90)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def poll(path, cursor):
    """Asks for events after the cursor; returns status, Retry-After in seconds, and the answer."""
    query = {"wait": 60, "limit": 100}
    if cursor:
        query["after"] = cursor
    control = Control(path)
    try:
        control.request("GET", "/events?" + urllib.parse.urlencode(query))
        answer = control.getresponse()
        return answer.status, int(answer.headers.get("Retry-After", 5)), json.loads(answer.read())
    finally:
        control.close()


def read_cursor(file):
    """The cursor in the file; empty at the first start."""
    try:
        with open(file, encoding="ascii") as opened:
            return opened.read().strip()
    except FileNotFoundError:
        return ""


def write_cursor(file, cursor):
    """Replaces the file in one step."""
    with open(file + ".new", "w", encoding="ascii") as opened:
        opened.write(cursor)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(file + ".new", file)


def main(path, file, only_one):
    while True:
        try:
            status, again, answer = poll(path, read_cursor(file))
        except (OSError, http.client.HTTPException) as error:
            print(f"the gateway does not answer: {error}", file=sys.stderr)
            status, again, answer = 503, 5, {}
        if status == 200:
            for event in answer["events"]:
                print(json.dumps(event), flush=True)
            write_cursor(file, answer["next"])
        elif status == 410:
            print("events are lost: compare the bank's records with POST /psu/list", file=sys.stderr)
            write_cursor(file, answer["oldest"])
        elif status == 503:
            time.sleep(again)
        else:
            sys.exit(f"{status}: {answer['message']}")
        if only_one and status == 200:
            return


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], len(sys.argv) > 3)
