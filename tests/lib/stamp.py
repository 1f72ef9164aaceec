# SPDX-License-Identifier: MIT
"""Reads the kernel's time stamps of received bytes, which are right even if a busy machine reads the
bytes late, and checks that requests did not arrive too soon after each other."""
import socket
import struct
import time

STAMP = 35  # SO_TIMESTAMPNS, and SCM_TIMESTAMPNS
# Without TLS weir reads its clock right before it writes, and the bytes are sent within LATE_S. A busy
# machine may interrupt it between the two; weir notices an interruption of STOPPED_S or more.
LATE_S, STOPPED_S = 0.00005, 0.05


def listen(address='127.0.0.1'):
    """Returns a listener whose connections have time stamps."""
    listener = socket.create_server((address, 0), backlog=512)
    listener.setsockopt(socket.SOL_SOCKET, STAMP, 1)  # connections inherit it
    return listener


def receive(connection):
    """Returns (bytes, time of arrival of the last one in seconds)."""
    data, control, _, _ = connection.recvmsg(65536, 256)
    for level, kind, value in control:
        if (level, kind) == (socket.SOL_SOCKET, STAMP):
            seconds, ns = struct.unpack('qq', value[:16])
            return data, seconds + ns / 1e9
    assert not data, 'bytes without a time stamp'
    return data, None


def judge(gaps, interval_s):
    """Fails if the gaps between requests to a host are below the interval. All times in seconds."""
    below = [interval_s - gap for gap in gaps if gap < interval_s]
    late = sum(short_s > LATE_S for short_s in below)
    print(f'shortest interval {min(gaps) * 1e3:.3f} ms of {interval_s * 1e3:.0f}; {len(below)} of {len(gaps)} are below it, '
          f'{late} by more than {LATE_S * 1e3} ms')
    assert min(gaps) >= interval_s - STOPPED_S and late <= 2 + len(gaps) // 100, f'too soon: {sorted(gaps)[:5]}'
