# SPDX-License-Identifier: MIT
"""A cache of the verdicts of guards, so that only changed files are checked again.

A verdict is stored with a digest of everything that it depends on (the tool's version, its
settings, each file that it read), in a file of the build folder. With another digest, or another
build folder, the verdict is ignored.
"""
import hashlib
import json
import os
import tempfile


class Digests:
    """Digests of files; each file is read once."""

    def __init__(self):
        self._known = {}

    def of_file(self, path):
        if path not in self._known:
            with open(path, 'rb') as file:
                self._known[path] = hashlib.sha256(file.read()).hexdigest()
        return self._known[path]


def of_text(*parts):
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Remembered:
    """Cached values by name and digest."""

    def __init__(self, build, guard):
        self._path = os.path.join(build, 'tests', 'guards', f'{guard}.json')
        self._new = {}
        try:
            with open(self._path, encoding='utf-8') as file:
                self._old = json.load(file)
        except (OSError, ValueError):
            self._old = {}

    def get(self, name, digest):
        """Returns the value stored under this name, or None if its digest was another."""
        then, value = self._new.get(name) or self._old.get(name) or (None, None)
        if digest is None or then != digest:
            return None
        self._new[name] = (digest, value)
        return value

    def keep(self, name, digest, value):
        if digest is not None:
            self._new[name] = (digest, value)

    def save(self):
        """Saves the values that were read or stored since this object was made, and drops the rest.
        """
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        with tempfile.NamedTemporaryFile('w', dir=os.path.dirname(self._path), delete=False) as file:
            json.dump(self._new, file)
        os.replace(file.name, self._path)
