# SPDX-License-Identifier: MIT
"""A Django service. Arguments: the server (gunicorn or wsgiref), a loopback port."""
import socket
import socketserver
import sys
import wsgiref.simple_server

import django
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.wsgi import WSGIHandler
from django.http import HttpResponse
from django.http.request import split_domain_port
from django.urls import path, re_path

from took import credential, took


def _host(request):
    """Returns the host of a request; None if Django rejects it. (Views that read such a host fail;
    others never see it.)"""
    try:
        return split_domain_port(request.get_host())[0]
    except DisallowedHost:
        return None


def _answer(request, route):
    line = took(route=route, method=request.method, host=_host(request), path=request.path_info,
                credential=credential(request.META.get('HTTP_AUTHORIZATION', '')),
                key=request.META.get('HTTP_X_API_KEY'),
                ip=request.META.get('HTTP_X_FORWARDED_FOR', '').split(',')[0].strip())
    # Neither server omits the body of a response to HEAD; on a kept connection a proxy would take
    # the body for the next response.
    return HttpResponse('' if request.method == 'HEAD' else line, headers={'X-Took': line, 'Content-Length': len(line)})


def _view(route):
    return lambda request, **_: _answer(request, route)


def _login(request):
    return _answer(request, 'login' if request.method == 'POST' else 'none')


urlpatterns = [
    path('login', _login),
    path('api/items/<str:item>', _view('item')),
    re_path(r'^admin/', _view('admin')),
    re_path(r'^static/', _view('static')),
    path('', _view('home')),
    re_path('', _view('none')),
]


def _gunicorn(port):
    from gunicorn.app.base import BaseApplication

    class Application(BaseApplication):
        def load_config(self):
            # A connection occupies a thread from its start to its first request. Caddy opens
            # connections that it does not use for two minutes, at most 32 per service: there are
            # several times the threads that three Caddies occupy. The timeouts also suit a busy machine.
            for name, value in {'bind': f'127.0.0.1:{port}', 'workers': 1, 'threads': 512, 'keepalive': 600, 'timeout': 0,
                                'worker_class': 'gthread', 'loglevel': 'critical'}.items():
                self.cfg.set(name, value)

        def load(self):
            return WSGIHandler()

    sys.argv[1:] = []
    Application().run()


class _Threads(socketserver.ThreadingMixIn, wsgiref.simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 128

    def shutdown_request(self, request):
        """Reads the whole request before closing. Django answers without reading a chunked body; a
        proxy that gets a reset while it sends the body would drop the response."""
        try:
            request.shutdown(socket.SHUT_WR)
            while request.recv(65536):
                pass
        except OSError:
            pass  # The other side has closed the connection.
        self.close_request(request)


class _Quiet(wsgiref.simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass

    def address_string(self):
        return self.client_address[0]


def _wsgiref(port):
    wsgiref.simple_server.make_server('127.0.0.1', port, WSGIHandler(), _Threads, _Quiet).serve_forever()


settings.configure(ALLOWED_HOSTS=['*'], ROOT_URLCONF=__name__, SECRET_KEY='x', MIDDLEWARE=[], DEBUG=False,
                   LOGGING_CONFIG=None)
django.setup()
if __name__ == '__main__':
    sys.modules[settings.ROOT_URLCONF] = sys.modules['__main__']
    {'gunicorn': _gunicorn, 'wsgiref': _wsgiref}[sys.argv[1]](int(sys.argv[2]))
