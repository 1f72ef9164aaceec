# SPDX-License-Identifier: MIT
"""HTTP/2 (RFC 9113) for one request per connection: sends its fields byte for byte, and reads the
status and the body of the response. A library would refuse to send invalid fields."""
import struct

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
END_STREAM, END_HEADERS = 1, 4
HEADER_TABLE_SIZE, ENABLE_PUSH = 1, 2
STATUS = 8  # index in the static table of HPACK (RFC 7541 A): the first of seven statuses
STATUSES = (200, 204, 206, 304, 400, 404, 500)


def _frame(kind, flags, stream, payload):
    return struct.pack('>I', len(payload))[1:] + struct.pack('>BBI', kind, flags, stream) + payload


def _text(text):
    """Encodes a string literal of HPACK (RFC 7541 5.2), not compressed."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, octets = len(text) - 127, [127]
    while rest >= 128:
        octets.append(rest % 128 + 128)
        rest //= 128
    return bytes([*octets, rest]) + text


def request(fields, body):
    """Returns the bytes of a connection with this one request. fields: [(name, value)] as they are
    sent."""
    block = b''.join(b'\x00' + _text(name) + _text(value) for name, value in fields)
    settings = struct.pack('>HIHI', HEADER_TABLE_SIZE, 0, ENABLE_PUSH, 0)
    head = _frame(HEADERS, END_HEADERS | (0 if body else END_STREAM), 1, block)
    return PREFACE + _frame(SETTINGS, 0, 0, settings) + head + (_frame(DATA, END_STREAM, 1, body) if body else b'')


def _digits(text, is_huffman):
    """Decodes three digits such as "429", plain or Huffman-coded (RFC 7541 B)."""
    if not is_huffman:
        return text.decode('latin-1')
    bits, word = ''.join(f'{octet:08b}' for octet in text), ''
    while len(word) < 3:
        few = int(bits[:5], 2)
        word, bits = (word + str(few), bits[5:]) if few < 3 else (word + str(int(bits[:6], 2) - 0b011001 + 3), bits[6:])
    return word


def _status(block):
    """Returns :status, which is the first field."""
    while block[0] & 0xe0 == 0x20:  # update of the table size
        block = block[1:]
    if block[0] & 0x80:
        return STATUSES[(block[0] & 0x7f) - STATUS]
    index = block[0] & (0x3f if block[0] & 0x40 else 0x0f)
    assert STATUS <= index < STATUS + len(STATUSES), f'an answer whose first field is no :status: {block[:16]!r}'
    return int(_digits(block[2:2 + (block[1] & 0x7f)], block[1] & 0x80))


def read_answer(file):
    """Returns (status, body); (0, b'') if there is no response."""
    status, body = 0, b''
    while len(head := file.read(9)) == 9:
        length, kind, flags = int.from_bytes(head[:3], 'big'), head[3], head[4]
        payload = file.read(length)
        if kind in (RST_STREAM, GOAWAY):
            break
        if kind == HEADERS:
            status = _status(payload) if status < 200 else status
        elif kind == DATA:
            body += payload
        if kind in (HEADERS, DATA) and flags & END_STREAM:
            break
    return status, body
