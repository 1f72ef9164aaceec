# SPDX-License-Identifier: MIT
"""Starts crawls and kills them. The first argument is the program."""
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time


def _jobs(state):
    if not os.path.exists(state):
        return 0
    with contextlib.closing(sqlite3.connect(state)) as db:
        has_table = db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'jobs'").fetchone()[0]
        return db.execute('SELECT count(*) FROM jobs').fetchone()[0] if has_table else 0


def kill_some(begin, resume, folder, out, jobs):
    """Starts a crawl, which is the job of number `jobs`, and kills it four times at various moments. The first kill
    may come before the job exists; then the crawl is started again with more time."""
    words, wait, waits = begin, 0.1, [0.2, 0.3, 0.4]
    while True:
        process = subprocess.Popen([os.path.abspath(sys.argv[1]), *words], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if _jobs(f'{folder}/weir.db') < jobs:
            wait *= 1.5
            with contextlib.suppress(FileNotFoundError):
                os.remove(f'{folder}/{out}')
        elif waits:
            words, wait = resume, waits.pop(0)
        else:
            return
