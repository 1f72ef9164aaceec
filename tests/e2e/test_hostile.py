#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A crawl whose database is changed by hand or refuses statements: judged by the requests that the
hosts received, and by the crawl's messages.

usage: test_hostile.py WEIR
"""
import functools
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'cli'))
import cases  # noqa: E402
from cluster import PATIENCE_S, Crawl, postgres, tree, wait_for, weir  # noqa: E402

HOSTS, PAGES = 3, 7
PACE = ['--lease', '2s', '--pace', 'strict', '--interval', '0.1s']
_QUEUED = 'SELECT id FROM tasks WHERE state = 0'


@functools.lru_cache
def _postgres():
    postgres().ask('CREATE ROLE other LOGIN')
    return postgres()


def _crawl(schema, seeds, user='weir'):
    _postgres().schema(schema)
    _postgres().ask(f'GRANT ALL ON SCHEMA {schema} TO other')
    return Crawl(weir(), _postgres().url(schema, user), [*PACE, *seeds])


def _verdicts(schema):
    return dict(_postgres().ask('SELECT verdict, count(*) FROM tasks GROUP BY 1', schema))


def _interrupt(crawl, web):
    """Starts a crawl and stops it with SIGTERM while URLs are queued."""
    process = crawl.start()
    wait_for(lambda: len(web.seen) > HOSTS + 2, 'some pages')
    process.send_signal(signal.SIGTERM)
    process.wait(PATIENCE_S)
    assert process.returncode == 3, crawl.errors()


def rows_corrupted_by_hand_are_marked_damaged_and_the_crawl_ends():
    harm = {'key': r"UPDATE hosts SET host = E'a\nb' WHERE id = (SELECT min(host) FROM tasks WHERE state = 0)",
            'gone': 'DELETE FROM hosts WHERE id = (SELECT min(host) FROM tasks WHERE state = 0)',
            'url': f"UPDATE tasks SET url = 'http://other.example/', depth = -1, hops = 9e18, attempts = -7 WHERE id = ({_QUEUED} LIMIT 1)",
            'none': f'ALTER TABLE tasks ALTER url DROP NOT NULL; UPDATE tasks SET url = NULL WHERE id = ({_QUEUED} LIMIT 1)',
            'numbers': "UPDATE hosts SET rate = 'nan', cap = -7, traits = -1, block_ms = 9e18, lease_owner = 77,"
                       " lease_until = 'infinity', robots_delay_ms = -1; UPDATE tallies SET queued = -5"}
    for name, sql in harm.items():
        web, seeds = tree(HOSTS, PAGES)
        with _crawl(f'harm_{name}', seeds) as crawl:
            _interrupt(crawl, web)
            queued = len(_postgres().ask(_QUEUED, f'harm_{name}'))
            _postgres().ask(sql, f'harm_{name}')
            crawl.start()
            crawl.running[-1].wait(PATIENCE_S)
            verdicts = _verdicts(f'harm_{name}')
            damaged = int(verdicts.pop('damaged', 0))
            assert queued and (damaged > 0) == (name != 'numbers') and list(verdicts) == ['fetched'], (name, verdicts)
            assert crawl.running[-1].returncode == (1 if damaged else 0), (name, crawl.errors())
            assert _postgres().ask('SELECT status FROM jobs', f'harm_{name}') == [['completed']], name
            web.judge_intervals(0.1)


def lost_tables_rights_or_rows_stop_the_crawl_without_loss():
    taken = {'table': ('ALTER TABLE tasks RENAME TO t', 'ALTER TABLE t RENAME TO tasks', 'restore them'),
             'column': ('ALTER TABLE hosts RENAME lease_token TO t', 'ALTER TABLE hosts RENAME t TO lease_token', 'restore them'),
             'right': ('ALTER TABLE tasks OWNER TO weir', 'ALTER TABLE tasks OWNER TO other', 'see "Rights" in weir-state(5)'),
             'number': ('UPDATE tallies SET done = 9223372036854775807', 'UPDATE tallies SET done = 0', 'a number in the tables is too large'),
             'job': ("UPDATE jobs SET status = 'nonsense'", "UPDATE jobs SET status = 'running'", 'the row of the job')}
    for name, (sql, undo, words) in taken.items():
        web, seeds = tree(HOSTS, PAGES)
        with _crawl(f'taken_{name}', seeds, 'other') as crawl:
            process = crawl.start()
            wait_for(lambda: len(web.seen) > HOSTS + 2, 'some pages')
            _postgres().ask(sql, f'taken_{name}')
            process.wait(PATIENCE_S)
            assert process.returncode == 3 and words in crawl.errors()[0], (name, crawl.errors())
            assert crawl.errors()[0].count('\n') == 1, crawl.errors()
            _postgres().ask(undo, f'taken_{name}')
            crawl.start()
            crawl.running[-1].wait(PATIENCE_S)
            assert crawl.running[-1].returncode == 0, (name, crawl.errors())
            assert _verdicts(f'taken_{name}') == {'fetched': str(HOSTS * PAGES)}, (name, _verdicts(f'taken_{name}'))
            lengths = {path: int(count) for path, count in _postgres().ask('SELECT path, bytes FROM outputs', f'taken_{name}')}
            lines = sorted(line['url'] for line in crawl.lines(lengths))
            assert lines == sorted(set(lines)) and len(lines) == HOSTS * PAGES, (name, json.dumps(lines))


def _kick():
    _postgres().ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'other'")


def crawl_waits_for_a_database_that_refuses_writes():
    for name, setting in {'late': "statement_timeout = '1ms'", 'fixed': 'default_transaction_read_only = on'}.items():
        web, seeds = tree(HOSTS, PAGES)
        with _crawl(f'refuses_{name}', seeds, 'other') as crawl:
            process = crawl.start()
            wait_for(lambda: len(web.seen) > HOSTS + 2, 'some pages')
            _postgres().ask(f'ALTER ROLE other SET {setting}')
            _kick()
            wait_for(lambda: 'waiting: ' in crawl.errors()[0], 'it to say so')
            _postgres().ask('ALTER ROLE other RESET ALL')
            _kick()
            process.wait(PATIENCE_S)
            assert process.returncode == 0, (name, crawl.errors())
            assert _verdicts(f'refuses_{name}') == {'fetched': str(HOSTS * PAGES)}, (name, crawl.errors())


if __name__ == '__main__':
    cases.main()
