#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The man pages are valid mdoc and agree with the headers. The first argument is the source folder.
"""
import glob
import os
import re
import subprocess
import sys

import cases


def _pages():
    pages = sorted(glob.glob(os.path.join(sys.argv[1], 'man', '*.[1-9]')))
    assert pages
    return pages


def _read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def _plain(text):
    """Returns a declaration with single blanks between words and none elsewhere."""
    return re.sub(r' ?([(),*]) ?', r'\1', ' '.join(text.split()))


def _declared():
    """Returns {function: its prototype} of all public headers."""
    found = {}
    for path in glob.glob(os.path.join(sys.argv[1], 'include', 'weir', '*.h')):
        text = re.sub(r'/\*.*?\*/', '', _read(path), flags=re.S)
        for prototype in re.findall(r'^WEIR_API\s+([^;#]+);', text, re.M):
            found[re.search(r'(weir_\w+)\s*\(', prototype).group(1)] = _plain(prototype)
    assert len(found) > 50
    return found


def _macro_words(line):
    return [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', line)]


def _shown(page):
    """Returns {function: its prototype} of a page's SYNOPSIS. Callback types are left out."""
    found, returned, name, parameters = {}, '', None, []
    for line in re.search(r'\.Sh SYNOPSIS\n(.*?)\n\.Sh ', _read(page), re.S).group(1).split('\n'):
        macro, *words = _macro_words(line) or ['']
        if macro == '.Ft':
            returned = ' '.join(words)
        elif macro == '.Fn' and not returned.startswith('typedef'):
            found[words[0]] = _plain(f'{returned} {words[0]}({", ".join(words[1:])})')
        elif macro == '.Fo':
            name, parameters = words[0], []
        elif macro == '.Fa' and name:
            parameters += words
        elif macro == '.Fc':
            found[name] = _plain(f'{returned} {name}({", ".join(parameters)})')
            name = None
    return found


def _named(page):
    return set(re.findall(r'^\.Nm (\S+)', _read(page).split('.Sh SYNOPSIS')[0], re.M))


def _library_pages():
    return [page for page in _pages() if page.endswith('.3')]


def man_pages_are_valid_mdoc():
    run = subprocess.run(['mandoc', '-T', 'lint', '-W', 'warning', *_pages()], capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout == '', run.stdout


def every_public_function_has_one_man_page():
    for function in _declared():
        pages = [os.path.basename(page) for page in _library_pages() if function in _named(page)]
        assert len(pages) == 1, f'{function}: {pages}'


def man_page_prototypes_match_the_headers():
    declared = _declared()
    for page in _library_pages():
        shown = _shown(page)
        assert set(shown) == {name for name in _named(page) if name != 'libweir'}, page
        for function, prototype in shown.items():
            assert function in declared, f'{page}: {function} is in no header'
            assert prototype == declared[function], f'{page}: {prototype}\nheader: {declared[function]}'


def every_man_page_is_installed():
    listed = _read(os.path.join(sys.argv[1], 'man', 'meson.build'))
    for page in _pages():
        assert f"'{os.path.basename(page)}'" in listed, page


def man_page_cross_references_exist():
    known = {os.path.splitext(os.path.basename(page))[0] for page in _pages()} | set(_declared())
    for page in _pages():
        for name in re.findall(r'^\.(?:It )?Xr (\S+) ', _read(page), re.M):
            assert not re.match('(lib)?weir', name) or name in known, f'{page}: {name}'


def man_page_explains_every_error_code():
    codes = re.findall(r'X\((WEIR_E_\w+),', _read(os.path.join(sys.argv[1], 'include', 'weir', 'error.h')))
    text = _read(os.path.join(sys.argv[1], 'man', 'weir_error.3'))
    assert codes
    for code in codes:
        assert f'.It Dv {code}\n' in text, code


def _source(*path):
    return _read(os.path.join(sys.argv[1], *path))


def man_page_lists_every_table_and_column_of_the_state_file():
    schema = ''.join(re.findall(r'^ +"(.*)"[;,]?$', _source('src/crawl/store/sqlite/schema.c'), re.M))
    tables = re.findall(r'CREATE TABLE (\w+) \((.*?)\) STRICT', schema)
    sections = dict(re.findall(r'^\.Ss (\w+)\n(.*?)(?=^\.S[sh] )', _source('man', 'weir-state.5'), re.M | re.S))
    assert {'jobs', 'tasks', 'hosts'} <= {name for name, _ in tables}
    for table, columns in tables:
        for column in re.findall(r'(?:^|,)\s*([a-z]\w*) [A-Z]', columns):
            assert re.search(rf'^\.(?:It )?Li .*\b{column}\b', sections[table], re.M), f'{table}.{column}'


def man_page_lists_every_word_of_an_output_line():
    lines = _source('man', 'weir-state.5').split('.Sh OUTPUT LINES')[1].split('.Sh EXAMPLES')[0]
    keys = re.findall(r'\\"(\w+)\\": ', _source('src/crawl/engine/output_line.c'))
    described = [word for item in re.findall(r'^\.It Li (.*)', lines, re.M) for word in item.split(' , ')]
    assert 'url' in keys
    verdicts = re.findall(r'X\(WR_VERDICT_\w+, "(\w+)"\)', _source('src/crawl/engine/output_line.h'))
    reasons = re.findall(r'X\(WEIR_REASON_\w+, "(\w+)"\)', _source('include', 'weir', 'limit.h'))
    assert len(verdicts) > 5 and len(reasons) > 5
    assert sorted(described) == sorted(keys + verdicts + [reason for reason in reasons if reason != 'none'])


def man_page_lists_every_member_of_the_admission_structs():
    for header, struct, page in (('table', 'weir_key_store', 'weir_table'), ('table', 'weir_table_options', 'weir_table'),
                                 ('admit', 'weir_rule', 'weir_admit'), ('admit', 'weir_admission_options', 'weir_admit')):
        body = re.search(rf'^typedef struct {struct} {{\n(.*?)^}}', _source('include', 'weir', f'{header}.h'), re.M | re.S)
        code = re.sub(r'/\*.*?\*/', '', body.group(1), flags=re.S)
        members = re.findall(r'\(\*(\w+)\)\(|\b(\w+);', re.sub(r'(\(\*\w+\)\()[^;]*;', r'\1', code))
        names = {function or value for function, value in members} - {'size', 'context'}
        assert len(names) > 4, names
        text = _source('man', f'{page}.3')
        described = {word for line in re.findall(r'^\.It Fa (.*)', text, re.M) for word in line.split(' , ')}
        assert names <= described, names - described


def man_page_lists_every_option_of_a_command():
    for command in ('bench', 'crawl', 'fetch', 'headers', 'robots', 'simulate', 'url', 'warm'):
        text = _read(os.path.join(sys.argv[1], 'man', f'weir-{command}.1'))
        for path in glob.glob(os.path.join(sys.argv[1], 'src', 'cli', command, '*.c')):
            table = _read(path)
            if 'WR_PACE_OPTIONS(' in table:
                table += _source('src/cli/kit/pace_flags.h')
            for option in re.findall(r'^ +\{?\s*"([a-z-]+)", WR_(?!CONFIG)', table, re.M):
                assert f'.It Fl -{option}' in text, f'{command} --{option}'


if __name__ == '__main__':
    cases.main()
