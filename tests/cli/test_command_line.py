#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line: help, version, and one line with a hint for every mistake."""
import os
import re
import subprocess
import sys

import cases
from program import refusal, weir


def help_lists_every_command():
    run = weir('--help')
    assert run.returncode == 0 and run.stderr == ''
    assert re.search(r'^  bench +\S', run.stdout, re.M)
    assert re.search(r'^  help +\S', run.stdout, re.M)
    assert '--version' in run.stdout
    assert weir('help').stdout == run.stdout
    assert weir('-h').stdout == run.stdout


def help_command_and_help_option_print_the_same_text():
    for words in (['bench'], ['bench', 'table'], ['bench', 'limiter']):
        run = weir(*words, '--help')
        assert run.returncode == 0 and run.stderr == ''
        assert run.stdout.startswith('usage: weir ' + ' '.join(words))
        assert weir('help', *words).stdout == run.stdout
        assert weir(*words, '-h').stdout == run.stdout
    assert weir('bench', 'help', 'table').stdout == weir('bench', 'table', '--help').stdout


def help_names_each_option_with_its_default():
    text = weir('bench', 'table', '--help').stdout
    for option in ('keys N', 'key-length L', 'dist one|uniform|zipf', 'threads T', 'batch B', 'clock fast|monotonic'):
        assert re.search(rf'^  --{re.escape(option)} .*\(default \w+\)$', text, re.M), option
    assert re.search(r'^  --json +\S', text, re.M)


def _commands(*words):
    """Returns every command of the program and its subcommands, each as a list of words."""
    text = weir(*words, '--help').stdout
    if not text.startswith(' '.join(['usage: weir', *words, 'COMMAND'])):
        return [words]
    names = re.findall(r'^  ([a-z]+) +\S', text, re.M)
    return [words] + [each for name in names if name not in ('help', 'complete', 'weir') for each in _commands(*words, name)]


def help_fits_a_terminal_of_a_hundred_columns():
    for words in _commands():
        for line in weir(*words, '--help', 'all').stdout.splitlines():
            assert len(line) <= 100, line


def help_of_each_option_is_one_line_readable_alone():
    """Shell completion shows each help line by itself, so it begins like a sentence and refers to
    no other line."""
    for words in _commands():
        text = re.sub(r'\n {26}', ' ', weir(*words, '--help', 'all').stdout)  # joins help texts that were wrapped
        for option, about in re.findall(r'^  (--\S+)(?: \S+)? +(\S.*)$', text, re.M):
            assert re.match(r'[A-Z]|[a-z]+: |"', about) and len(re.sub(r' \(default .*', '', about)) <= 72, (words, option, about)


def help_of_many_options_shows_the_ten_that_are_used_most():
    for command in ('crawl', 'fetch', 'serve', 'warm'):
        option = re.compile(r'^  --[a-z]', re.M)
        short, full = weir(command, '--help').stdout, weir(command, '--help', 'all').stdout
        assert len(option.findall(short)) == 10 and '--help all' in short, short
        assert len(option.findall(full)) > 20
        assert not re.search(r'^[A-Z]\w+:$', short, re.M)


def help_all_groups_options_under_headings():
    text = weir('crawl', '--help', 'all').stdout
    assert re.findall(r'^([A-Z]\w+):$', text, re.M) == [
        'Scope', 'Pace', 'Limits', 'Output', 'State', 'Archive', 'Identity', 'Network', 'Watching', 'Help']
    scope = text.split('\nScope:\n')[1].split('\n\n')[0]
    assert '--exclude' in scope and '--proxy' not in scope


def help_explains_a_default_of_zero():
    assert '(default 0: no limit)' in weir('crawl', '--help').stdout
    assert '(default 0)' not in weir('crawl', '--help', 'all').stdout.replace('--interval D            Wait at least D between two '
                                                                               'requests to a host (default 0)', '')


def every_command_has_short_help_and_full_help():
    for words in _commands():
        for tail in ['--help'], ['--help', 'all']:
            run = weir(*words, *tail)
            assert run.returncode == 0 and run.stdout.startswith('usage: weir '), (words, run)


def help_is_shown_even_if_another_option_is_wrong():
    assert weir('bench', 'table', '--kees', '5', '--help').returncode == 0


def version_option_prints_three_numbers():
    run = weir('--version')
    assert run.returncode == 0 and re.fullmatch(r'weir \d+\.\d+\.\d+\n', run.stdout)


def version_option_refuses_further_arguments():
    assert refusal('--version', 'extra') == 'weir: unexpected "extra"; --version takes no argument'


def double_dash_ends_the_options_of_the_program():
    assert weir('--', 'bench', '--help').stdout == weir('bench', '--help').stdout
    assert weir('bench', '--', 'table', '--help').stdout == weir('bench', 'table', '--help').stdout
    assert 'unknown command "--version"' in refusal('--', '--version')
    assert 'unknown command "--help"' in refusal('--', '--help')
    assert 'a command is missing' in refusal('--')


def missing_command_is_refused():
    assert '"weir --help"' in refusal()
    assert '"weir bench --help"' in refusal('bench')


def unknown_command_is_refused_with_the_nearest_name():
    assert 'did you mean "weir bench"?' in refusal('benhc')
    assert 'did you mean "weir bench table"?' in refusal('bench', 'tabel')
    assert '"weir --help"' in refusal('xylophone')
    assert '"weir --help"' in refusal('help', 'xylophone')
    assert '"weir --help"' in refusal('--xylophone')
    assert refusal('--verson') == 'weir: unknown option --verson; did you mean --version?'
    assert 'did you mean --help?' in refusal('bench', '--hlep')
    assert '"weir bench --help"' in refusal('bench', '--version')
    assert '"weir --help"' in refusal('-v')
    assert '"weir --help"' in refusal('')


def unknown_option_is_refused_with_the_nearest_name():
    assert refusal('bench', 'table', '--kees', '5') == 'weir bench table: unknown option --kees; did you mean --keys?'
    assert '"weir bench table --help"' in refusal('bench', 'table', '--xylophone')
    assert '"weir bench table --help"' in refusal('bench', 'table', '-k')
    assert 'did you mean --keys?' in refusal('bench', 'table', '--key=5')


def invalid_or_out_of_range_number_is_refused():
    wanted = 'use 1 ... 1000000000'
    for bad in ('', 'x', '12x', '-1', '+1', '0', '1000000001', '99999999999999999999999', '1e6', ' 1', '0x10', '1,000'):
        assert wanted in refusal('bench', 'table', '--keys', bad), bad
        assert wanted in refusal('bench', 'table', f'--keys={bad}'), bad


def refusal_of_a_value_says_what_is_wrong_and_where():
    assert refusal('bench', 'table', '--keys', '12x') == \
        'weir bench table: --keys: number "12x": not a digit at character 3; use 1 ... 1000000000'
    assert 'unknown unit at character 2; use ns, us, ms, s, m, h or d' in refusal('bench', 'table', '--seconds', '5w')
    assert 'from 0 to 1d' in refusal('bench', 'table', '--seconds', '1d1s')


def option_seconds_takes_a_duration():
    for time in ('0', '0.001', '1ms', '1ms500us'):
        run = weir('bench', 'table', '--keys', '5', '--ops', '10', '--seconds', time)
        assert run.returncode == 0, run.stderr
    assert 'needs a value: a duration such as' in refusal('bench', 'table', '--seconds')
    assert 'unexpected "now"' in refusal('bench', 'table', '--seconds', '1h30m', 'now')


def missing_value_is_refused():
    assert 'needs a value: a whole number from 1' in refusal('bench', 'table', '--keys')
    assert 'needs a value: one of one, uniform, zipf' in refusal('bench', 'table', '--dist')


def unknown_choice_is_refused_with_the_list_of_choices():
    assert 'one of one, uniform, zipf' in refusal('bench', 'table', '--dist', 'zip')
    assert 'one of fast, monotonic' in refusal('bench', 'table', '--clock', 'Fast')


def value_for_a_flag_is_refused():
    assert 'it must be true or false' in refusal('bench', 'table', '--json=yes')


def unexpected_operand_is_refused():
    assert 'unexpected "now"' in refusal('bench', 'table', 'now')
    assert 'unexpected "--json"' in refusal('bench', 'table', '--', '--json')


def contradictory_bench_settings_are_refused():
    assert 'only 1024 keys of --key-length 2' in refusal('bench', 'table', '--keys', '1025', '--key-length', '2')
    assert '--ops of --key-length 1024 can be at most' in refusal('bench', 'table', '--ops', '1000000000',
                                                                  '--key-length', '1024')


def refusal_of_hostile_arguments_stays_one_escaped_line():
    assert '"5\\x0a\\x1b[31m6"' in refusal('bench', 'table', '--keys', '5\n\x1b[31m6')
    assert '"x?y"' in refusal('x\ny')
    assert len(refusal('bench', 'table', '--keys', '9' * 100000)) < 2000
    assert len(refusal('x' * 100000)) < 2000
    assert len(refusal('bench', 'table', '--' + 'x' * 100000)) < 2000
    refusal(*['help'] * 100)


def option_takes_equals_sign_or_blank_and_the_last_value_counts():
    run = weir('bench', 'limiter', '--json', '--ops', 'x', '--ops=10')
    assert run.returncode == 2
    run = weir('bench', 'table', '--json', '--keys=7', '--keys', '5', '--ops', '10', '--seconds=0')
    assert run.returncode == 0 and '"keys": 5,' in run.stdout


def output_that_cannot_be_written_is_a_failure():
    with open('/dev/full', 'w') as full:
        run = subprocess.run([sys.argv[1], '--help'], stdout=full, stderr=subprocess.PIPE, text=True, timeout=20)
    assert run.returncode == 1 and 'No space left' in run.stderr


def unusable_file_is_refused_with_a_hint():
    table = {('simulate', '--pacer', 'fixed', '--scenario', 'P6a', '--trace', '/proc/x/y'):
             'cannot write /proc/x/y: No such file or directory; make its folder first, or name another file',
             ('simulate', '--pacer', 'fixed', '--scenario', 'P6a', '--trace', '/'):
             'cannot write /: Is a directory; name a file in it',
             ('simulate', '--pacer', 'fixed', '--scenario', 'P6a', '--trace', '/dev/null/x'):
             'cannot write /dev/null/x: Not a directory; name a file in a folder',
             ('simulate', '--pacer', 'fixed', '--scenario', 'P6a', '--trace', '/dev/full'):
             'cannot write /dev/full: No space left on device; make room on its disk, or name a file on another',
             ('fetch', '--urls-file', '/nowhere/urls'): 'cannot read /nowhere/urls: No such file or directory; check the path',
             ('serve', '--config', '/nowhere/weir.yaml'):
             '/nowhere/weir.yaml: No such file or directory; name a file that exists, or write one as '
             'docs/guide/configuring.md shows',
             ('serve', '--config', '/'): '/: Is a directory; name a file in it'}
    for words, expected in table.items():
        run = weir(*words)
        assert run.returncode in (1, 2), (words, run)
        assert run.stderr == f'weir {words[0]}: {expected}\n', (words, run.stderr)


def closed_pipe_ends_with_an_error_not_a_signal():
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run([sys.argv[1], '--version'], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=20)
    os.close(writer)
    assert run.returncode == 1 and run.stderr == 'weir: cannot write to standard output: Broken pipe\n'


def closed_standard_output_is_a_failure():
    run = subprocess.run(['sh', '-c', 'exec "$0" "$@" >&-', sys.argv[1], 'bench', 'table', '--keys', '5', '--ops', '5',
                          '--seconds', '0'], stderr=subprocess.PIPE, text=True, timeout=20)
    assert run.returncode == 1 and 'cannot write to standard output' in run.stderr


def progress_is_shown_only_on_a_terminal():
    run = weir('bench', 'table', '--keys', '5', '--ops', '5', '--seconds', '0')
    assert run.returncode == 0 and run.stderr == ''


if __name__ == '__main__':
    cases.main()
