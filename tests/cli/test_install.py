#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The installed files are usable: programs link with the shared and the static library, and run.
The arguments are the source folder, the build folder and the compiler."""
import os
import re
import subprocess
import sys
import tempfile

import cases

# the list that README gives for linking with libweir-http.a
PACKAGES = ['libpsl', 'libidn2', 'libcurl', 'libssl', 'libuv', 'zlib', 'libbrotlidec', 'libzstd']


def _output(*words, **environment):
    run = subprocess.run(words, capture_output=True, text=True, timeout=120, env={**os.environ, **environment})
    assert run.returncode == 0, f'{words}: {run.stdout}{run.stderr}'
    return run.stdout


class _Installed:
    """The library installed below a temporary folder, as packagers do it."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        root = self.folder.name
        _output('meson', 'install', '-C', sys.argv[2], '--no-rebuild', '--quiet', DESTDIR=root)
        found = [path for path, _, names in os.walk(root) if 'weir.pc' in names]
        assert len(found) == 1, found
        self.libraries = os.path.dirname(found[0])
        with open(os.path.join(found[0], 'weir.pc'), encoding='utf-8') as file:
            prefix = file.readline().strip().split('=')[1]
        self.path, self.prefix = found[0], root + prefix
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def flags(self, *options, library='weir', **environment):
        environment = environment or {'PKG_CONFIG_PATH': self.path}
        return _output('pkg-config', f'--define-variable=prefix={self.prefix}', *options, library, **environment).split()

    def link(self, example, *flags):
        """Compiles and links a program of examples/. Returns its path."""
        program = os.path.join(self.folder.name, 'program')
        _output(*sys.argv[3:], os.path.join(sys.argv[1], 'examples', example), '-o', program, *flags)
        return program

    def prints(self, *libraries):
        """Links examples/pacer.c with these libraries, runs it and returns its output."""
        return _output(self.link('pacer.c', *self.flags('--cflags'), *libraries), LD_LIBRARY_PATH=self.libraries)


def _shown():
    with open(os.path.join(sys.argv[1], 'examples', 'pacer.out'), encoding='utf-8') as file:
        return file.read()


def program_links_with_the_installed_library():
    with _Installed() as installed:
        assert installed.prints(*installed.flags('--libs'), '-pthread') == _shown()


def program_links_with_the_static_library_alone():
    with _Installed() as installed:
        text = installed.prints('-L' + installed.libraries, '-l:libweir.a', '-pthread', '-lm')
        assert text == _shown()
        assert _needed(os.path.join(installed.folder.name, 'program')) <= OF_C


OF_C = {'libc.so.6', 'libm.so.6', 'libpthread.so.0', 'ld-linux-x86-64.so.2'}


def _needed(program):
    return set(re.findall(r'NEEDED.*\[(.*)\]', _output('readelf', '-d', program)))


def program_with_a_limiter_needs_no_library_but_libweir_and_libc():
    with _Installed() as installed:
        alone = {'PKG_CONFIG_LIBDIR': installed.path, 'PKG_CONFIG_PATH': ''}  # no other package is known here
        program = installed.link('limiter.c', *installed.flags('--cflags', '--libs', **alone), '-pthread')
        assert _needed(program) <= {'libweir.so.0'} | OF_C, _needed(program)
        assert _needed(os.path.join(installed.libraries, 'libweir.so')) <= OF_C
        headers = _output(*sys.argv[3:], '-M', os.path.join(sys.argv[1], 'examples', 'limiter.c'),
                          *installed.flags('--cflags', **alone))
        assert '/weir/limit.h' in headers and not re.search(r'/(curl|openssl|uv)\.?[/h]', headers), headers


def client_links_with_both_libraries_and_finds_all_they_need():
    with _Installed() as installed:
        flags = installed.flags('--cflags', '--libs', library='weir-http')
        assert {'-lweir-http', '-lweir'} <= set(flags), flags
        shared = installed.link('client.c', *flags, '-pthread')
        found = _output('ldd', '-r', shared, LD_LIBRARY_PATH=installed.libraries)
        assert 'libweir-http.so.0' in found and 'not found' not in found and 'undefined' not in found, found
        needs = _output('pkg-config', '--libs', *PACKAGES).split()
        static = installed.link('client.c', *installed.flags('--cflags'), '-L' + installed.libraries, '-l:libweir-http.a',
                                '-l:libweir.a', *needs, '-pthread', '-lm')
        assert not [name for name in _needed(static) if 'weir' in name], _needed(static)


def each_example_links_as_its_comment_says():
    folder = os.path.join(sys.argv[1], 'examples')
    names = sorted(name for name in os.listdir(folder) if name.endswith('.c'))
    assert len(names) > 8, names
    with _Installed() as installed:
        for name in names:
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                shown = re.search(rf'cc {name} \$\(pkg-config --cflags --libs ([\w -]+)\)(.*)', file.read())
            assert shown, f'{name} does not say how to compile it'
            flags = [flag for library in shown.group(1).split() for flag in (
                installed.flags('--cflags', '--libs', library=library) if library.startswith('weir') else
                _output('pkg-config', '--cflags', '--libs', library).split())]
            installed.link(name, *flags, '-Wl,--no-undefined', f'-Wl,-rpath-link={installed.libraries}',
                           *shown.group(2).split())


def documented_flags_of_the_static_library_are_the_tested_ones():
    words = '-l:libweir-http.a -l:libweir.a $(pkg-config --libs ' + ' '.join(PACKAGES) + ') -pthread -lm'
    for name in 'README.md', 'man/libweir.3':
        with open(os.path.join(sys.argv[1], name), encoding='utf-8') as file:
            assert words in ' '.join(file.read().replace('\\-', '-').split()), name


def _tree(folder):
    return sorted(os.path.join(path, name) for path, _, names in os.walk(folder) for name in names)


def uninstall_removes_what_was_installed_and_nothing_else():
    with _Installed() as installed:
        ours = _tree(installed.folder.name)
        assert len(ours) > 50, ours
        others = [os.path.join(installed.prefix, name) for name in ('bin/other', 'share/man/man3/other.3')]
        for path in others:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w', encoding='ascii'):
                pass
        os.unlink(ours[0])
        said = _output(os.path.join(sys.argv[1], 'tools', 'uninstall'), sys.argv[2], DESTDIR=installed.folder.name)
        assert f'{len(ours) - 1} of {len(ours)} files removed' in said, said
        assert _tree(installed.folder.name) == sorted(others)
        assert not os.path.exists(os.path.join(installed.prefix, 'include', 'weir'))


if __name__ == '__main__':
    cases.main()
