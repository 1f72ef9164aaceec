#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`meson setup` reports that a machine is unsuitable; the build does not fail later in the
compiler. The argument is the source folder."""
import os
import re
import subprocess
import sys
import tempfile

import cases

SOURCE = sys.argv[1]
DARWIN = "[host_machine]\nsystem = 'darwin'\ncpu_family = 'aarch64'\ncpu = 'aarch64'\nendian = 'little'\n[binaries]\nc = 'cc'\n"
NO_WIDE = ['-Dc_args=-U__SIZEOF_INT128__ -D_BitInt(bits)=missing']


def _set_up(*options, cross=None, **environment):
    """Runs `meson setup` and returns (output, whether it succeeded)."""
    with tempfile.TemporaryDirectory() as folder:
        words = ['meson', 'setup', os.path.join(folder, 'build'), *options]
        if cross is not None:
            with open(os.path.join(folder, 'cross'), 'w', encoding='utf-8') as file:
                file.write(cross)
            words += ['--cross-file', file.name]
        run = subprocess.run(words, cwd=SOURCE, capture_output=True, text=True, timeout=100, env={**os.environ, **environment})
        return run.stdout + run.stderr, run.returncode == 0


def meson_setup_refuses_systems_other_than_linux():
    said, succeeded = _set_up(cross=DARWIN)
    assert not succeeded and re.search(r'weir runs on Linux only, and this is darwin; README\.md', said), said


def meson_setup_without_128_bit_integers_names_compilers_with_them():
    said, succeeded = _set_up(*NO_WIDE)
    assert not succeeded and re.search(r'this compiler has no numbers of 128 bits .* gcc 14 .* clang 16', said), said


def meson_setup_of_base_and_core_needs_no_library():
    said, succeeded = _set_up('-Drooms=core', '-Dtests=disabled', PKG_CONFIG_LIBDIR='/nonexistent')
    assert succeeded, said
    said, succeeded = _set_up('-Dtests=disabled', PKG_CONFIG_LIBDIR='/nonexistent')
    assert not succeeded and 'libcurl' in said, said


def packages_of_other_architectures_install_only_in_a_chroot():
    for words in (['cross', 'arm64'], ['cross', 'i386'], ['cross', 's390x'], ['musl']):
        run = subprocess.run([os.path.join('tools', 'machines', words[0]), *words[1:]], cwd=SOURCE, capture_output=True, text=True,
                             timeout=20)
        assert run.returncode == 1 and f'run tools/elsewhere {words[-1]}' in run.stderr, (words, run.stdout, run.stderr)


if __name__ == '__main__':
    cases.main()
