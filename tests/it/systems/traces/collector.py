"""A collector of traces by OTLP over HTTP: prints its port, and then each push as a line of JSON."""

import http.server
import json
import sys

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        assert self.headers["Content-Type"] == "application/x-protobuf"
        push = ExportTraceServiceRequest()
        push.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        print(json.dumps(MessageToDict(push)), flush=True)
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_address[1], flush=True)
sys.exit(server.serve_forever())
