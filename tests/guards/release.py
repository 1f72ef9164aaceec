#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/release refuses a tree that is not ready, and leaves it unchanged if the tarball is broken.
It runs here in a small repository, with a meson that packs only a Makefile."""
import os
import shutil
import subprocess
import sys
import tempfile

MESON = '''#!/bin/sh
case $1 in
setup) mkdir -p "$2" ;;
dist)
    version=$(tools/version)
    folder=$3/meson-dist
    mkdir -p "$folder/weir-$version"
    printf 'check:\\n\\t@test ! -e %s/is-broken\\n' "$PWD" >"$folder/weir-$version/Makefile"
    tar -C "$folder" -cJf "$folder/weir-$version.tar.xz" "weir-$version" ;;
esac
'''


class Tree:
    def __init__(self, root, folder):
        self.folder = os.path.join(folder, 'tree')
        for name in ('tools/release', 'tools/version', 'include/weir/version.h'):
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy(os.path.join(root, name), path)
        self.write('CHANGELOG.md', '# Changelog\n\n## [9.8.7] - unreleased\n\n- x\n')
        self.write('.gitignore', 'build/\nis-broken\n')
        stubs = os.path.join(folder, 'stubs')
        os.mkdir(stubs)
        with open(os.path.join(stubs, 'meson'), 'w', encoding='ascii') as file:
            file.write(MESON)
        os.chmod(os.path.join(stubs, 'meson'), 0o755)
        self.environment = {**os.environ, 'PATH': stubs + ':' + os.environ['PATH'], 'GIT_CONFIG_GLOBAL': '/dev/null'}
        for what in ('AUTHOR', 'COMMITTER'):
            self.environment |= {f'GIT_{what}_NAME': 'a', f'GIT_{what}_EMAIL': 'a@example.org'}
        self.git('init', '--quiet', '--initial-branch', 'main')
        self.commit()

    def write(self, name, text):
        with open(os.path.join(self.folder, name), 'w', encoding='utf-8') as file:
            file.write(text)

    def run(self, *words):
        return subprocess.run(words, cwd=self.folder, env=self.environment, capture_output=True, text=True)

    def git(self, *words):
        return self.run('git', *words).stdout.strip()

    def commit(self):
        self.git('add', '--all')
        self.git('commit', '--quiet', '--message', 'x')

    def release(self, *words):
        run = self.run('tools/release', *words)
        return run.returncode, run.stdout + run.stderr

    def state(self):
        return self.git('rev-parse', 'HEAD'), self.git('status', '--porcelain'), self.git('tag'), self.run('tools/version').stdout


def refuses(tree, words, because):
    before = tree.state()
    status, said = tree.release(*words)
    if status == 0 or because not in said or tree.state() != before:
        yield f'release {words}: {status}, "{said}"; wanted "{because}" and nothing changed'


def findings(root):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(root, folder)
        yield from refuses(tree, [], 'usage')
        yield from refuses(tree, ['9.8'], 'usage')
        yield from refuses(tree, ['9.8.6'], 'no section "## [9.8.6] - unreleased"')
        tree.write('new', '')
        yield from refuses(tree, ['9.8.7'], 'changes that are not committed')
        os.remove(os.path.join(tree.folder, 'new'))
        tree.git('switch', '--quiet', '--create', 'other')
        yield from refuses(tree, ['9.8.7'], 'not the branch main')
        tree.git('switch', '--quiet', 'main')
        tree.write('is-broken', '')
        yield from refuses(tree, ['9.8.7'], 'CalledProcessError')
        os.remove(os.path.join(tree.folder, 'is-broken'))
        status, said = tree.release('9.8.7')
        tags, version, changes = tree.git('tag'), tree.run('tools/version').stdout, tree.git('show', 'HEAD')
        if status != 0 or tags != 'v9.8.7' or version != '9.8.7\n' or '-## [9.8.7] - unreleased' not in changes or \
                not os.path.exists(os.path.join(tree.folder, 'build/weir-9.8.7.tar.xz')):
            yield f'release: {status}, tags {tags}, version {version}: {said}'
        yield from refuses(tree, ['9.8.7'], 'is there already')


if __name__ == '__main__':
    found = list(findings(sys.argv[1]))
    print('\n'.join(found))
    sys.exit(1 if found else 0)
