# SPDX-License-Identifier: MIT
"""A small site on loopback for archives, with given responses by path."""
import http.server
import threading


class Site:
    """pages: {path: (status, fields, body)}, or a function of (path, request fields)."""

    def __init__(self, pages):
        self.pages = pages
        self.asked = []
        site = self

        class Answer(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_GET(self):
                site.asked.append((self.path, dict(self.headers)))
                found = site.pages(self.path, self.headers) if callable(site.pages) else site.pages.get(self.path)
                status, fields, body = found if found is not None else (404, {}, b'nothing here')
                self.send_response(status)
                chunked = fields.get('Transfer-Encoding') == 'chunked'
                for name, value in fields.items():
                    self.send_header(name, value)
                if not chunked and 'Content-Length' not in fields and status != 304:
                    self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                if chunked:
                    for at in range(0, len(body), 1000):
                        piece = body[at:at + 1000]
                        self.wfile.write(b'%x\r\n%s\r\n' % (len(piece), piece))
                    body = b'0\r\n\r\n'
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

        self.server = Server(('127.0.0.1', 0), Answer)
        self.port = self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={'poll_interval': 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def url(self, path, host='127.0.0.1'):
        return f'http://{host}:{self.port}{path}'
