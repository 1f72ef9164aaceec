# SPDX-License-Identifier: MIT
"""Services that report how they understood a request: one process each, on a loopback port."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'net', 'client')]

from nginx import PROGRAM, free_port  # noqa: E402

FOLDER = os.path.join(HERE, 'services')
PYTHON = '/usr/bin/python3'  # Python of the system, which has these packages; `python3` may be another
NODE_PATH = '/usr/share/nodejs:/usr/lib/nodejs'  # folders of Debian's packages, for a node that is not from Debian


def _nginx(folder, port):
    with open(f'{FOLDER}/nginx.conf', encoding='utf-8') as file:
        text = file.read().replace('{folder}', folder).replace('{port}', str(port))
    with open(f'{folder}/nginx.conf', 'w', encoding='utf-8') as file:
        file.write(text)
    return [PROGRAM, '-p', folder, '-c', f'{folder}/nginx.conf']


def _script(program, name, *words):
    return lambda _, port: [program, f'{FOLDER}/{name}', *words, str(port)]


# In the order of the table.
SERVICES = {
    'nginx': _nginx,
    'gunicorn': _script(PYTHON, 'django_service.py', 'gunicorn'),  # Django
    'wsgiref': _script(PYTHON, 'django_service.py', 'wsgiref'),  # Django
    'flask': _script(PYTHON, 'flask_service.py'),
    'express': _script('node', 'express_service.js'),
    'url': _script('node', 'url_service.js'),
}


class Service:
    def __init__(self, name):
        self.name = name
        self.folder = tempfile.mkdtemp(prefix='weir-service-')
        self.port = free_port()
        with open(f'{self.folder}/log', 'w', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                SERVICES[name](self.folder, self.port), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, 'NODE_PATH': NODE_PATH, 'PYTHONDONTWRITEBYTECODE': '1'})

    def wait(self):
        """Waits until the service accepts connections."""
        end = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return
            assert self.process.poll() is None and time.monotonic() < end, f'{self.name}: {self.lines()}'
            time.sleep(0.02)

    def taken(self):
        """Returns [dict]: the report of the service on each request that it received."""
        return [json.loads(line) for line in self.lines().split('\n') if line.startswith('{"route"')]

    def lines(self):
        with open(f'{self.folder}/log', encoding='utf-8', errors='replace') as file:
            return file.read()

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)  # gunicorn has a worker
        self.process.wait()
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def running(names=tuple(SERVICES)):
    """Yields {name: Service}; all services accept connections."""
    services = {}
    try:
        for name in names:
            services[name] = Service(name)
        for service in services.values():
            service.wait()
        yield services
    finally:
        for service in services.values():
            service.end()
