# SPDX-License-Identifier: MIT
"""Runs the clients against one setup, one after the other, in its own process. All sessions start
each run at the same time."""
import asyncio
import contextlib
import dataclasses
import os
import shutil
import time
import traceback

from . import clients, judge, programs, relay

FIRST_REQUEST_S = 60
MEET_S = 900
STOP_S = 20
LOOK_S = 0.25


@dataclasses.dataclass(frozen=True)
class Leg:
    """A run of a client: `cold`, `warm` (with the state of the cold run) or `halfway` (stopped and
    restarted in the middle)."""

    client: str
    phase: str

    @property
    def name(self):
        return f'{self.client} {self.phase}'.strip()


def legs(names, phases):
    return [Leg(name, phase) for name in names for phase in (phases if clients.ALL[name].remembers else [''])]


async def late_by():
    """Measures until it is cancelled how late this machine wakes a process; returns the 95th
    percentile in ms."""
    late = [0]
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            due = time.monotonic() + LOOK_S
            await asyncio.sleep(LOOK_S)
            late.append(time.monotonic() - due)
    return sorted(late)[len(late) * 95 // 100] * 1e3


class Session:
    def __init__(self, setup, args, folder, modules):
        self.setup, self.modules, self.is_realtime = setup, modules, args.realtime
        self.seconds, self.weir = args.seconds, os.path.abspath(args.weir)
        self.folder = f'{folder}/{setup.name}'
        self.has_met = False

    def run(self, all_legs, barrier, queue):
        programs.die_with_parent()
        if self.is_realtime:
            programs.hurry_self()
        asyncio.run(self._all(all_legs, barrier, queue))

    async def _all(self, all_legs, barrier, queue):
        os.makedirs(self.folder)
        self.relay = relay.Relay()
        serving = asyncio.create_task(self.relay.serve())
        for leg in all_legs:
            result = {'setup': self.setup.name, 'client': leg.client, 'phase': leg.phase}
            try:
                result.update(await self._leg(leg, barrier))
            except Exception:  # pylint: disable=broad-except  # told beside the others' results
                result['error'] = traceback.format_exc(limit=-1).strip().splitlines()[-1]
                if not self.has_met:
                    await self._meet(barrier)
            queue.put(result)
        serving.cancel()

    async def _meet(self, barrier):
        self.has_met = True
        await asyncio.to_thread(barrier.wait, MEET_S)

    async def _leg(self, leg, barrier):
        self.has_met = False
        origin, server = await relay.serve_slowly(self.setup.latency_ms / 1e3)
        try:
            running = programs.Running(self.setup.server, f'{self.folder}/server', origin, self.setup.latency_ms, self.modules)
            await asyncio.to_thread(running.start)
            try:
                self.relay.lead_to(running.port, self.setup)
                await self._meet(barrier)
                if self.is_realtime:
                    running.hurry()
                result = await self._drive(leg)
                if running.problem():
                    result['error'] = running.problem()
                return result
            finally:
                await asyncio.to_thread(running.stop)
        finally:
            server.close()

    async def _drive(self, leg):
        """Starts the client, waits until its time is over, stops it, and returns the judge's
        result."""
        client = clients.ALL[leg.client]
        folder = f'{self.folder}/{leg.client}'
        if leg.phase != 'warm':
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
        words = client.words(clients.Run(self.weir, folder, self.relay.port, self.seconds, self.setup))
        parts = 2 if leg.phase == 'halfway' else 1
        began_at, stopped_early, lateness = None, False, asyncio.create_task(late_by())
        for part in range(1, parts + 1):
            process = programs.start(words, folder, {'MODULES': self.modules or ''})
            if self.is_realtime:
                programs.hurry(process)
            try:
                if began_at is None:
                    began_at = await self._begin(process)
                stopped_early |= await self._until(began_at + self.seconds * part / parts, process)
                ended_at = time.time()
            finally:
                await asyncio.to_thread(programs.stop, process, client.stop, STOP_S)
        self.relay.hang_up()
        lateness.cancel()
        result = judge.judge(list(self.relay.requests), self.setup, began_at, min(self.seconds, ended_at - began_at))
        result['late_ms'] = await lateness
        if leg.client == 'told':  # this client reads no response fields
            result['offences'] = 0
        if stopped_early:
            result['error'] = f'{leg.client} ended by itself with status {process.returncode}'
        return result

    async def _begin(self, process):
        """Returns the time of the first request."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.relay.has_begun.wait(), FIRST_REQUEST_S)
            return self.relay.requests[0].sent_at
        raise RuntimeError(f'no request came (status {process.poll()})')

    @staticmethod
    async def _until(at, process):
        """Waits until `at`; returns True at once if the client ends before."""
        while time.time() < at:
            if process.poll() is not None:
                return True
            await asyncio.sleep(min(0.2, max(0, at - time.time())))
        return False
