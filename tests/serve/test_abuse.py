#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir serve under those who mean harm, and under bad luck. The first argument is the program."""
import os
import resource
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'cli')]

import cases  # noqa: E402
from daemon import RULES, Daemon  # noqa: E402
from program import weir  # noqa: E402


# ---- restarts that fail ----

def _few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))


def restart_that_fails_leaves_the_sockets_of_the_old_one():
    with Daemon() as daemon:
        words = ('--listen', '127.0.0.1:0', '--listen', f'unix:{daemon.path}', '--handover', f'{daemon.folder}/handover')
        daemon.stop()
        daemon.start('--handover', f'{daemon.folder}/handover')
        kept = [daemon.raw() for _ in range(60)]
        # one has no descriptors for all of these, another cannot listen where it is told to
        run = weir('serve', '--config', daemon.config, *words, preexec_fn=_few_files)
        assert run.returncode == 1 and 'goes on' in run.stderr, run
        run = weir('serve', '--config', daemon.config, *words, '--listen', '192.0.2.1:9')
        assert run.returncode == 1 and 'cannot listen' in run.stderr, run
        assert daemon.ask('GET', '/check', connection=daemon.unix())[0] == 204
        assert daemon.check()[0] == 204
        kept[0].sendall(b'GET /check HTTP/1.1\r\nHost: a\r\n\r\n')
        assert kept[0].recv(1000).startswith(b'HTTP/1.1 204')


if __name__ == '__main__':
    cases.main()
