# SPDX-License-Identifier: MIT
"""A setup: a server with a limit, how to start it, and what its configuration allows."""
import dataclasses

LATENCY_MS = 25
OVERHEAD_S = 0.002  # of the relay and the server, per response


@dataclasses.dataclass(frozen=True)
class Limit:
    """The limit of a server: `rate` per second in the long run, `burst` in addition at the start,
    `flight` at once (0: any number). `window_s` is the length of its window, if it has one.
    `slack_s` is the extra distance between a client's requests where jitter counts against the
    client."""

    rate: float
    burst: float = 0
    flight: int = 0
    window_s: float = 0
    slack_s: float = 0

    def allowed(self, seconds, is_fresh):
        """Returns the highest number of responses in this time. The burst counts only if the run
        starts fresh."""
        return self.rate * seconds + (self.burst if is_fresh else 0)

    @property
    def spacing_s(self):
        """The time between two requests of a client that knows the limit, with a little tolerance
        for jitter; 0 if only `flight` limits."""
        if self.window_s:
            return (self.window_s + max(0.01 * self.window_s, 0.05)) / (self.rate * self.window_s)
        if self.flight and not self.burst:
            return 0
        return 1.005 / self.rate + self.slack_s


def rate(a_second, burst=0, slack_s=0):
    return Limit(a_second, burst, slack_s=slack_s if burst else max(slack_s, 0.003))


def window(quota, seconds):
    return Limit(quota / seconds, window_s=seconds)


def flight(most, latency_ms):
    return Limit(most / (latency_ms / 1e3 + OVERHEAD_S), 0, most)


@dataclasses.dataclass(frozen=True)
class Server:
    """How to start a server. In files, arguments and environment, these are replaced: @port@,
    @origin@ (the port of the slow responses), @folder@, @services@ (the folder of that name) and
    @latency_ms@."""

    words: tuple
    files: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    needs: tuple = ()      # shell commands that succeed if the server is installed
    modules: tuple = ()    # npm packages


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    server: Server
    limit: Limit
    refused: tuple = (429,)      # statuses that mean "too much"
    latency_ms: int = LATENCY_MS
    ban_s: float = 0             # duration of a ban; 0: none
    # fields that forbid requests for a time; () if the server's fields mean other things
    windows: tuple = ('retry-after', 'ratelimit')
    traits: tuple = ()           # words to choose setups by, and to group them in reports
    short: bool = False          # part of the short form


def check(setups):
    names = [each.name for each in setups]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f'names of setups that are not unique: {sorted(twice)}')
    return setups
