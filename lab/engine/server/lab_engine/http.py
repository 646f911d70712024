"""HTTP as both engines need it: a port bound before the load and opened when told, JSON, server-sent events."""

import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn


class Listener(ThreadingMixIn, HTTPServer):
    """Binds at once, so that a taken port is found before the load; answers only after open()."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, host, port, engine):
        self.engine = engine
        super().__init__((host, port), Exchange, bind_and_activate=False)
        self.server_bind()

    def server_bind(self):
        # HTTPServer's own asks the name service for the host's full name: seconds on a host without DNS.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.server_address[:2]

    def open(self):
        self.server_activate()

    def handle_error(self, request, client_address):
        # A client that went away is no news.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    # Headers and body leave in one packet: two small writes cost a delayed acknowledgement (40 ms).
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self):
        self.server.engine.answer(self)

    do_POST = do_GET

    def read_json(self):
        """The body as an object; ValueError when it is none. To be called for every POST, or keep-alive breaks."""
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if not isinstance(body, dict):
            raise ValueError("the body is not a JSON object")
        return body

    def send_text(self, status, text, kind="text/plain; version=0.0.4; charset=utf-8"):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_json(self, status, value):
        self.send_text(status, json.dumps(value), "application/json")

    def start(self, kind):
        """Headers of an answer whose body comes in parts."""
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def send_part(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def send_event(self, value):
        self.send_part(f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n")

    def finish_parts(self):
        self.wfile.write(b"0\r\n\r\n")

    def log_request(self, code="-", size="-"):
        self.server.engine.log_access(self.client_address, self.requestline, int(code))

    def log_message(self, format, *args):
        pass
