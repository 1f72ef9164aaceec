# SPDX-License-Identifier: MIT
"""What a setup is: a server with a limit, how to start it, and what its configuration allows."""
import dataclasses

LATENCY_MS = 25
OVERHEAD_S = 0.002  # of the relay and the server, in each answer


@dataclasses.dataclass(frozen=True)
class Limit:
    """What a server allows: `rate` a second in the long run, `burst` besides at first, `flight` at once (0: any number).
    `window_s` is the length of its window, if it has one. `slack_s` is what a client must keep away from it besides, for
    jitter counts against it."""

    rate: float
    burst: float = 0
    flight: int = 0
    window_s: float = 0
    slack_s: float = 0

    def allowed(self, seconds, is_fresh):
        """The most answers that can be had. A burst counts where the run is fresh."""
        return self.rate * seconds + (self.burst if is_fresh else 0)

    @property
    def spacing_s(self):
        """Between two requests of a client that knows the limit and leaves a little for jitter; 0 where only `flight` counts."""
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
    """How to start a server. In files, words and environment, @port@, @origin@ (the port of the slow answers), @folder@,
    @services@ (the folder of that name) and @latency_ms@ are replaced."""

    words: tuple
    files: dict = dataclasses.field(default_factory=dict)
    env: dict = dataclasses.field(default_factory=dict)
    needs: tuple = ()      # commands of a shell that succeed where it is installed
    modules: tuple = ()    # packages of npm


@dataclasses.dataclass(frozen=True)
class Setup:
    name: str
    server: Server
    limit: Limit
    refused: tuple = (429,)      # statuses that mean "too much"
    latency_ms: int = LATENCY_MS
    ban_s: float = 0             # refusals go on for so long
    windows: tuple = ('retry-after', 'ratelimit')  # fields that name a time in which nothing may be sent; () if they mean other things
    traits: tuple = ()           # words to choose setups by, and to group them in reports
    short: bool = False          # is part of the short form


def check(setups):
    names = [each.name for each in setups]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f'names of setups that are not unique: {sorted(twice)}')
    return setups
