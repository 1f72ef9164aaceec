# SPDX-License-Identifier: MIT
"""Measures the figures of the ledger with the programs of a build."""
import glob
import os
import re
import shutil
import subprocess
import tempfile

import crawl

INSTRUCTIONS = 'instructions'
BYTES = {'key': 'bytes_per_key', 'pacer_host': 'bytes_per_pacer_host', 'plan_host': 'bytes_per_crawled_host',
         'plan_url': 'bytes_per_queued_url'}
CALLS = {'page_requests': 'round trips', 'page_calls': 'system calls', 'page_mallocs': 'calls of malloc'}
TOOLS = 'valgrind', 'strace'


class Missing(Exception):
    """A program needed to measure, or the figures to compare with, are missing: the test is
    skipped."""


class Broken(Exception):
    """A measuring program has failed."""


def need_tools():
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise Missing(f'{" and ".join(missing)} cannot be found')


def _valgrind(folder, program, *words):
    """Runs a program under valgrind with a constant environment, because the environment is part of
    a program's memory."""
    run = subprocess.run([shutil.which('valgrind'), '--tool=callgrind', f'--callgrind-out-file={folder}/out',
                          '--toggle-collect=cost_measured', '--dump-after=cost_measured', program, *words],
                         env={'PATH': '/usr/bin:/bin'}, cwd='/', capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise Broken(f'valgrind {program} ended with {run.returncode}: {run.stderr.strip()[-500:]}')
    return run.stdout


def machine(build):
    """Returns a text of everything besides the code that the figures depend on."""
    with tempfile.TemporaryDirectory(prefix='weir-ledger-') as folder:
        return _valgrind(folder, f'{build}/bench/ledger_costs', '--machine').strip()


def _counted(path):
    with open(path, encoding='utf-8') as file:
        return int(re.search(r'^summary: (\d+)', file.read(), re.M)[1])


def instructions(build):
    """Returns {figure: instructions of one round}."""
    with tempfile.TemporaryDirectory(prefix='weir-ledger-') as folder:
        figures = [line.split() for line in _valgrind(folder, f'{build}/bench/ledger_costs').splitlines()]
        if len(glob.glob(f'{folder}/out.*')) != len(figures):
            raise Broken('valgrind did not count each figure once')
        return {name: _counted(f'{folder}/out.{number}') / int(rounds)
                for number, (name, rounds) in enumerate(figures, 1)}


def in_bytes(build):
    return {name: float(subprocess.run([f'{build}/bench/ledger_bytes', kind], check=True, capture_output=True, text=True,
                                       timeout=120, env={'PATH': '/usr/bin:/bin'}).stdout)
            for kind, name in BYTES.items()}


def figures(build):
    """Returns ({figure: count}, {figure: unit})."""
    counts = instructions(build)
    units = {name: INSTRUCTIONS for name in counts}
    for more, unit in ((in_bytes(build), {name: 'bytes' for name in BYTES.values()}),
                       (crawl.figures(f'{build}/weir', f'{build}/bench/libledger_count.so'), CALLS)):
        counts.update(more)
        units.update(unit)
    return counts, units
