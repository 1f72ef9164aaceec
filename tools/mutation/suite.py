# SPDX-License-Identifier: MIT
"""The tests of Meson, divided into runs, and how their programs are compiled and linked."""
import hashlib
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections import namedtuple

# The suites whose tests run against mutants, quick ones first: in `QUICK`, no test waits for real
# time. SCORES compute for long.
QUICK = ('unit', 'sim', 'fuzz')
SLOW = ('store', 'net', 'share', 'serve', 'engine', 'metrics', 'cli')
SCORES = 'scores'
WHOLE_S = 1.0  # a program that takes longer is run test by test

# One run: a test of Meson's, or one case of its program. `program` is the program that is linked
# again, a path inside the build.
Run = namedtuple('Run', 'name program command env quick')


def read_json(path):
    with open(path, encoding='utf-8') as file:
        return json.load(file)


def without_needs(words):
    """Returns the arguments of a test after "tests/lib/needs PROGRAM". A test whose PROGRAM is
    missing would fail; it is not run."""
    return words[2:] if os.path.basename(words[0]) == 'needs' else words


def tests_of(build, scripts):
    """Returns the tests whose program can be built with a mutant. Scripts that drive a program are
    included only on request."""
    for test in read_json(os.path.join(build, 'meson-info', 'intro-tests.json')):
        suites = {suite.split(':')[-1] for suite in test['suite']}
        if not suites & {*QUICK, *SLOW}:
            continue
        given_words = without_needs(test['cmd'])
        words = [os.path.normpath(os.path.join(build, word)) for word in given_words]
        inside = [word for word in words if word.startswith(build + os.sep) and os.path.splitext(word)[1] == '']
        is_script = bool(inside) and words[0] != inside[0]
        if not inside or (is_script and not scripts):
            continue
        command = [inside[0] if word == inside[0] else given for word, given in zip(words, given_words)]
        # without it: a loop that a busy machine delays would fail its test
        env = {name: value for name, value in test['env'].items() if name != 'WEIR_TEST_WATCHDOG'}
        yield Run(test['name'], os.path.relpath(inside[0], build), tuple(command), tuple(env.items()), bool(suites & set(QUICK)) and SCORES not in suites and not is_script)


def cases_of(run):
    """Returns one run for each case of a program that can list them."""
    if len(run.command) > 1:
        return [run]
    try:
        listed = subprocess.run([*run.command, '--list'], capture_output=True, text=True, timeout=20, check=True)
    except (subprocess.SubprocessError, OSError):
        return [run]
    names = listed.stdout.split()
    return [run._replace(name=f'{run.name}: {name}', command=(*run.command, name)) for name in names] or [run]


def end_children():
    """Ends the processes that a test left behind: this process has adopted them (see `adopt`)."""
    for _ in range(200):
        with open(f'/proc/self/task/{os.getpid()}/children', encoding='ascii') as children:
            pids = children.read().split()
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            return
        time.sleep(0.01)


def adopt():
    """Makes this process the new parent of orphaned descendants."""
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def limits(cpu_s):
    def apply():
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    return apply


Ended = namedtuple('Ended', 'good how seconds text')


def execute(command, env, cwd, cpu_s, wall_s):
    """Runs a test in its own temporary folder, and ends all processes that it started."""
    folder = tempfile.mkdtemp(prefix='wm-')
    began = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, env={**os.environ, **dict(env), 'TMPDIR': folder}, cwd=cwd, stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, start_new_session=True, preexec_fn=limits(cpu_s))
        try:
            status = child.wait(wall_s)
            how = f'exit status {status}' if status >= 0 else signal.Signals(-status).name
        except subprocess.TimeoutExpired:
            status, how = -1, f'no end within {wall_s:.0f} s'
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        seconds = time.monotonic() - began
        end_children()
        out.seek(0)
        text = out.read()[-20000:].decode(errors='replace')
    shutil.rmtree(folder, ignore_errors=True)
    return Ended(status in (0, 77), how, seconds, text)


class Build:
    """How the programs of a build folder are built."""

    def __init__(self, folder):
        self.folder = folder
        self.compiles = {}  # object -> (its source, the command that compiles it)
        for entry in read_json(os.path.join(folder, 'compile_commands.json')):
            words = shlex.split(entry['command'])
            words = words[os.path.basename(words[0]) == 'ccache':]  # without ccache: no mutant is compiled twice
            self.compiles[entry['output']] = (os.path.normpath(os.path.join(folder, entry['file'])), words)
        self.links = {}    # program -> the command that links it
        self.members = {}  # static library -> its objects
        said = subprocess.run(['ninja', '-C', folder, '-t', 'commands'], capture_output=True, text=True, check=True)
        for line in said.stdout.splitlines():
            if ' csrD' in line:
                words = shlex.split(line)
                at = next(at for at, word in enumerate(words) if word.startswith('csrD'))
                self.members[words[at + 1]] = words[at + 2:]
            elif ' -c ' not in line and ' -o ' in line:
                words = shlex.split(line)
                self.links[words[words.index('-o') + 1]] = words

    def sources_of(self, program):
        """Returns the sources whose objects the linker may use for the program."""
        objects = (member for word in self.links.get(program, [])
                   for member in ([word] if word.endswith('.o') else self.members.get(word, [])))
        return {self.compiles[member][0] for member in objects if member in self.compiles}

    def object_of(self, program, source):
        """Returns the object of this source with which the program is linked, or None."""
        for word in self.links[program]:
            for member in [word] if word.endswith('.o') else self.members.get(word, []):
                if self.compiles.get(member, ('',))[0] == source:
                    return member
        return None

    def compile(self, member, text, folder):
        """Compiles this text in place of an object's source; returns (the new object, or None; the
        compiler's messages)."""
        source, words = self.compiles[member]
        name = os.path.join(folder, os.path.basename(source))
        with open(name, 'w', encoding='utf-8') as file:
            file.write(f'#line 1 "{source}"\n{text}')
        made = os.path.join(folder, hashlib.sha256(member.encode()).hexdigest()[:8] + '.o')
        kept, words = [], iter(words)
        for word in words:
            if word in ('-o', '-MF', '-MQ', '-MT'):
                next(words)
            elif word not in ('-MD', '-g', '-Werror') and os.path.normpath(os.path.join(self.folder, word)) != source:
                kept.append(word)
        run = subprocess.run([*kept, '-Werror=incompatible-pointer-types', '-Werror=int-conversion', '-g0', '-iquote',
                              os.path.dirname(source), name, '-o', made], cwd=self.folder, capture_output=True, text=True)
        return (made if run.returncode == 0 else None), run.stderr

    def link(self, program, member, made, folder):
        """Links the program with another object in place of one of its own; returns its path, or
        None."""
        words = list(self.links[program])
        linked = os.path.join(folder, os.path.basename(program))
        words[words.index('-o') + 1] = linked
        if member in words:
            words[words.index(member)] = made
        else:
            # the linker finds it first, so it does not use the object in the library
            words.insert(words.index('-o') + 2, made)
        run = subprocess.run(words, cwd=self.folder, capture_output=True, text=True)
        return linked if run.returncode == 0 else None


def digest_of(path):
    with open(path, 'rb') as file:
        return hashlib.sha256(file.read()).hexdigest()[:16]
