# SPDX-License-Identifier: MIT
"""Reads spellings.txt, whose first lines explain its format, and builds the bytes of each row's
request."""
import base64
import os
import re
from dataclasses import dataclass

import http2

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'spellings.txt')
END = r' \end'
OF = ('login', 'item', 'admin', 'static', 'home', 'none')  # routes of each service


@dataclass(frozen=True)
class Caller:
    """The sender of a request: values that no other caller of the matrix has."""
    address: str
    host: str
    token: str

    @staticmethod
    def numbered(number):
        return Caller(f'127.{1 + number // 62500}.{number // 250 % 250}.{1 + number % 250}',
                      f'c{number:05d}.api.example.org', f't{number:05d}')

    def texts(self):
        basic = base64.b64encode(f'{self.token}:p'.encode()).decode()  # of 8 bytes: base64 ends with "="
        return {'host': self.host, 'HOST': self.host.upper(), 'token': self.token, 'basic': basic, 'long': 4000 * 'a'}


def _bytes(text):
    """Replaces \\\\, \\t, \\r and \\xHH by bytes; other characters become UTF-8."""
    def byte(match):
        word = match.group(1)
        return {b'\\': b'\\', b't': b'\t', b'r': b'\r'}.get(word) or bytes([int(word[1:], 16)])
    return re.sub(rb'\\(\\|t|r|x[0-9a-fA-F]{2})', byte, text.encode())


@dataclass(frozen=True)
class Spelling:
    name: str
    of: str
    text: str

    @property
    def is_http2(self):
        return self.text.split(r' \n ')[0].endswith(' HTTP/2')

    @property
    def ends_by_closing(self):
        return self.text.endswith(END)

    def request(self, caller):
        """Returns the bytes of the request of this caller."""
        text = re.sub(r'\{(\w+)\}', lambda match: caller.texts()[match.group(1)], self.text.removesuffix(END))
        head, _, body = text.partition(r' \n \n ')
        line, *fields = head.split(r' \n ')
        if self.is_http2:
            return http2.request(_http2_fields(line, fields, caller), _bytes(body))
        _add_unless_named(fields, 'Host: ' + caller.host)
        return b''.join(_bytes(part) + b'\r\n' for part in (line, *fields, '')) + _bytes(body)


def _add_unless_named(fields, field):
    """Inserts the field at the front, unless a field of its name exists, or "-Name" asks to leave
    it out."""
    name = field[:field.index(':', 1)]
    if '-' + name in fields:
        fields.remove('-' + name)
    elif not any(other.lower().startswith(name.lower()) for other in fields):
        fields.insert(0, field)


def _http2_fields(line, fields, caller):
    """Returns [(name, value)]; "METHOD PATH" of the request line become fields, too."""
    method, _, path = line[:-len(' HTTP/2')].partition(' ')
    for field in (':authority: ' + caller.host, ':path: ' + path, ':scheme: http', ':method: ' + method):
        _add_unless_named(fields, field)
    return [tuple(map(_bytes, field.split(': ', 1))) for field in fields]


def read(path=PATH):
    """Returns [Spelling], in the order of the file."""
    rows = []
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith('#'):
                continue
            words = line.rstrip('\n').split(None, 2)
            assert len(words) == 3 and words[1] in OF, f'{path}:{number}: not a row of the form NAME OF REQUEST'
            rows.append(Spelling(*words))
    names = [row.name for row in rows]
    assert len(set(names)) == len(names), f'{path}: twice: {[name for name in names if names.count(name) > 1]}'
    return rows
