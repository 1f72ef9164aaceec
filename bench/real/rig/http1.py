# SPDX-License-Identifier: MIT
"""The part of HTTP/1.1 that the relay needs: where requests end, and where responses begin and end.
"""

END = b'\r\n\r\n'


class Requests:
    """Finds the heads of GET requests, in pieces of any size."""

    def __init__(self):
        self._rest = b''

    def feed(self, data):
        """Returns how many requests these bytes complete."""
        heads = (self._rest + data).split(END)
        self._rest = heads.pop()
        return len(heads)


class Answers:
    """Finds the responses to GET requests, in pieces of any size."""

    def __init__(self):
        self._rest, self._read = b'', self._head
        self._left = 0
        self._heads = []

    def feed(self, data):
        """Returns [(status, {name: [value]})] of the responses whose head these bytes complete."""
        self._rest += data
        while self._rest and self._read():
            pass
        heads, self._heads = self._heads, []
        return heads

    def _head(self):
        head, found, rest = self._rest.partition(END)
        if not found:
            return False
        self._rest = rest
        line, *lines = head.decode('latin-1').split('\r\n')
        status = int(line.split(' ')[1])
        fields = {}
        for each in lines:
            name, _, value = each.partition(':')
            fields.setdefault(name.strip().lower(), []).append(value.strip())
        if status >= 200:
            self._heads.append((status, fields))
            self._read = self._body_of(status, fields)
        return True

    def _body_of(self, status, fields):
        if status in (204, 304):
            return self._head
        if 'chunked' in ''.join(fields.get('transfer-encoding', [])).lower():
            return self._chunk
        if 'content-length' in fields:
            self._left = int(fields['content-length'][0])
            return self._body
        return self._until_the_end

    def _body(self):
        size = min(self._left, len(self._rest))
        self._left -= size
        self._rest = self._rest[size:]
        if self._left == 0:
            self._read = self._head
        return size > 0 or self._left == 0

    def _chunk(self):
        line, found, rest = self._rest.partition(b'\r\n')
        if not found:
            return False
        size = int(line.split(b';')[0], 16)
        if len(rest) < size + 2:
            return False
        self._rest = rest[size + 2:]
        if size == 0:  # the services send no trailers
            self._read = self._head
        return True

    def _until_the_end(self):
        self._rest = b''
        return False
