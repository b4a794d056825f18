"""A core whose behaviour a file sets: ok, error, slow or reset. Writes a line for each request but those to /health."""
import http.server
import socket
import struct
import sys
import threading
import time

PORT, MODE, SEEN = int(sys.argv[1]), sys.argv[2], sys.argv[3]
LOCK = threading.Lock()


class Core(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/health":
            with LOCK, open(SEEN, "a") as seen:
                seen.write(f"{self.command} {self.headers.get('X-Request-ID')}\n")
        with open(MODE) as file:
            mode = file.read()
        if mode == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return
        if mode == "slow":
            time.sleep(5)
        self.send_response(500 if mode == "error" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128

    def handle_error(self, *_):
        pass


Server(("127.0.0.1", PORT), Core).serve_forever()
