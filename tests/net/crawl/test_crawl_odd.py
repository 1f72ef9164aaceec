#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir crawl in trouble: servers that hang up, missing files, pipes without a reader. The first
argument is the program."""
import collections
import os
import select
import signal
import socket
import subprocess
import threading

from site_rig import PATIENCE_S, Folder, Held, all_of, cases, interrupt, read_head, site

STEADY = ('--pace', 'strict', '--interval', '40ms', '--max-rate', '100')
FAST = ('--pace', 'unlimited')


class HangsUp:
    """Serves small pages with keep-alive, but closes the connection without a response to /poison.
    """

    def __enter__(self):
        self.asked = collections.Counter()
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.url = f'http://127.0.0.1:{self.socket.getsockname()[1]}'
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=(self.socket.accept()[0],), daemon=True).start()
        except OSError:
            pass  # the listening socket was closed

    def serve(self, connection):
        with connection, connection.makefile('rb') as file:
            while True:
                head = read_head(file)
                if not head:
                    return
                path = head[0].split()[1].decode()
                self.asked[path] += 1
                if path == '/poison':
                    return
                body = b'<a href=/poison></a>' + b''.join(b'<a href=/%d></a>' % i for i in range(20)) if path == '/' else b''
                connection.sendall(b'HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n'
                                   % (b'404 None' if path == '/robots.txt' else b'200 OK', len(body)) + body)


def page_without_a_response_gets_the_usual_attempts():
    with HangsUp() as server, Folder() as folder:
        run = folder.crawl(*FAST, server.url)
        line = folder.by_url()[f'{server.url}/poison']
        assert run.returncode == 1 and line['verdict'] == 'failed' and line['error'] == 'broken', (run, line)
        assert line['attempts'] == 3 and server.asked['/poison'] <= 6, (line, server.asked)


def one_attempt_means_no_retry():
    with site(server='location = /busy { return 503; }', **{'index.html': '<a href="/busy"></a>'}) as nginx, Folder() as folder:
        assert folder.crawl(*FAST, '--attempts', '1', nginx.url).returncode == 1
        assert folder.by_url()[f'{nginx.url}/busy']['attempts'] == 1


def seeds_added_on_resume_are_fetched():
    with site() as nginx, Folder() as folder:
        assert folder.crawl(*STEADY, '--depth', '1', '--max-time', '300ms', f'{nginx.url}/p0.html').returncode == 3
        process = subprocess.Popen(folder.command('--resume', '--max-time', '0', '--seeds-file', '-'), cwd=folder.name,
                                   stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
        folder.await_lines(5)  # all pages of the first run
        process.communicate(f'{nginx.url}/p33.html\n', timeout=PATIENCE_S)
        assert process.returncode == 0 and f'{nginx.url}/p33.html' in folder.by_url()


def resume_without_its_output_file_is_refused():
    with site() as nginx, Held(nginx, 5) as door, Folder() as folder:
        assert door.stop(door.begin(folder, *STEADY))[0] == 3
        os.rename(folder.path('crawl.jsonl'), folder.path('kept'))
        run = folder.crawl('--resume')
        assert run.returncode == 1 and 'put it back' in run.stderr and run.stderr.count('\n') == 1, run
        os.rename(folder.path('kept'), folder.path('crawl.jsonl'))
        assert folder.crawl('--resume').returncode == 0 and set(folder.by_url()) == all_of(door)


def crawl_does_not_wait_for_the_reader_of_its_log():
    links = ''.join(f'<a href="/{"x" * 200}{i}"></a>' for i in range(700))
    with site(**{'index.html': links}) as nginx, Folder() as folder:
        process = folder.begin(*FAST, '--log', '-', nginx.url)  # a pipe holds 64 kB
        assert process.wait(timeout=PATIENCE_S) == 1
        _, errors = process.communicate()
        assert len(folder.lines()) == 701 and errors.count('"sent_ns"') > 100, errors[-500:]


def full_disk_is_reported_with_advice():
    with site() as nginx, Folder() as folder:
        process = folder.begin(*FAST, '--out', '/dev/full', nginx.url)
        assert 'waiting: the disk of the output is full; free some space' in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert 'interrupt again' in process.stderr.readline()
        assert interrupt(process)[0] == 3


def pipe_without_a_reader_is_refused_and_a_stalled_one_can_be_stopped():
    with site() as nginx, Folder() as folder:
        os.mkfifo(folder.path('pipe'))
        run = folder.crawl(*FAST, '--out', 'pipe', nginx.url)
        assert run.returncode == 1 and 'reader' in run.stderr, run
        reader = os.open(folder.path('pipe'), os.O_RDONLY | os.O_NONBLOCK)
        process = folder.begin(*FAST, '--out', 'pipe', '--digest', 'sha256', nginx.url)
        select.select([reader], [], [], 60)
        process.send_signal(signal.SIGINT)
        process.stderr.readline()  # the reply to the first signal, or the end of the output
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        os.close(reader)
        # the whole output may have fitted into the pipe
        assert process.returncode in (0, 3), (process.returncode, errors)


if __name__ == '__main__':
    cases.main()
