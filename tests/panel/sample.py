# SPDX-License-Identifier: MIT
"""Data for the dashboard to show: answers of a crawl and of a daemon, with hostile names (J11)."""

HOSTILE = ['"><img src=x onerror="window.hacked=1">', "'><script>window.hacked=1</script>", '\u202egpj.exe.example', '\x1b[31mred\x1b[0m.example',
           'javascript:window.hacked=1', '</td></tr></table><svg onload=window.hacked=1>', '{{constructor.constructor("window.hacked=1")()}}',
           '%3Cimg%20src=x%20onerror=window.hacked=1%3E', 'zero\u200bwidth.example', '../../../etc/passwd', '__proto__']


def host(name, number=0, **more):
    return {'host': name, 'state': 'active', 'reason': 'pace', 'wait_ms': 400.5, 'queued': 10 * number, 'in_flight': 1, 'cap': 4, 'rate': 1.5,
            'allowed_rate': 2, 'interval_ms': 500, 'requests': 100 + number, 'fetched': 90, 'rejected': number, 'failed': 0, 'retries': 0,
            'bytes': 123456, 'latency_ms': 81.25, 'mode': 'cruise', 'limit': 'rate',
            'limit_why': '2 a second: accepted between two refusals', 'starts': [number] * 12, 'slice_s': 5, 'breaker': 'closed', 'breaker_ms': 0,
            'robots_delay_ms': 0, 'retry_after_ms': 0, 'set_interval_ms': 0, 'paused': False, **more}


def hosts(names):
    rows = [host(name, number) for number, name in enumerate(names)]
    return {'ok': True, 'live': True, 'matched': len(rows), 'states': {'idle': 0, 'active': len(rows), 'held': 0, 'paused': 0}, 'hosts': rows}


def events(names):
    kinds = ['rejected', 'retry_after', 'breaker', 'hopeless', 'paused', 'resumed', 'pace', 'forgotten', '<b>odd</b>']
    return {'ok': True, 'events': [{'number': number + 1, 'at_ms': 1790000000000 + number, 'event': kinds[number % len(kinds)], 'host': name, 'status': 429,
                                    'breaker': 'open', 'wait_ms': 1000} for number, name in enumerate(names * 2)]}


def crawl(names):
    """Returns {file: JSON} for the stub."""
    bounds = [{'reason': 'pace', 'holds': True, 'wait_ms': 300, 'value_ms': 500, 'source': 'learned', 'group': False, 'since_ms': 4000},
              {'reason': names[0], 'holds': True, 'wait_ms': None, 'value_ms': 0, 'source': names[0], 'group': True, 'line': 3}]
    job = {'status': 'running', 'running': True, 'over': False, 'why': names[0], 'created_at_ms': 1790000000000, 'updated_at_ms': 1790000001000,
           'queued': 50, 'done': 40, 'failed': 10, 'bytes': 1000000, 'retries': 3, 'rejected': 7}
    return {
        'sample': {'ok': True, 'live': True, 'pid': 1, 'job': 2, 'pages': 50, 'fetched': 40, 'failed': 10, 'requests': 60, 'rejected': 7,
                   'bytes': 1000000, 'queued': 50, 'in_flight': 3, 'hosts': len(names), 'elapsed_ms': 1000, 'draining': False, 'store_paused': False},
        'overview': {'ok': True, 'busy': hosts(names), 'waiting': {**hosts(names), 'hosts': [host(name, state='held', reason=name) for name in names]},
                     'events': events(names)},
        'hosts': hosts(names),
        'host': {'ok': True, 'host': {'ok': True, 'live': True, 'host': host(names[0], 3, mode=names[0], breaker=names[0], reason=names[0])},
                 'why': {'ok': True, 'bounds': bounds}, 'events': events(names[:1]), 'trail': [[1790000000000 + 5000 * i, 1.5, 2, 1, 80, 4] for i in range(20)]},
        'jobs': {'ok': True, 'jobs': [{'id': 1, **job, 'running': False, 'over': True, 'status': names[0]}, {'id': 2, **job}]},
    }


def daemon(names):
    keys = [{'key': name, 'denied': number, 'remaining': 3, 'limit': 20, 'reset_ms': 4000, 'idle_ms': 200} for number, name in enumerate(names)]
    rules = [{'name': name, 'match': name, 'by': name, 'limit': name, 'shadow': number % 2 == 1, 'allowed': 900, 'denied': 90, 'shadowed': 9, 'failed': 1,
              'waiting': 2, 'keys': len(keys), 'keys_max': 100000, 'evicted': 0, 'top': keys,
              'share': {'batch': number, 'alone': 5, 'owed': 7, 'in_flight': 1}} for number, name in enumerate(names)]
    rules_view = {'ok': True, 'rules': rules, 'file': names[0], 'store': {'up': False, 'why': names[0]}}
    return {
        'sample': {'ok': True, 'allowed': 1000, 'denied': 100, 'shadowed': 10, 'failed': 1, 'waiting': 2, 'keys': 77, 'evicted': 0, 'reserved': 0},
        'overview': rules_view,
        'rules': rules_view,
    }
