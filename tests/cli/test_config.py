#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weir config, and settings from files and the environment. Arguments: the program, and the source folder."""
import json
import os
import re
import sys
import tempfile

import cases
from program import refusal, weir

SENDERS = ('crawl', 'fetch', 'warm')
SECTIONS = (*SENDERS, 'serve')


class _File:
    """A configuration file: with _File('crawl: {depth: 5}') as path: …"""

    def __init__(self, text):
        self.text = text.encode() if isinstance(text, str) else text

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        path = os.path.join(self.folder.name, 'weir.yaml')
        with open(path, 'wb') as file:
            file.write(self.text)
        return path

    def __exit__(self, *_):
        self.folder.cleanup()


def _source(*path):
    with open(os.path.join(sys.argv[2], *path), encoding='utf-8') as file:
        return file.read()


def _settings(*words, **variables):
    run = weir('config', *words, '--json', env=dict(os.environ, **variables))
    assert run.returncode == 0 and run.stderr == '', run
    return json.loads(run.stdout)


def _names(command):
    """Returns the options in the command's --help that are settings."""
    options = re.findall(r'^  --([a-z0-9-]+)', weir(command, '--help', 'all').stdout, re.M)
    return [name for name in options if name not in ('config', 'set')]


def _pace_names():
    table = _source('src/cli/kit/pace_flags.c')
    names = re.findall(r'^ +\{"([a-z0-9-]+)", \.?h', table, re.M)
    assert len(names) > 40, names
    return names


def config_prints_every_option_of_help_with_its_default():
    for command in SECTIONS:
        shown = _settings(command)
        assert list(shown[command]) == _names(command), command
        assert {setting['from'] for section in shown.values() for setting in section.values()} == {'default'}
    assert _settings('crawl')['crawl']['depth'] == {'value': 20, 'from': 'default'}


def config_prints_every_pace_setting_once():
    shown = _settings('crawl')
    flags = {'profile': 'pace'}
    for name in _pace_names():
        assert (name in shown['pace']) != (flags.get(name, name) in shown['crawl']), name
    assert set(shown['pace']) <= set(_pace_names())


def config_prints_the_origin_of_each_setting():
    with _File('pace:\n  max-rate: 4\n  open: 30s\ncrawl:\n  depth: 5\n  max-pages: 9\n') as path:
        shown = _settings('crawl', '--config', path, '--max-pages', '7', WEIR_CRAWL_SCOPE='any', WEIR_PACE_PROBES='2')
        assert shown['crawl']['depth'] == {'value': 5, 'from': 'file', 'file': path, 'line': 5}
        assert shown['crawl']['max-rate'] == {'value': '4', 'from': 'file', 'file': path, 'line': 2}
        assert shown['crawl']['max-pages'] == {'value': 7, 'from': 'flag'}
        assert shown['crawl']['scope'] == {'value': 'any', 'from': 'environment'}
        assert shown['pace']['open'] == {'value': '30s', 'from': 'file', 'file': path, 'line': 3}
        assert shown['pace']['probes'] == {'value': 2, 'from': 'environment'}
        text = weir('config', 'crawl', env=dict(os.environ, WEIR_CONFIG=path)).stdout
        assert re.search(rf'^  depth: 5 +# {re.escape(path)}:5$', text, re.M), text
        assert re.search(r'^  scope: host +# default$', text, re.M), text
        assert set(_settings('--config', path)) >= {'pace', *SECTIONS}


def config_output_is_a_valid_file_with_the_same_settings():
    odd = 'crawl: {out: "a b: #c", user-agent: "t\\u00e9st", exclude: ["*x*", "[1]"], proxy: "http://p:8080"}\n'
    with _File(odd) as path:
        for words in ([], ['crawl'], ['crawl', '--config', path], ['warm', '--pace', 'unlimited']):
            with _File(weir('config', *words).stdout) as again:
                assert weir('config', 'check', again).stdout == f'{again} is valid\n', words
                before, after = _settings(*words), _settings(*words[:1], '--config', again)
                values = [{name: setting['value'] for section in shown.values() for name, setting in section.items()}
                          for shown in (before, after)]
                assert values[0] == values[1], words


def config_does_not_print_secrets():
    text = 'crawl: {header: ["Authorization: s3cret"], proxy: "http://me:s3cret@proxy:1"}\n'
    with _File(text) as path:
        for words in (['crawl'], ['crawl', '--json'], ['crawl', '--header', 'X: s3cret']):
            run = weir('config', *words, '--config', path)
            assert run.returncode == 0 and 's3cret' not in run.stdout + run.stderr and '(hidden)' in run.stdout, run
    text = ('crawl: {state: "postgres://me:s3cret@db/crawl"}\nfetch: {share: "redis://:s3cret@store"}\n'
            'admission: {store: {url: "redis://me:s3cret@store", nodes: 3}}\n')
    with _File(text) as path:
        for words in ([], ['--json'], ['crawl'], ['fetch'], ['serve'], ['crawl', '--state', 'postgresql://db/crawl?password=s3cret'],
                      ['fetch', '--share', 'redis://a:s3cret@store:1']):
            run = weir('config', *words, '--config', path)
            assert run.returncode == 0 and 's3cret' not in run.stdout + run.stderr, run
            assert '(hidden)' in run.stdout or words == ['serve'], run
    for url in ('rediss://:s3cret@store', 'http://:s3cret@store', 'redis://:s3cret@store/7', ':s3cret@store'):
        rules = 'rules: [{name: r, limit: 1000/s, share: {overshoot: 1%}}]\n'
        for text in (f'fetch: {{share: "{url}"}}\n', rules + f'admission: {{store: {{url: "{url}", nodes: 3}}}}\n'):
            with _File(text) as path:
                run = weir('config', 'check', path)
                assert run.returncode == 1 and 's3cret' not in run.stdout + run.stderr and 'redis://USER' in run.stderr, run
    with _File('crawl: {header: ["s3cret"]}\n') as path:
        run = weir('config', 'check', path)
        assert run.returncode == 1 and 's3cret' not in run.stdout + run.stderr, run


def config_writes_no_file_and_sends_no_request():
    with tempfile.TemporaryDirectory() as folder:
        for words in (['crawl', 'http://127.0.0.1:1/', '--allow-private'], ['fetch', 'http://127.0.0.1:1/'], ['warm'],
                      []):
            assert weir('config', *words, cwd=folder).returncode == 0
        assert os.listdir(folder) == []


def config_check_prints_line_column_and_hint():
    rows = (
        ('crawl:\n  dpeth: 5\n', 2, 3, 'unknown key "dpeth" in crawl; did you mean depth?'),
        ('fetch: {redirects: x}\n', 1, 20, 'redirects: number "x": not a digit at character 1; use 0 ... 1000'),
        ('warm: {min-hit-ratio: 101}\n', 1, 23, 'min-hit-ratio: number "101": too large; use 0 ... 100'),
        ('crwl: {}\n', 1, 1, 'unknown key "crwl" in the file; did you mean "crawl"?'),
        ('pace: {attempts: 101}\n', 1, 18, 'attempts: number "101": too large; use 1 ... 100'),
        ('crawl: {statuses: 403=never}\n', 1, 19, None),
        ('crawl: {include: "re:("}\n', 1, 18, None),
        ('crawl: {depth: 1, depth: 2}\n', 1, 19, 'depth is given twice; remove one of them'),
    )
    for text, line, column, problem in rows:
        with _File(text) as path:
            run = weir('config', 'check', path, env=dict(os.environ, WEIR_CRAWL_DPETH='1'))
            assert run.returncode == 1 and run.stdout == '' and run.stderr.count('\n') == 1, run
            assert run.stderr.startswith(f'weir config check: {path}:{line}:{column}: '), run.stderr
            told = json.loads(weir('config', 'check', '--json', path).stdout)
            assert (told['sound'], told['line'], told['column']) == (False, line, column), told
            assert problem in (None, told['problem']) and told['problem'] in run.stderr, told
    with _File('pace: {min-rate: 5, rate-ceiling: 4}\n') as path:
        told = json.loads(weir('config', 'check', path, '--json').stdout)
        assert told == {'file': path, 'sound': False,
                        'problem': 'pace: the option min-rate is above rate-ceiling; it must be at most that'}, told
    assert 'No such file' in weir('config', 'check', '/nonexistent').stderr
    assert 'expected FILE' in refusal('config', 'check')


def hostile_config_files_give_one_error_line():
    deep = '[' * 100000
    for text in (b'crawl: &a {depth: 1}\nfetch: *a\n', b'crawl: !x {}\n', f'rules: {deep}'.encode(),
                 f'crawl: {{exclude: {deep}'.encode(), b'crawl:\n  depth: 5\x00\n', b'crawl: {out: "\xff"}\n',
                 b'crawl: {}\n' * 2, b'a' * 1000000, b'#' * (1 << 20) + b'\n#', b'{' * 1000000, b'\x00' * 100,
                 b'crawl: {' + b'depth: 1, ' * 50000 + b'}\n', b'- ' * 400000, b'\xfe\xff\x00c'):
        with _File(text) as path:
            run = weir('config', 'check', path)
            assert run.returncode == 1 and run.stdout == '' and run.stderr.count('\n') == 1, (text[:40], run)
            assert len(run.stderr) < 1000, (text[:40], run.stderr)
    assert weir('config', 'check', '/').returncode == 1


def config_error_in_any_section_is_refused_by_every_command():
    with _File('warm: {paes: 1}\n') as path, tempfile.TemporaryDirectory() as folder:
        for command in SENDERS:
            run = weir(command, '--config', path, 'http://127.0.0.1:1/', cwd=folder)
            assert run.returncode == 2 and f'weir {command}: {path}:1:8: unknown key in warm' in run.stderr, run
        assert os.listdir(folder) == []


def flag_of_the_file_can_be_unset_on_the_command_line():
    with _File('crawl: {quiet: true, sitemaps: true}\n') as path:
        shown = _settings('crawl', '--config', path, '--quiet=false')
        assert shown['crawl']['quiet'] == {'value': False, 'from': 'flag'}
        assert shown['crawl']['sitemaps']['value'] is True


def pacing_can_be_off_only_for_servers_of_your_own():
    with tempfile.TemporaryDirectory() as folder:
        for command in SENDERS:
            run = weir(command, '--set', 'pace.off=true', 'http://a.example/', cwd=folder)
            assert run.returncode == 2 and 'servers of your own' in run.stderr, run
        run = weir('fetch', '--set', 'pace.off=true', '--allow-private', '--attempts', '1', '--ignore-robots',
                   'http://127.0.0.1:1/', cwd=folder)
        assert run.returncode == 1 and 'pacing is off' in run.stderr, run


def invalid_arguments_are_refused_with_a_reason():
    assert 'did you mean "weir config crawl"' in refusal('config', 'crawk')
    assert 'unexpected "crawl"' in refusal('config', '--config', '/dev/null', 'crawl')
    assert 'unknown option --depth' in refusal('config', '--depth', '5')
    assert 'unknown option --dpeth' in refusal('config', 'crawl', '--dpeth', '5')


def completion_knows_config_and_its_options():
    def offered(*words):
        return [line.split('\t')[0] for line in weir('complete', '--', *words).stdout.splitlines()]
    assert offered('config', 'c') == ['check', 'crawl']
    assert offered('config', '--') == ['--config', '--json', '--help']
    assert offered('config', '--config', '') == [':files'] and offered('config', 'check', '--j') == ['--json']
    assert offered('config', 'crawl', '--max-p') == ['--max-pages']
    assert offered('config', 'crawl', '--config', '') == [':files']
    assert offered('config', 'check', '') == [':files']
    assert offered('crawl', '--set', 'pace.ope') == ['pace.open=']
    assert offered('crawl', '--set=pace.ope') == ['--set=pace.open=']
    assert set(offered('fetch', '--set', '')) == {f'pace.{name}=' for name in _pace_names()}


def config_examples_of_guide_and_manual_are_valid():
    guide = _source('docs', 'guide', 'configuring.md')
    examples = re.findall(r'^```yaml\n(.*?)^```', guide, re.M | re.S)
    page = _source('man', 'weir.yaml.5')
    examples.append(_source('contrib', 'weir.yaml'))
    examples += [text for text in re.findall(r'^\.Bd -literal -offset indent\n(.*?)^\.Ed', page, re.M | re.S)]
    assert len(examples) >= 3 and any(len(text.split('\n')) > 60 for text in examples)
    for text in examples:
        with _File(text) as path:
            run = weir('config', 'check', path)
            assert run.returncode == 0, run.stderr


def limits_in_the_guides_are_valid():
    choosing = _source('docs', 'guide', 'choosing.md')
    table = re.findall(r'^\| [^|]+ \| `([^`]+)` \|', choosing.split('\n## ')[0], re.M)
    assert len(table) == 7, table
    examples = [f'rules: [{{name: a, key: ip, limit: {limit}}}]\n' for limit in table]
    for guide in (choosing, _source('docs', 'guide', 'behind-a-proxy.md')):
        found = re.findall(r'^```yaml\n(.*?)^```', guide, re.M | re.S)
        assert found
        examples += found
    for inline in re.findall(r'`(admission: \{[^`]*\})`', choosing):
        examples.append(inline + '\n')
    for algorithm in ('burst=', 'fixed_window', 'sliding_window', 'sliding_log', 'leaky_bucket', 'concurrent='):
        assert any(algorithm in limit for limit in table) and algorithm in examples[7], algorithm
    for text in examples:
        with _File(text) as path:
            run = weir('config', 'check', path)
            assert run.returncode == 0, (text, run.stderr)


def config_check_checks_rules_too():
    rules = 'rules: [{name: a, match: {path: /api/**}, key: ip, limit: 10/s burst=20}]\n'
    for text in (rules, rules + 'crawl: {depth: 5}\nadmission: {trusted: [127.0.0.0/8]}\n', 'admission: {}\n'):
        with _File(text) as path:
            run = weir('config', 'check', path)
            assert run.returncode == 0 and run.stdout == f'{path} is valid\n', run
            assert _settings('crawl', '--config', path)
    for text, place, problem in ((rules.replace('limit', 'limt'), ':1:', 'did you mean "limit"?'),
                                 (rules.replace('10/s', 'ten/s'), ':', 'ten/s'),
                                 (rules.replace('ip', 'ipp'), ':', 'ipp'),
                                 ('admission: {match: some}\n', ':1:20: ', 'one of first, all'),
                                 (rules + 'admission: {deny: [nowhere]}\n', ':', 'nowhere'),
                                 ('admission: {trusted: [nobody]}\n', ':', 'nobody')):
        with _File(text) as path:
            run = weir('config', 'check', path)
            assert run.returncode == 1 and run.stderr.count('\n') == 1, run
            assert run.stderr.startswith(f'weir config check: {path}{place}') and problem in run.stderr, run.stderr


def manual_lists_every_key_of_rules():
    page = _source('man', 'weir.yaml.5').split('.Sh SECTIONS')[1].split('.Sh EXAMPLES')[0]
    keys = re.findall(r'^    \{"(\w+)", WR_CONFIG', _source('src/serve/rules/rules_settings.c'), re.M)
    assert len(keys) > 25
    for key in keys:
        assert re.search(rf'^\.(It )?Cm (.* , )?{key}\b', page, re.M), key


def manual_lists_every_pace_setting():
    page = _source('man', 'weir.yaml.5').split('.Sh PACE')[1].split('.Sh RULES')[0]
    assert re.findall(r'^\.It Cm (\S+)$', page, re.M) == _pace_names()


if __name__ == '__main__':
    cases.main()
