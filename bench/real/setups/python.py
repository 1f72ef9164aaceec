# SPDX-License-Identifier: MIT
"""Services in Python: Django REST framework and Flask-Limiter, served by Waitress with 64 threads."""
from rig.setup import Server, Setup, window

PYTHON = '/usr/bin/python3'


def service(file, module, *words):
    return Server(words=(PYTHON, f'@services@/{file}', '@port@', '@latency_ms@', *words), env={'PYTHONDONTWRITEBYTECODE': '1'},
                  needs=(f'{PYTHON} -c "import {module}, waitress"',))


def django(throttle):
    return service('django_throttle.py', 'rest_framework', throttle)


def flask(limits, strategy='fixed-window', fields='fields'):
    return service('flask_limits.py', 'flask_limiter', limits, strategy, fields)


SETUPS = [
    Setup('django-rest-300m', django('300/min'), window(300, 60), traits=('window', 'retry-after')),
    Setup('django-rest-5s', django('5/sec'), window(5, 1), traits=('window', 'retry-after')),
    Setup('flask-100-10s', flask('100 per 10 second'), window(100, 10), traits=('window', 'fields', 'retry-after-on-200')),
    Setup('flask-bare-60-10s', flask('60 per 10 second', fields='none'), window(60, 10), traits=('window', 'bare')),
    Setup('flask-moving-50-10s', flask('50 per 10 second', 'moving-window', 'none'), window(50, 10), traits=('window', 'bare')),
    Setup('flask-two', flask('10 per second; 240 per minute'), window(240, 60), traits=('window', 'fields', 'two')),
]
