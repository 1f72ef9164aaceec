# SPDX-License-Identifier: MIT
"""A test program in Python, the counterpart of tests/lib/test.h for C.

Every function of the program itself whose name does not begin with '_' is a test, and its name is a
sentence. `PROGRAM --list` prints the names. `PROGRAM ARGUMENT…` runs all tests and marks each as
cmocka does; tools/tally counts these marks.
"""
import os
import sys
import traceback
import types


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def is_ci():
    return os.environ.get('CI') in ('true', '1')


def missing(what):
    """Returns an exception to raise: `raise missing('node')`. A tool that tools/setup installs may
    be missing on a user's machine (the test is skipped), but not in CI (the test fails)."""
    why = f'{what} is missing; tools/setup test installs it'
    return AssertionError(why) if is_ci() else Skip(why)


def tests_of(module):
    return {name: value for name, value in vars(module).items()
            if isinstance(value, types.FunctionType) and value.__module__ == '__main__' and not name.startswith('_')}


def _passed(name, test):
    print(f'[ RUN      ] {name}', flush=True)
    try:
        test()
    except Skip as why:
        print(f'skipped: {why}\n[  SKIPPED ] {name}', flush=True)
        return True
    except Exception:  # a failed test, whatever the exception
        traceback.print_exc(file=sys.stdout)
        print(f'[  FAILED  ] {name}', flush=True)
        return False
    print(f'[       OK ] {name}', flush=True)
    return True


def main():
    tests = tests_of(sys.modules['__main__'])
    if sys.argv[1:] == ['--list']:
        print('\n'.join(tests))
        sys.exit(0)
    results = [_passed(name, test) for name, test in tests.items()]
    sys.exit(0 if results and all(results) else 1)
