# SPDX-License-Identifier: MIT
"""Made-up programs as streams for `fdr replay`: threads that call regions, in time that the test sets. And what the
tests that read them share."""
import os
import random
import shutil
import sys

import evt_stream

fdr = os.environ["FDR_BUILD"] + "/bin/fdr"
if not os.path.exists(fdr):
    print("skipped: no fdr command in this build")
    sys.exit(77)
failed = []


def check(good, what, *more):
    print("ok:" if good else "FAIL:", what, *(more if not good else ()))
    if not good:
        failed.append(what)


def end(work):
    """The folder stays if something failed."""
    if not failed:
        shutil.rmtree(work)
    sys.exit(bool(failed))


class Thread:
    """One thread. `names` is shared: all threads of a program number the regions alike."""

    def __init__(self, names, seed=0):
        self.names, self.random, self.now, self.words, self.times = names, random.Random(seed), 0, [], []

    def _event(self, kind, name):
        if name not in self.names:
            self.names.append(name)
        self.words.append(kind | self.names.index(name))
        self.times.append(self.now)

    def enter(self, name):
        self._event(evt_stream.ENTER, name)

    def leave(self, name):
        self._event(evt_stream.LEAVE, name)

    def work(self, ns):
        self.now += max(1, int(ns))

    def call(self, name, ns):
        self.enter(name)
        self.work(ns)
        self.leave(name)

    def around(self, ns, spread=0.1):
        """A time near `ns`: no two calls of a real program take the same."""
        return ns * (1 + spread * (2 * self.random.random() - 1))

    def bytes(self):
        gaps = [now - before for now, before in zip(self.times, [0, *self.times])]
        return evt_stream.stream(self.words, gaps, [n.encode() for n in self.names])


def barrier(threads, name):
    """All wait in `name` for the last of them."""
    last = max(t.now for t in threads)
    for t in threads:
        t.call(name, last + 200 - t.now)
