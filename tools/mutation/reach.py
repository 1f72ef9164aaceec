# SPDX-License-Identifier: MIT
"""Finds the test runs that reach a line, with a coverage build, one run after the other. The result
is kept until the program has changed."""
import concurrent.futures
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import tempfile
from collections import namedtuple

import suite

OPTIONS = ['-Db_coverage=true', '-Doptimization=0', '-Dc_args=-fprofile-update=atomic']


def prepare(root, folder, programs):
    """Makes the coverage build of these programs."""
    if not os.path.exists(os.path.join(folder, 'build.ninja')):
        subprocess.run(['meson', 'setup', *OPTIONS, folder, root], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, 'CC': 'gcc'})  # gcov reads the counts of gcc
    subprocess.run(['ninja', '-C', folder, *sorted(programs)], check=True, stdout=subprocess.DEVNULL)


def lines_of(build, prefix, source_root):
    """Returns {source: [lines that ran, lines with code]} from the counts below `prefix`."""
    found = {}
    counts = [os.path.join(place, name) for place, _, names in os.walk(prefix) for name in names if name.endswith('.gcda')]
    for count in counts:
        note = '/' + os.path.relpath(count, prefix)[:-len('gcda')] + 'gcno'
        if os.path.exists(note):
            os.symlink(note, count[:-len('gcda')] + 'gcno')
    if not counts:
        return found
    run = subprocess.run(['gcov', '--json-format', '--stdout', *counts], cwd=build, capture_output=True, text=True)
    for line in run.stdout.splitlines():
        if not line.startswith('{'):
            continue
        for file in json.loads(line)['files']:
            path = os.path.relpath(os.path.normpath(os.path.join(build, file['file'])), source_root)
            if path.startswith('src' + os.sep) and path.endswith('.c'):
                ran, could = found.setdefault(path, (set(), set()))
                ran.update(entry['line_number'] for entry in file['lines'] if entry['count'] > 0)
                could.update(entry['line_number'] for entry in file['lines'])
    return {path: [sorted(ran), sorted(could)] for path, (ran, could) in found.items()}


def measure(run, build, source_root):
    """Runs one test and returns {source: lines} that it reaches, and how it ended."""
    prefix = tempfile.mkdtemp(prefix='wm-')
    try:
        ended = suite.execute(run.command, {**dict(run.env), 'GCOV_PREFIX': prefix}, build, 600, 900)
        return lines_of(build, prefix, source_root), ended
    finally:
        shutil.rmtree(prefix, ignore_errors=True)


# The lines that a run reaches, if they could be measured: `found` is {source: [lines that ran,
# lines with code]}, or None.
Learned = namedtuple('Learned', 'run seconds good found')


class Probe:
    """Measures which lines runs reach, and caches the result."""

    def __init__(self, root, build, covered, trusts):
        self.root, self.build, self.covered, self.trusts = root, build, covered, trusts
        self.cache = os.path.join(covered, 'reach')
        os.makedirs(self.cache, exist_ok=True)

    def learn(self, run):
        """Measures the lines that a test reaches: as a whole if it is quick, otherwise case by
        case."""
        return [self.learn_part(part) for part in self.parts(run)]

    def kept(self, name, stamp, make):
        """Returns the cached result for this name and stamp, or calls `make` and caches its result.
        """
        path = os.path.join(self.cache, re.sub(r'\W+', '_', name) + '.json')
        if os.path.exists(path):
            kept = suite.read_json(path)
            if self.trusts or kept['stamp'] == stamp:
                return kept['value']
        value = make()
        if value is None:
            return None
        with open(path + '.new', 'w', encoding='utf-8') as file:
            json.dump({'stamp': stamp, 'value': value}, file)
        os.replace(path + '.new', path)
        return value

    def plain(self, run):
        """Returns how long a run takes in the ordinary build, and whether it passes."""
        stamp = suite.digest_of(os.path.join(self.build, run.program)) + self.script_stamp(run)

        def time_it():
            ended = suite.execute(run.command, run.env, self.build, 600, 900)
            return [ended.seconds, ended.good]
        return self.kept('time ' + run.name, stamp, time_it)

    @staticmethod
    def script_stamp(run):
        return suite.digest_of(run.command[0]) if os.path.isfile(run.command[0]) else ''

    def parts(self, run):
        seconds, good = self.plain(run)
        return [run] if good and seconds < suite.WHOLE_S else suite.cases_of(run)

    def learn_part(self, run):
        seconds, good = self.plain(run)
        if not good:
            return Learned(run, seconds, False, None)
        program = os.path.join(self.covered, run.program)
        command = tuple(word.replace(self.build + os.sep, self.covered + os.sep) for word in run.command)
        other = run._replace(command=command)
        stamp = '' if self.trusts else suite.digest_of(program) + self.script_stamp(run)
        found = self.kept('reach ' + run.name, stamp, lambda: None if self.trusts else measure(other, self.covered, self.root)[0])
        return Learned(run, seconds, True, found)


PROBE = None  # one in each worker process


def begin(probe):
    global PROBE
    PROBE = probe
    suite.adopt()


def learn_one(run):
    return PROBE.learn(run)


class Map:
    """The runs of some tests, and the lines that each reaches."""

    def __init__(self, probe):
        self.probe = probe
        self.lines = {}    # run -> {source: the lines that it reaches}
        self.could = {}    # source -> the lines that have code
        self.seconds = {}  # run -> its time in the ordinary build
        self.broken = []   # runs that fail without any mutant

    def add(self, runs, jobs):
        """Measures the lines that these tests reach, with `jobs` tests at a time."""
        context = multiprocessing.get_context('fork')
        with concurrent.futures.ProcessPoolExecutor(jobs, context, begin, (self.probe,)) as pool:
            for learned in pool.map(learn_one, runs):
                for part in learned:
                    self.take(part)

    def take(self, learned):
        run = learned.run
        if not learned.good:
            self.broken.append(run.name)
        elif learned.found is not None:
            self.lines[run] = {path: set(ran) for path, (ran, _) in learned.found.items()}
            self.seconds[run] = learned.seconds
            for path, (_, could) in learned.found.items():
                self.could.setdefault(path, set()).update(could)

    def reaching(self, path, line, first):
        """Returns the runs that reach a line: the counts of a statement are at one of its lines,
        `first` or later. An `else` and a table have no count: runs that reach the lines around
        them may detect their mutants."""
        could = self.could.get(path, set())
        at = {next((at for at in range(line, first - 1, -1) if at in could), line)}
        if line not in could:
            at.add(next((at for at in range(line, line + 100) if at in could), line))
        return [run for run, found in self.lines.items() if not at.isdisjoint(found.get(path, ()))]
