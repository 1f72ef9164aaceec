#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir simulate: which scenarios it runs, what it prints, and which input it refuses. tests/sim
judges how good the pacers are. The second argument is the source folder."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml

import cases
from program import refusal, weir

MEMBERS = ['pacer', 'scenario', 'seeds', 'warm', 'goodput', 'rejected', 'late_goodput', 'late_rejected',
           'sent', 'ok', 'rejections', 'waste', 'oracle',
           't90_s', 'recovery_s', 'latency_inflation', 'overshoot', 'bans']
SCENARIO = 'name: mine\nduration: 60s\nseeds: 1\norigin:\n  limiter: { kind: token_bucket, rate: 5, burst: 5 }\n'


def _simulate(*words):
    run = weir('simulate', *words)
    assert run.returncode == 0 and run.stderr == '', run.stderr
    return run.stdout


def _objects(*words):
    return [json.loads(line) for line in _simulate(*words, '--json').splitlines()]


FOLDERS = ['scenarios', 'scenarios/more']


def _files():
    return sorted(name[:-len('.yaml')] for folder in FOLDERS for name in os.listdir(os.path.join(sys.argv[2], folder))
                  if name.endswith('.yaml'))


def _with(files, look):
    """Calls look(folder) with a temporary folder that has these files, and returns its result."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            with open(os.path.join(folder, name), 'w' if isinstance(text, str) else 'wb') as file:
                file.write(text)
        return look(folder)


def _refused(text, *words):
    """Returns the error about a scenario file with this text, without the program name and the
    path."""
    def look(folder):
        path = os.path.join(folder, 'x.yaml')
        line = refusal('simulate', '--pacer', 'fixed', *words, path)
        assert line.startswith(f'weir simulate: {path}'), line
        return line[len(f'weir simulate: {path}'):]
    return _with({'x.yaml': text}, look)


# ---- which scenarios run ----

def every_built_in_scenario_runs_without_a_source_folder():
    run = weir('simulate', '--pacer', 'fixed', '--seeds', '1', '--json', cwd='/')
    assert run.returncode == 0, run.stderr
    assert sorted(json.loads(line)['scenario'] for line in run.stdout.splitlines()) == _files()


def folder_and_built_in_scenarios_are_the_same():
    words = ['--pacer', 'fixed', '--seeds', '1', '--json']
    folders = _simulate(*words, *(os.path.join(sys.argv[2], folder) for folder in FOLDERS))
    assert sorted(folders.splitlines()) == sorted(_simulate(*words).splitlines())


def families_and_names_choose_among_the_built_in_scenarios():
    def names(*words):
        return [found['scenario'] for found in _objects('--pacer', 'fixed', '--seeds', '1', *words)]
    assert names('P4') == [name for name in _files() if name.startswith('P4')]
    assert all(re.match('P1[a-z]', name) for name in names('--scenario', 'P1'))
    assert names('P9b', '--scenario=P9a') == ['P9a-free-out60', 'P9b-tb20-out60']
    assert names('P12') == [name for name in _files() if name.startswith('P12')]
    assert names('P10a-conc4') == ['P10a-conc4']


def scenario_files_and_random_scenarios_run_together():
    def look(folder):
        return _objects('--pacer', 'fixed', '--random', '3', os.path.join(folder, 'a.yaml'))
    found = _with({'a.yaml': SCENARIO}, look)
    assert len(found) == 4 and found[0]['scenario'] == 'mine' and found[0]['seeds'] == 1


def random_scenario_can_be_rerun_by_its_name():
    words = ['--pacer', 'fixed', '--seed', '7', '--seeds', '1']
    drawn = _objects(*words, '--random', '15')
    assert _objects(*words, 'P4-r14') == drawn[14:] == _objects(*words, drawn[14]['scenario'])
    assert 'under --seed 8 that is P4-r14' in refusal('simulate', '--seed', '8', drawn[14]['scenario'])
    assert 'that is P4-r14' in refusal('simulate', 'P5-r14')
    assert '--list' in refusal('simulate', 'P4-r')


def scenario_folder_is_read_in_natural_order():
    files = {f'{name}.yaml': SCENARIO.replace('mine', name) for name in ('s10', 's9')}
    files['s1.yml'] = SCENARIO.replace('mine', 's1')
    files['notes.txt'] = files['.hidden.yaml'] = 'no scenario'
    found = _with(files, lambda folder: _objects('--pacer', 'fixed', folder))
    assert [row['scenario'] for row in found] == ['s1', 's9', 's10']


def number_of_seeds_is_the_scenarios_unless_given():
    assert _objects('--pacer', 'fixed', 'P1a')[0]['seeds'] == 3
    assert _objects('--pacer', 'fixed', 'P1a', '--seeds', '2')[0]['seeds'] == 2


def scenario_in_the_manual_is_valid_and_shows_the_defaults():
    with open(os.path.join(sys.argv[2], 'man', 'weir-simulate.1'), encoding='utf-8') as file:
        blocks = re.findall(r'\.Bd -literal -offset indent\n(.*?)\.Ed', file.read(), re.S)
    shown, kinds, more, crowd = blocks[:4]
    bare = {'x.yaml': 'name: my-api\norigin: {}\n'}
    words = ['--pacer', 'none', '--seeds', '1', '--json']
    def run(folder):
        return _simulate(*words, os.path.join(folder, 'x.yaml'))
    assert _with({'x.yaml': shown}, run) == _with(bare, run)
    for kind in re.findall(r'\{.*?\}', kinds, re.S):
        _with({'x.yaml': f'name: x\norigin:\n  limiter: {kind}\n{more}'}, run)
    _with({'x.yaml': f'name: x\n{crowd}'.replace('1000', '5')}, run)


# ---- output ----

def simulate_json_has_an_object_for_each_pacer_and_scenario():
    found = _objects('--pacer', 'fixed', '--pacer', 'aimd:max=500', 'P1', 'P9')
    count = len([name for name in _files() if re.match('P[19][a-z]', name)])
    assert [row['pacer'] for row in found] == ['fixed'] * count + ['aimd:max=500'] * count
    for row in found:
        assert list(row) == MEMBERS, row
        assert row['warm'] is False and row['sent'] > 0 and row['oracle'] > 0
        assert abs(row['goodput'] - row['ok'] / row['oracle']) < 1e-3, row
        assert abs(row['rejected'] - row['rejections'] / row['sent']) < 0.02, row


def time_of_an_event_that_never_occurs_is_null():
    row = _objects('--pacer', 'fixed', 'P1d')[0]
    assert row['t90_s'] is None and row['recovery_s'] is None


def fixed_rate_pacer_scores_the_computed_goodput():
    row = _objects('--pacer', 'fixed', 'P1c')[0]
    assert row['sent'] == 1800 and row['rejections'] == 0
    assert abs(row['goodput'] - 1800 / (20 * 1800 + 20)) < 1e-3


def same_seed_gives_the_same_output_on_any_number_of_threads():
    words = ['--pacer', 'aimd', '--pacer', 'cubic', '--random', '6', '--seed', '9', '--seeds', '2', 'P1c', 'P6d', '--json']
    one = _simulate(*words, '--jobs', '1')
    assert one == _simulate(*words, '--jobs', '5')
    assert one == _simulate(*words)
    assert one != _simulate(*words, '--seed', '10')


def warm_run_is_marked_and_has_fewer_rejections():
    cold, warm = (_objects('--pacer', 'learned', 'P1a', *word)[0] for word in ([], ['--warm']))
    assert warm['warm'] is True and warm['rejections'] < cold['rejections']


def simulate_table_has_a_row_for_each_family_and_a_mean():
    lines = _simulate('--pacer', 'fixed', '--pacer', 'aimd:max=500', 'P1a', 'P10a', 'P5a', 'P5b', '--seeds', '1').splitlines()
    assert lines[0].startswith('4 scenarios, cold.')
    assert lines[2].split() == ['fixed', 'aimd', '[2]']
    assert [line.split()[0] for line in lines[3:7]] == ['P1', 'P5', 'P10', 'mean']
    assert all(re.search(r'( +\d+\.\d / \d+(\.\d+)?){2}$', line) for line in lines[3:7]), lines
    assert lines[-1] == 'aimd [2] is aimd:max=500'
    assert 'median' not in ''.join(lines)


def simulate_table_clips_goodput_and_averages_over_scenarios():
    words = ['--pacer', 'none', '--seeds', '1', 'P1', 'P5']
    wanted = [min(row['goodput'], 1) for row in _objects(*words)]
    mean = re.search(r'^mean +([\d.]+) /', _simulate(*words), re.M).group(1)
    assert abs(float(mean) - 100 * sum(wanted) / len(wanted)) < 0.06


def simulate_table_of_one_family_has_a_row_for_each_scenario():
    text = _simulate('--pacer', 'fixed', 'P10', '--seeds', '1')
    assert 'P10a-conc4' in text and 'P10b-conc20' in text
    assert 'P1a-tb0.2-b5' in _simulate('--pacer', 'fixed', 'P1', 'P10', '--seeds', '1', '--each')


def random_scenarios_end_with_median_percentile_and_pass_rate():
    words = ['--pacer', 'fixed', '--pacer', 'gradient', '--random', '40', '--seeds', '1', '--seed', '3']
    lines = {line.split()[0]: line for line in _simulate(*words).splitlines() if line}
    rows = [row for row in _objects(*words) if row['pacer'] == 'gradient']
    passed = [row for row in rows if row['goodput'] >= 0.95 and (row['rejected'] <= 0.005 or row['rejections'] <= 6)]
    assert len(rows) == 40 and len({row['scenario'] for row in rows}) == 40
    assert lines['pass'].split()[-2:] == [f'{100 * len(passed) / 40:.1f}', '%']
    goodput = sorted(min(row['goodput'], 1) for row in rows)
    assert abs(float(lines['median'].split()[-3]) - 50 * (goodput[19] + goodput[20])) < 0.06
    assert abs(float(lines['p10'].split()[-3]) - 100 * (goodput[3] + 0.9 * (goodput[4] - goodput[3]))) < 0.06


def simulate_list_names_pacers_and_scenarios():
    text = _simulate('--list')
    for name in ('tide', 'aimd', 'autothrottle-8', 'gradient2', *_files()):
        assert re.search(rf'^  {re.escape(name)} +\S', text, re.M), name
    assert all(len(line) <= 120 for line in text.splitlines())


def simulate_help_has_examples():
    text = _simulate('--help')
    for words in ('weir simulate --random', '--plot step.svg', 'aimd:alpha=0.1,start=1,max=500,burst=5'):
        assert words in text, words
    assert all(len(line) <= 100 for line in text.splitlines())


# ---- plots and traces ----

def _watch(*words):
    """Returns the objects of the trace and the text of the plot."""
    def look(folder):
        trace, plot = os.path.join(folder, 't'), os.path.join(folder, 'p.svg')
        _simulate(*words, '--trace', trace, '--plot', plot)
        with open(trace, encoding='utf-8') as lines, open(plot, encoding='utf-8') as text:
            return [json.loads(line) for line in lines], text.read()
    return _with({}, look)


def trace_has_each_event_of_the_scored_run():
    events, _ = _watch('--pacer', 'aimd', 'P1b', '--seeds', '1')
    score = _objects('--pacer', 'aimd', 'P1b', '--seeds', '1')[0]
    assert sum(event['kind'] == 'sent' for event in events) == score['sent']
    assert sum(event['status'] == 200 for event in events) == score['ok']
    assert sum(event['status'] == 429 for event in events) == score['rejections']
    times = [event['time_s'] for event in events]
    assert times == sorted(times) and times[-1] <= 1800
    for event in events:
        assert list(event) == ['pacer', 'time_s', 'kind', 'status', 'latency_s', 'in_flight', 'rate', 'limit', 'mode']
        assert (event['status'] is None) == (event['kind'] == 'sent') and event['limit'] == 2 and event['mode']


def trace_of_a_warm_run_omits_the_warm_up():
    events, _ = _watch('--pacer', 'learned', 'P1a', '--seeds', '1', '--warm')
    score = _objects('--pacer', 'learned', 'P1a', '--seeds', '1', '--warm')[0]
    assert sum(event['kind'] == 'sent' for event in events) == score['sent']


def plot_is_xml_without_external_references():
    _, text = _watch('--pacer', 'fixed', '--pacer', 'aimd:max=500', 'P6a')
    root = xml.fromstring(text)
    words = [''.join(node.itertext()) for node in root.iter('{http://www.w3.org/2000/svg}text')]
    assert {'fixed', 'aimd:max=500', 'requests/s', 'sent', 'delivered', 'rejected', '30 min'} <= set(words), words
    assert any(word.startswith('P6a-tb40-step: ') for word in words)
    assert 'prefers-color-scheme: dark' in text
    for foreign in ('<script', 'href', '@import', 'url(', '@font-face'):
        assert foreign not in text, foreign
    assert not re.search(r'nan|inf', re.sub(r'<title>.*?</title>|<text.*?</text>', '', text)), 'a number that is none'


def plot_names_the_modes_of_a_pacer_with_modes():
    _, text = _watch('--pacer', 'aimd', '--pacer', 'vegas', 'P1b', '--seeds', '1')
    assert "pacer's mode:" in text.replace('&apos;', "'").replace('&#39;', "'") and '>raise<' in text and '>peer<' not in text
    _, text = _watch('--pacer', 'vegas', 'P1b', '--seeds', '1')
    assert 'mode:' not in text


def plot_escapes_text_of_the_scenario_file():
    def look(folder):
        out = os.path.join(folder, 'p.svg')
        _simulate('--pacer', 'fixed', os.path.join(folder, 'x.yaml'), '--plot', out)
        with open(out, encoding='utf-8') as file:
            return file.read()
    text = _with({'x.yaml': SCENARIO.replace('mine', '\'<b a="1">&amp;\'')}, look)
    xml.fromstring(text)
    assert '&lt;b a=&quot;1&quot;&gt;&amp;amp;: ' in text


def every_built_in_scenario_can_be_plotted():
    for name in _files():
        if not name.startswith('P12'):
            xml.fromstring(_simulate('--pacer', 'fixed', name, '--seeds', '1', '--json', '--plot', '/dev/stdout').split('\n{')[0])


def several_scenarios_or_a_crowd_cannot_be_plotted():
    assert 'one scenario, not 2; choose it with --scenario' in refusal('simulate', '--pacer', 'fixed', 'P4a', 'P4b', '--plot',
                                                                      '/dev/null')
    crowd = 'name: x\ncrowd: { hosts: 2 }\nmix: [ { origin: {} } ]\n'
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'x.yaml')
        with open(path, 'w', encoding='utf-8') as file:
            file.write(crowd)
        assert 'is a crowd' in refusal('simulate', '--pacer', 'fixed', path, '--trace', '/dev/null')


def plot_that_cannot_be_written_is_a_failure():
    for out, why in (('/nowhere/x.svg', 'No such file'), ('/dev/full', 'No space left')):
        for option in ('--plot', '--trace'):
            run = weir('simulate', '--pacer', 'fixed', 'P1c', option, out)
            assert run.returncode == 1 and f'cannot write {out}: {why}' in run.stderr, run.stderr


# ---- refused input ----

def invalid_scenario_file_is_refused_with_line_and_column():
    assert _refused(SCENARIO + 'worker: 5\n') == \
        ':6:1: unknown key "worker" in a scenario; did you mean "workers"?'
    assert _refused(SCENARIO.replace('rate', 'rats')).startswith(':5:34: unknown key "rats" in limiter')
    assert _refused(SCENARIO.replace('60s', '60 s')).startswith(':2:11: duration is "60 s"; it must be a duration')
    assert _refused(SCENARIO.replace('rate: 5', 'rate: .nan')).startswith(':5:40: rate is ".nan"; it must be a number')
    assert _refused(SCENARIO.replace('rate: 5', 'rate: 1e9')).startswith(':5:40: rate is "1e9"')
    assert _refused(SCENARIO.replace('token_bucket', 'tokenbucket')).startswith(':5:20: kind is "tokenbucket"; it must be')
    assert _refused('name: x\n').startswith(':1:1: origin is missing')
    assert _refused('origin: {}\n').startswith(':1:1: name is missing')
    assert _refused('name: x\nmix: [ { origin: {} } ]\norigin: {}\n').startswith(':1:1: a mix without a crowd')
    assert _refused('name: x\ncrowd: { hosts: 2 }\norigin: {}\n').startswith(':1:1: both origin and crowd')
    assert _refused('name: x\ncrowd: { hosts: 2 }\n').startswith(':1:1: a crowd needs a mix')
    assert _refused('name: x\norigin: { outage: { from: 5s, to: 5s } }\n').startswith(':2:19: the outage ends before')
    assert _refused('name: x\norigin: { vary: { kind: sine } }\n').startswith(':2:17: sine and walk need a period')
    assert _refused('').startswith(':1:1: empty')
    assert _refused(b'name: \xff\n').startswith(':1:7: invalid leading UTF-8 octet')
    assert _refused('x' * (1 << 20) + 'x').startswith(': longer than 1 MiB')


def hostile_scenario_file_is_refused_at_once():
    bomb = 'a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n'
    for text, why in ((bomb, ':1:1: unknown key in'), ('name: &n x\norigin: *n\n', ':1:7: an anchor (&)'),
                      ('!!python/object:os.system x\n', ':1:1: a tag (!)'), ('<<: {}\n' + SCENARIO, ':1:1: unknown key'),
                      ('name: ' + '[' * 100000, ':1:7: name is a list'), ('origin: ' + '{a: ' * 50000, ':1:10: unknown key'),
                      (SCENARIO + 'duration: 30s\n', ':6:1: duration is given twice'),
                      (SCENARIO.replace('burst: 5', 'rate: 6'), ':5:43: rate is given twice'),
                      (SCENARIO + '---\n' + SCENARIO, ':6:1: a second document'),
                      (SCENARIO.encode() + b'\0', ':6:1: control characters'), (SCENARIO.encode('utf-16'), ':1:1: invalid'),
                      (SCENARIO.replace('mine', 'x' * 100000), ':1:7: name is "xxx'),
                      (SCENARIO.replace('mine', '"a\\nb"'), ':1:7: name is "a\\x0ab"')):
        assert _refused(text).startswith(why), (text[:60], _refused(text))
    for duration in '-1s', '0', '1ns', '100000d', '9' * 30, '.inf', '~', '""', '0x10':
        assert _refused(SCENARIO.replace('60s', duration)).startswith(':2:11: duration is '), duration

    def look(folder):
        os.symlink('x.yaml', os.path.join(folder, 'x.yaml'))
        os.symlink('.', os.path.join(folder, 'again'))
        return [weir('simulate', '--pacer', 'fixed', os.path.join(folder, name)) for name in ('x.yaml', 'again')]
    link, circle = _with({}, look)
    assert link.returncode == 1 and 'symbolic links' in link.stderr, link.stderr
    # the symbolic link x.yaml in the folder
    assert circle.returncode == 1 and 'symbolic links' in circle.stderr, circle.stderr


def standard_output_that_cannot_be_written_is_a_failure():
    for words in ['P1c'], ['P1c', '--json'], ['--list'], ['--help']:
        with open('/dev/full', 'w', encoding='utf-8') as full:
            run = subprocess.run([sys.argv[1], 'simulate', '--pacer', 'fixed', *words], stdout=full, stderr=subprocess.PIPE,
                                 text=True, timeout=60)
        assert run.returncode == 1 and 'cannot write to standard output: No space left' in run.stderr, run.stderr


def setting_of_another_kind_of_limiter_is_refused():
    for kind, number, wrong in (
            ('token_bucket', 'quota: 500', 'quota and window belong to a fixed_window, sliding_ban, sliding_counter or'),
            ('concurrency', 'window: 5m', 'quota and window belong to a fixed_window, sliding_ban, sliding_counter or'),
            ('fixed_window', 'rate: 5', 'rate and burst belong to a token_bucket'),
            ('none', 'burst: 5', 'rate and burst belong to a token_bucket'),
            ('fixed_window', 'ban: 5s', 'ban and status belong to a sliding_ban'),
            ('fixed_window', 'extend: true', 'extend belongs to a ban or block'),
            ('sliding_counter', 'block: 5s', 'block belongs to a fixed_window'),
            ('sliding_ban', 'starts: request', 'starts belongs to a fixed_window, sliding_counter or slow_down'),
            ('fixed_window', 'counts_refused: true', 'counts_refused belongs to a sliding_counter'),
            ('fixed_window', 'step: 1s', 'step and most belong to a slow_down'),
            ('sliding_ban', 'max: 5', 'max belongs to a concurrency limit')):
        text = 'name: x\norigin:\n  limiter: { kind: ' + kind + ', ' + number + ' }\n'
        assert _refused(text).startswith(':3:12: ' + wrong), text


def real_limiters_are_scored_by_their_second_half():
    rows = _objects('--real', '11', '--seeds', '1', '--seed', '3')
    assert [row['scenario'].split('-')[0] for row in rows] == [f'R{i + 1}' for i in range(11)], rows
    alone = _objects('R2-r1', '--seeds', '1', '--seed', '3')
    assert alone == rows[1:2], alone
    line = _simulate('R2-r1', '--seeds', '1', '--seed', '3', '--late').splitlines()
    assert line[0].startswith('1 scenario, cold, second half.'), line
    cell = line[3].split()
    assert float(cell[1]) == round(100 * alone[0]['late_goodput'], 1), (cell, alone)


def invalid_file_in_a_scenario_folder_is_named():
    def look(folder):
        return refusal('simulate', '--pacer', 'fixed', folder)
    assert '/b.yaml:1:1: unknown key in' in _with({'a.yaml': SCENARIO, 'b.yaml': 'no: 1\n'}, look)
    assert 'no scenarios in this folder' in _with({'a.txt': ''}, look)


def unknown_scenario_is_refused_with_the_nearest_name():
    assert 'did you mean P10a-conc4?' in refusal('simulate', '--pacer', 'fixed', 'P10a-cnc4')
    assert '"weir simulate --list"' in refusal('simulate', '--pacer', 'fixed', 'nothing')
    run = weir('simulate', '--pacer', 'fixed', '--scenario', '/nowhere/x.yaml')
    assert run.returncode == 1 and run.stderr == 'weir simulate: cannot read /nowhere/x.yaml: No such file or directory; check the path\n'


def unknown_pacer_or_pacer_key_is_refused():
    assert refusal('simulate', '--pacer', 'tied') == 'weir simulate: unknown pacer "tied"; did you mean tide?'
    assert 'did you mean aimd?' in refusal('simulate', '--pacer', 'amid:alpha=1')
    assert '--list' in refusal('simulate', '--pacer', 'xylophone')
    assert 'xx' in refusal('simulate', '--pacer', 'aimd:xx=1')
    assert 'option "burst": not a key and a value; write key=value' in refusal('simulate', '--pacer', 'aimd:burst')
    assert 'max_rate: number "x": not a digit' in refusal('simulate', '--pacer', 'tide:max_rate=x')
    assert '--seeds' in refusal('simulate', '--seeds', '-1')
    assert 'unknown option --pacers' in refusal('simulate', '--pacers', 'fixed')


# ---- stopping ----

def _interrupted(after_s):
    """Interrupts a long run with SIGINT after `after_s` seconds and returns (status, rows, stderr).
    """
    with subprocess.Popen([sys.argv[1], 'simulate', '--pacer', 'fixed', '--random', '50000', '--seeds', '50', '--json'],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        time.sleep(after_s)
        run.send_signal(signal.SIGINT)
        out, complaint = run.communicate(timeout=50)
    return run.returncode, [json.loads(line) for line in out.splitlines()], complaint


def interrupt_prints_the_finished_scenarios():
    for after_s in (0.5, 2, 8, 20):  # a loaded machine may not have finished any scenario after 0.5 s
        status, rows, complaint = _interrupted(after_s)
        if rows:
            break
    assert status == 1 and complaint == f'weir simulate: stopped: {len(rows)} of 50000 were simulated\n', complaint


if __name__ == '__main__':
    cases.main()
