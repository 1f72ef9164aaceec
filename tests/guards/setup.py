#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/setup installs the packages of its group only, asks if it runs on a terminal, and starts no
daemon. It runs here on a machine made of stubs, where almost everything is missing."""
import contextlib
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import guard

REAL = 'sh env grep sed tr fold cat ls rm chmod mkdir ln cp touch sleep'.split()
BUILD = 'gcc nm ar meson ninja pkg-config python3'.split()  # programs that the probes of the group `build` look for
STUBS = {
    'id': 'echo 0',
    'apt-cache': ':',
    'apt-get': f'''
case " $* " in *" install "*) ;; *) exit 0 ;; esac
cp "$WEIR_POLICY_RC_D" "$HERE/during" 2>/dev/null
if [ -n "$HANG" ]; then : >"$HERE/hangs"; exec sleep 60; fi
if [ -n "$BREAK" ]; then exit 100; fi
for word; do case $word in -*|install) ;; *) echo "$word" >>"$HERE/installed" ;; esac; done
for name in {' '.join(BUILD)} stress-ng; do ln -sf "$HERE/bin/true" "$HERE/bin/$name"; done''',
    'dpkg-query': 'echo old; cat "$HERE/installed" 2>/dev/null; true',
    'dpkg': 'echo /lib/systemd/system/$2.service; echo /lib/systemd/system/$2@.service; echo /usr/share/doc/$2',
    'systemctl': 'echo "$*" >>"$HERE/systemctl"',
    'true': 'exit 0',
}
LEFT = '#!/bin/sh\n# By tools/setup of weir, while it installs packages.\nexit 101\n'
DAEMONS_AND_MORE = 'postgresql redis-server nginx haproxy caddy prometheus chromium nodejs npm zsh fish tmux clang libcmocka-dev'


class Machine:
    def __init__(self, root, folder):
        self.tool, self.folder, self.policy = os.path.join(root, 'tools', 'setup'), folder, f'{folder}/policy-rc.d'
        guard.write_tree(folder, {f'bin/{name}': f'#!/bin/sh\n{text}\n' for name, text in STUBS.items()})
        for name in STUBS:
            os.chmod(f'{folder}/bin/{name}', 0o755)
        for name in REAL:
            os.symlink(shutil.which(name), f'{folder}/bin/{name}')

    @staticmethod
    def heed_signals():
        """Restores the default signal handlers. Programs started in the background or by nohup
        ignore some signals, and a shell cannot trap ignored signals."""
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)

    def begin(self, *words, **how):
        environment = {'PATH': f'{self.folder}/bin', 'HERE': self.folder, 'WEIR_POLICY_RC_D': self.policy, 'HANG': '', 'BREAK': '',
                       **how.pop('variables', {})}
        return subprocess.Popen(['/bin/sh', self.tool, *words], env=environment, text=True, stdout=subprocess.PIPE,
                                preexec_fn=self.heed_signals, **{'stderr': subprocess.STDOUT, 'stdin': subprocess.DEVNULL, **how})

    def run(self, *words, **how):
        """Returns (exit status, output)."""
        process = self.begin(*words, **how)
        text = process.communicate(timeout=60)[0]
        return process.returncode, text

    def answers(self, answer, *words):
        """Runs as run() does, but on a terminal where `answer` is typed; returns the exit status.
        """
        ours, theirs = pty.openpty()
        try:
            os.write(ours, answer.encode())
            status, _ = self.run(*words, stdin=theirs, stderr=theirs)
            return status
        finally:
            os.close(ours)
            os.close(theirs)

    def read(self, name):
        with contextlib.suppress(OSError):
            return guard.read(self.folder, name)
        return ''


def setup_installs_the_packages_of_its_group_only(machine):
    status, text = machine.run('build')
    installed = machine.read('installed').split()
    listed = machine.run('--list', 'build')[1].split()
    assert status == 0, text
    assert installed == [name for name in listed if name in installed] and len(installed) >= len(listed) - 1, installed
    assert set(installed) <= set(text.split()), text
    assert len(listed) <= 25 and not set(listed) & set(DAEMONS_AND_MORE.split()), listed


def setup_does_nothing_when_nothing_is_missing(machine):
    machine.run('build')
    os.unlink(f'{machine.folder}/installed')
    assert machine.run('build') == (0, '') and machine.read('installed') == ''


def setup_installs_the_group_build_by_default(machine):
    machine.run()
    assert 'meson\n' in machine.read('installed') and 'postgresql\n' not in machine.read('installed')


def daemons_are_kept_from_starting_while_packages_are_installed(machine):
    machine.run('build')
    assert machine.read('during') == LEFT and not os.path.exists(machine.policy)


def existing_policy_rc_d_is_kept(machine):
    guard.write_tree(machine.folder, {'policy-rc.d': '#!/bin/sh\nexit 0\n'})
    machine.run('build')
    assert machine.read('during') == machine.read('policy-rc.d') == '#!/bin/sh\nexit 0\n'


def policy_rc_d_of_a_killed_run_is_removed(machine):
    guard.write_tree(machine.folder, {'policy-rc.d': LEFT})
    machine.run('build')
    assert machine.read('during') == LEFT and not os.path.exists(machine.policy)


def policy_rc_d_is_removed_when_the_installation_fails(machine):
    status, _ = machine.run('build', variables={'BREAK': '1'})
    assert status != 0 and machine.read('during') == LEFT and not os.path.exists(machine.policy)


def policy_rc_d_is_removed_when_setup_is_interrupted(machine):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process = machine.begin('build', variables={'HANG': '1'}, start_new_session=True)
        while not os.path.exists(f'{machine.folder}/hangs') and process.poll() is None:
            time.sleep(0.01)
        os.killpg(process.pid, number)
        process.communicate(timeout=60)
        assert process.returncode != 0 and machine.read('during') == LEFT and not os.path.exists(machine.policy), number
        os.unlink(f'{machine.folder}/hangs')


def only_systemd_units_of_new_packages_are_disabled(machine):
    guard.write_tree(machine.folder, {'installed': 'gcc\n'})
    machine.run('build')
    disabled = machine.read('systemctl')
    assert 'disable meson.service\n' in disabled and ' gcc.' not in disabled and ' old.' not in disabled, disabled
    assert '@' not in disabled, disabled


def setup_asks_on_a_terminal(machine):
    assert machine.answers('n\n', 'build') == 1 and machine.read('installed') == ''
    assert machine.answers('\n', 'build') == 0 and 'meson\n' in machine.read('installed')


def setup_does_not_ask_with_option_y(machine):
    assert machine.answers('n\n', '-y', 'build') == 0 and 'meson\n' in machine.read('installed')


def unknown_group_is_refused(machine):
    status, text = machine.run('tests')
    assert status == 2 and 'build, test, steady, coverage, bench and real' in text


def setup_groups_contain_each_other_as_documented(machine):
    groups = {name: set(machine.run('--list', name)[1].split()) for name in ('build', 'test', 'steady', 'coverage', 'bench')}
    assert groups['build'] < groups['test'] < groups['steady'] and groups['test'] < groups['coverage'], groups
    assert groups['build'] < groups['bench'] and not groups['test'] < groups['bench'], groups


CASES = (setup_installs_the_packages_of_its_group_only, setup_does_nothing_when_nothing_is_missing, setup_installs_the_group_build_by_default,
         daemons_are_kept_from_starting_while_packages_are_installed,
         existing_policy_rc_d_is_kept, policy_rc_d_of_a_killed_run_is_removed, policy_rc_d_is_removed_when_the_installation_fails,
         policy_rc_d_is_removed_when_setup_is_interrupted, only_systemd_units_of_new_packages_are_disabled, setup_asks_on_a_terminal, setup_does_not_ask_with_option_y,
         unknown_group_is_refused, setup_groups_contain_each_other_as_documented)


def main(root):
    status = 0
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Machine(root, folder))
            except AssertionError as failure:
                print(f'{case.__name__}: {failure or "not so"}')
                status = 1
    sys.exit(status)


if __name__ == '__main__':
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores SIGHUP, and a shell cannot trap an ignored signal
    main(sys.argv[1])
