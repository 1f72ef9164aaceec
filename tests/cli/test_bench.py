#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir bench: the figures are present and plausible. No test depends on how large they are."""
import json

import cases
from program import weir

SMALL = ['--keys', '2000', '--ops', '4000', '--seconds', '0', '--json']


def _table(*words):
    run = weir('bench', 'table', *SMALL, *words)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def bench_table_prints_its_settings_and_measures_the_lower_bound():
    result = _table()
    assert (result['keys'], result['key_length'], result['dist'], result['threads'], result['batch'],
            result['clock']) == (2000, 24, 'uniform', 1, 1, 'fast')
    assert result['rounds'] >= 3 and result['ops'] == 4000
    assert 0 < result['ns_per_decision'] < 1e6 and 0 < result['bound_ns'] < 1e6
    assert abs(result['ratio'] - result['ns_per_decision'] / result['bound_ns']) < 0.01 * result['ratio'] + 0.01
    assert abs(result['decisions_per_second'] * result['ns_per_decision'] - 1e9) < 1e7


def bench_table_holds_every_key():
    for keys in ('1', '2000', '50000'):
        result = _table('--keys', keys)
        assert result['keys_held'] == int(keys), result


def bench_table_measures_a_plausible_memory_per_key():
    # Memory is counted in whole pages, so a few keys would not be measurable.
    assert 16 < _table('--keys', '200000')['bytes_per_key'] < 1000


def bench_table_grants_most_of_many_keys_and_few_of_one_key():
    # 4000 decisions on one key take far less than the 3.9 s in which its bucket would grant them.
    assert _table()['granted'] > 0.9
    assert _table('--dist', 'one', '--ops', '100000')['granted'] < 0.9


def bench_table_works_with_every_option():
    for words in (['--dist', 'one'], ['--dist', 'zipf'], ['--dist', 'zipf', '--keys', '1'], ['--clock', 'monotonic'],
                  ['--key-length', '3'], ['--key-length', '1024'], ['--batch', '16'], ['--batch', '1024'],
                  ['--threads', '3'], ['--threads', '2', '--batch', '7', '--dist', 'zipf'], ['--ops', '1']):
        result = _table(*words)
        assert result['ns_per_decision'] > 0, words
        assert 0 <= result['granted'] <= 1, words


def bench_table_prints_text_without_json():
    run = weir('bench', 'table', *SMALL[:-1])
    assert run.returncode == 0
    for word in ('2000 keys of 24 bytes', 'table', 'bound', 'ratio', 'bytes per key'):
        assert word in run.stdout, word


def _pace(*words):
    run = weir('bench', 'pace', '--hosts', '500', '--ops', '2000', '--json', *words)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def bench_pace_measures_one_hot_host_and_all_hosts():
    result = _pace()
    assert (result['hosts'], result['threads'], result['ops'], result['profile']) == (500, 1, 2000, 'adaptive')
    for name in ('hot_ns_per_request', 'hot_reported_ns_per_request', 'uniform_ns_per_request',
                 'uniform_reported_ns_per_request', 'gate_ns', 'fill_ns_per_host'):
        assert 0 < result[name] < 1e7, name
    assert result['hosts_held'] == 500 and result['gate_bytes'] <= 512
    assert 0.5 < result['uniform_granted'] <= 1 and 0 < result['hot_granted'] <= 1, result


def bench_pace_measures_a_plausible_memory_per_host():
    assert 100 < _pace('--hosts', '50000')['bytes_per_host'] < 1500


def bench_pace_works_with_every_profile_and_several_threads():
    for words in (['--profile', 'strict'], ['--profile', 'aimd'], ['--profile', 'learned'], ['--profile', 'unlimited'],
                  ['--profile', 'origin-tuned'], ['--threads', '3'], ['--hosts', '1']):
        assert _pace(*words)['hot_ns_per_request'] > 0, words


def bench_pace_prints_text_without_json():
    run = weir('bench', 'pace', '--hosts', '50', '--ops', '100')
    assert run.returncode == 0
    for word in ('50 hosts', 'one hot host', 'all hosts alike', 'bytes per host'):
        assert word in run.stdout, word


def bench_limiter_measures_all_six_algorithms_and_both_clocks():
    run = weir('bench', 'limiter', '--ops', '20000', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result['clock_monotonic_ns'] > 0 and result['clock_fast_ns'] > 0
    assert [row['name'] for row in result['algorithms']] == ['token_bucket', 'fixed_window', 'sliding_window',
                                                             'sliding_log', 'leaky_bucket', 'concurrency']
    for row in result['algorithms']:
        assert row['state_bytes'] == {'sliding_log': 16 + 8 * 65536, 'leaky_bucket': 8, 'concurrency': 8}.get(row['name'], 16)
        assert row['limiter_ns'] > 0 and row['stack_ns'] > 0 and 0 < row['granted'] <= 1, row


def bench_limiter_prints_text_without_json():
    run = weir('bench', 'limiter', '--ops', '1000')
    assert run.returncode == 0 and 'sliding_log' in run.stdout and 'monotonic' in run.stdout


def bench_links_measures_a_page_and_plain_text():
    run = weir('bench', 'links', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert 11500 < result['page_bytes'] < 12800 and result['links'] == 35
    assert 0 < result['us_per_page'] < 1e6 and result['page_gb_per_s'] > 0 and result['text_gb_per_s'] > 0
    assert result['text_bytes'] == 1048576 and result['links_told'] == 34 and result['us_in_all'] > 0
    assert '35 links' in weir('bench', 'links').stdout


def bench_links_and_robots_print_the_best_round_and_the_median():
    links, robots = (json.loads(weir('bench', name, '--json').stdout) for name in ('links', 'robots'))
    assert 0 < links['best_us_per_page'] <= links['us_per_page']
    assert links['best_text_gb_per_s'] >= links['text_gb_per_s']
    assert robots['best_parse_mb_per_s'] >= robots['parse_mb_per_s']
    assert 0 < robots['best_match_ns'] <= robots['match_ns'] and 0 < robots['best_hostile_ms'] <= robots['hostile_ms']
    assert weir('bench', 'links').stdout.count('(best ') == 3 and weir('bench', 'robots').stdout.count('(best ') == 3


def bench_rules_decides_by_header_among_many_keys():
    for rules in ('1', '10'):
        run = weir('bench', 'rules', '--keys', '5000', '--rules', rules, '--json')
        assert run.returncode == 0, run.stderr
        result = json.loads(run.stdout)
        assert (result['keys'], result['rules']) == (5000, int(rules))
        assert result['granted'] > 0.5 and 0 < result['best_ns_per_decision'] <= result['ns_per_decision'] < 1e6
    assert '50000 keys, 1 rules' in weir('bench', 'rules').stdout


def bench_request_parses_an_nginx_auth_request():
    run = weir('bench', 'request', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result['fields'] == 12 and 400 < result['request_bytes'] < 700 and result['requests'] == 301 * 2000
    assert 0 < result['best_ns_per_request'] <= result['ns_per_request']
    assert '12 fields' in weir('bench', 'request').stdout


def bench_plan_fetches_each_url_once_at_one_per_second_and_host():
    run = weir('bench', 'plan', '--hosts', '500', '--tasks', '7', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result['starts'] == 3500 and result['loads'] >= 500
    assert 6 <= result['virtual_s'] < 7
    assert 0 < result['ns_per_offer'] < 1e6 and 0 < result['ns_per_url'] < 1e6
    assert 200 < result['bytes_per_host'] < 2000
    run = weir('bench', 'plan', '--hosts', '3', '--tasks', '2')
    assert run.returncode == 0 and '3 hosts, 2 URLs each' in run.stdout and 'bytes per host' in run.stdout


def bench_plan_uses_as_much_memory_as_it_prints():
    result = json.loads(weir('bench', 'plan', '--hosts', '20000', '--tasks', '3', '--json').stdout)
    assert result['tasks_in_memory'] == 60000 and 50 < result['bytes_per_task'] < 300
    said = 20000 * result['bytes_per_host'] + 60000 * result['bytes_per_task']
    assert result['resident_bytes'] < 1.5 * said + 2e7


def bench_robots_measures_parsing_matching_and_the_worst_case():
    run = weir('bench', 'robots', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result['rules'] == 1000 and result['text_bytes'] > 20000 and 0 < result['allowed'] <= 1
    assert result['parse_mb_per_s'] > 0 and result['match_ns'] > 0 and result['hostile_ms'] > 0
    assert 0 < result['block_bytes'] < 4 * result['text_bytes']
    run = weir('bench', 'robots', '--rules', '50', '--wild', '100', '--seed', '7')
    assert run.returncode == 0 and 'match_ns' in run.stdout


def bench_store_measures_a_crawl_and_its_resume():
    run = weir('bench', 'store', '--pages', '2000', '--hosts', '20', '--links', '2', '--json')
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert (result['pages'], result['hosts'], result['links']) == (2000, 20, 2)
    assert result['known'] == result['pages'] + 256
    assert result['hosts_listed'] == 20 and result['tasks_loaded'] == 200
    assert 50 < result['bytes_per_task'] < 1000 and result['pages_per_s'] > 0 and result['commits'] > 0
    run = weir('bench', 'store', '--pages', '10', '--hosts', '1')
    assert run.returncode == 0 and 'bytes per task' in run.stdout
    run = weir('bench', 'store', '--folder', '/nowhere/at/all')
    assert run.returncode == 1 and 'No such file' in run.stderr and run.stderr.count('\n') == 1


if __name__ == '__main__':
    cases.main()
