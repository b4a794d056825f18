"""Python's http.server behind the gate: answers {} to everything, and prints each request that it sees."""

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def parse_request(self):
        is_valid = super().parse_request()
        headers = getattr(self, "headers", {})
        line = f"{self.command} {getattr(self, 'path', '?')} {headers.get('X-Request-ID', '?')}\n"
        # One write for each line: the threads share the output.
        os.write(1, line.encode("utf-8", "replace"))
        return is_valid

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_POST = do_GET

    def log_message(self, format, *args):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
