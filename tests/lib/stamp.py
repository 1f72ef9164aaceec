# SPDX-License-Identifier: MIT
"""When bytes came, by the kernel: what is read late, because the machine is busy, has not come late."""
import socket
import struct
import time

STAMP = 35  # SO_TIMESTAMPNS, and SCM_TIMESTAMPNS


def listen(address='127.0.0.1'):
    """A listener whose connections have stamps."""
    listener = socket.create_server((address, 0), backlog=512)
    listener.setsockopt(socket.SOL_SOCKET, STAMP, 1)  # connections inherit it
    return listener


def receive(connection):
    """(bytes, when the last of them came in seconds)."""
    data, control, _, _ = connection.recvmsg(65536, 256)
    for level, kind, value in control:
        if (level, kind) == (socket.SOL_SOCKET, STAMP):
            seconds, ns = struct.unpack('qq', value[:16])
            return data, seconds + ns / 1e9
    return data, time.time()
