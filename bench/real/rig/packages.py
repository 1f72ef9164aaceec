# SPDX-License-Identifier: MIT
"""Installs npm packages, in exact versions, into the build folder."""
import os
import shutil
import subprocess

from . import programs

FILES = ('package.json', 'package-lock.json')
INSTALL = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--silent']
INSTALL_S = 600


def is_current(folder):
    """Returns whether the packages are up to date: the file `installed` is a copy of the installed
    lock file, written last."""
    try:
        with open(f'{programs.SERVICES}/{FILES[1]}', 'rb') as wanted, open(f'{folder}/installed', 'rb') as present:
            return wanted.read() == present.read()
    except OSError:
        return False


def install(folder):
    """Returns the folder of the modules, or None if npm or its registry is not available."""
    if not is_current(folder):
        os.makedirs(folder, exist_ok=True)
        for name in FILES:
            shutil.copyfile(f'{programs.SERVICES}/{name}', f'{folder}/{name}')
        if shutil.which('npm') is None:
            return None
        try:
            done = subprocess.run(INSTALL, cwd=folder, stdin=subprocess.DEVNULL, timeout=INSTALL_S, check=False)
        except subprocess.TimeoutExpired:
            return None
        if done.returncode != 0:
            return None
        shutil.copyfile(f'{folder}/{FILES[1]}', f'{folder}/installed')
    return folder
