# SPDX-License-Identifier: MIT
"""Puts one mutant after the other into a room, and runs the tests that reach it."""
import concurrent.futures
import multiprocessing
import os
import shutil
import signal
import tempfile
from collections import Counter, namedtuple

import faults
import suite

LINK_S = 0.2  # approximate time to link a program

# `how`: 'refused' by the compiler, 'same' machine code as without it, 'killed' (`by` one run), or
# 'survived' (`by`: the runs that reached it).
Outcome = namedtuple('Outcome', 'fault how by')


class Trial:
    """Tries mutants in a worker process."""

    def __init__(self, root, build, reach):
        self.root, self.build, self.reach = root, build, reach
        self.plain = {}  # object -> its digest without a mutant
        self.texts = {}  # source -> its text

    def text(self, path):
        if path not in self.texts:
            with open(os.path.join(self.root, path), encoding='utf-8') as file:
                self.texts[path] = file.read()
        return self.texts[path]

    def compiled(self, member, text, fault, folder):
        """Returns the object with the mutant; or None and the reason why there is nothing to try.
        """
        if member not in self.plain:
            made, said = self.build.compile(member, text, folder)
            if made is None:
                raise SystemExit(f'{fault.path} does not compile as it is:\n{said}')
            self.plain[member] = suite.digest_of(made)
        made, _ = self.build.compile(member, faults.faulty(text, fault), folder)
        if made is None:
            return None, 'refused'
        return made, 'same' if suite.digest_of(made) == self.plain[member] else None

    def run(self, fault, runs):
        """Runs the tests until one fails."""
        folder = tempfile.mkdtemp(prefix='wm-')
        try:
            return self.ask(fault, runs, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def ask(self, fault, runs, folder):
        text, source = self.text(fault.path), os.path.join(self.root, fault.path)
        usual = next((member for member, (path, _) in self.build.compiles.items() if path == source), None)
        made, why = self.compiled(usual, text, fault, folder)
        if why is not None:
            return Outcome(fault, why, None)
        objects, linked = {usual: made}, {}
        for run in runs:
            member = self.build.object_of(run.program, source)
            if member is None:
                continue
            if member not in objects:
                objects[member], _ = self.compiled(member, text, fault, folder)
            if run.program not in linked:
                linked[run.program] = self.build.link(run.program, member, objects[member], folder)
            if linked[run.program] is None:
                return Outcome(fault, 'refused', None)  # refused by the linker
            failure = self.failure(run, linked[run.program])
            if failure is not None:
                return Outcome(fault, 'killed', f'{run.name}: {failure}')
        return Outcome(fault, 'survived', [run.name for run in runs])

    def failure(self, run, program):
        """Returns how a run fails with this program, or None. A run that waits for real time must
        fail twice, because machines are busy."""
        original = os.path.join(self.build.folder, run.program)
        command = [program if word == original else word for word in run.command]
        seconds = self.reach.seconds[run]
        for _ in range(1 if run.quick else 2):
            ended = suite.execute(command, run.env, self.build.folder, int(4 + 4 * seconds), 20 + 5 * seconds)
            if ended.good:
                return None
        return ended.how


TRIAL = None  # one in each worker process


def begin(trial):
    global TRIAL
    TRIAL = trial
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends after it
    suite.adopt()


def try_one(fault, runs):
    return TRIAL.run(fault, runs)


class Room:
    """The mutants of a room, tried one after the other, and their results."""

    def __init__(self, trial, jobs, told):
        self.trial, self.jobs, self.told = trial, jobs, told
        self.kills = Counter()  # (source, run) -> number of mutants that it killed

    def order(self, fault, quick):
        """Returns the runs that reach a mutant; runs that killed most mutants of its file for their
        time come first."""
        runs = [run for run in self.trial.reach.reaching(fault.path, fault.line, fault.first) if run.quick == quick]
        cost = self.trial.reach.seconds
        return sorted(runs, key=lambda run: (-(1 + self.kills[fault.path, run.name]) / (cost[run] + LINK_S), run.name))

    def go(self, drawn, count, quick=True):
        """Tries mutants from `drawn` until `count` of them gave a result, or until it is
        interrupted. Returns their outcomes."""
        context = multiprocessing.get_context('fork')
        outcomes, drawn, running = [], iter(drawn), set()
        with concurrent.futures.ProcessPoolExecutor(self.jobs, context, begin, (self.trial,)) as pool:
            try:
                while self.fill(pool, running, drawn, count - len(outcomes), quick):
                    done, running = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                    outcomes += [outcome for outcome in map(self.note, done) if outcome is not None]
            except KeyboardInterrupt:
                pool.shutdown(wait=True, cancel_futures=True)
        return outcomes

    def fill(self, pool, running, drawn, wanted, quick):
        """Keeps as many mutants in progress as are tried at a time. Returns False if none is in
        progress."""
        while len(running) < min(self.jobs, wanted):
            fault = next(drawn, None)
            if fault is None:
                break
            running.add(pool.submit(try_one, fault, self.order(fault, quick)))
        return bool(running)

    def note(self, future):
        """Returns the outcome, if the mutant was worth trying."""
        outcome = future.result()
        if outcome.how == 'killed':
            self.kills[outcome.fault.path, outcome.by.rsplit(': ', 1)[0]] += 1
        if outcome.how not in ('killed', 'survived'):
            return None
        self.told(outcome)
        return outcome
