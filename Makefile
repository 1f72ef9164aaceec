# The front door. tools/setup fetches what is missing and Meson builds; there is no build logic here.
#
#   make            build/weir, and libweir and libweir-http, shared and static
#   make demo       crawls a small web of good and bad hosts on this machine, in about a minute
#   make crawl      crawls real sites: make crawl SEEDS="https://example.org"; OPTIONS are further words for weir crawl
#   make install    PREFIX=/usr/local DESTDIR=; make uninstall removes what it has put there
#   make check      unit and sim suites and the guards, in less than a minute: before each commit
#   make test       every suite, in one ordinary build; TESTS are further words for meson test, such as names of tests
#   make steady     every suite RUNS (20) times, every second time on a busy machine
#   make asan       unit, sim, net, engine, store, serve and fuzz suites under AddressSanitizer and UndefinedBehaviorSanitizer (clang)
#   make tsan       the same under ThreadSanitizer, but for those that drive the whole program
#   make fuzz       every parser for FUZZ_SECONDS (60) against made-up input (clang)
#   make sim-long   the laws of pacing in 20 000 random worlds instead of 400, and whole crawls in 20 000 instead of 300
#   make store-long the state file survives 500 kills instead of 25
#   make crawl-long a crawl survives 300 kills instead of 26; 100 hosts at a second each, Crawl-delay 5
#   make cluster-long four processes share a crawl of 200 hosts for seven minutes, while they are killed, stopped and started
#   make soak       crawls with faults for SOAK_SECONDS (86400): does anything grow?
#   make coverage   which lines the tests reach; make fuzz-coverage which ones the corpora of the fuzz targets
#   make mutate     puts one-line faults into a room and tells which ones no test notices: make mutate ROOM=core/limit;
#                   OPTIONS are further words for tools/mutate
#   make bench      the hot paths on this machine; make bench-peers adds others' libraries; make bench-fetch what HTTP
#                   costs behind a gate, make bench-crawl what a page costs beside other crawlers, make bench-polite
#                   whether thousands of hosts are each asked on time, make bench-attacks what closed
#                   attacks get, make bench-resume how soon a large crawl goes on,
#                   make bench-serve what it costs to ask weir serve, beside nginx and Redis, make bench-share what
#                   it costs to share a limit through Redis, make bench-share-outage what callers notice when
#                   Redis is killed, make bench-share-fetch what it costs to share a host's pace,
#                   make bench-cluster to share a crawl on PostgreSQL
#   make real      weir against real limiters, four minutes each, cold and warm: REAL="nginx-10 github" chooses setups by name or
#                   trait, REAL_SECONDS=60 how long, REAL_CLIENTS="weir told scrapy" who; bench/real/README.md says more
#   make elsewhere  the demo and every suite on Debian 13 (MACHINE=bookworm: 12) in a chroot, as root; MACHINE=arm64, i386, s390x, musl
#                   builds for that machine and runs the tests that need no server
#   make plots      the pictures of docs/guide
#   make format     lay out the code
#   make hooks      run make check before each commit
#   make release    VERSION=X.Y.Z: makes tarball and tag (RELEASING.md)
#   make clean
#   make help       prints this
#
# B is the build folder, FLAGS are further words for `meson setup`: make test B=/tmp/b FLAGS=--werror

B = build
FLAGS =
PREFIX = /usr/local
SUITES = --suite unit --suite sim --suite net --suite engine --suite store --suite serve --suite share --suite fuzz
FUZZ_SECONDS = 60
MACHINE = trixie
RUNS = 20
SOAK_SECONDS = 86400
REAL =
REAL_SECONDS = 240
REAL_CLIENTS = weir
# So many for each processor: they mostly wait (tests/meson.build says in which order).
AT_ONCE = 7
RUN = meson test --print-errorlogs --num-processes $$(($(AT_ONCE) * $$(nproc)))

all: $(B)/build.ninja
	@ninja -C $(B)

$(B)/build.ninja: | setup
	@meson setup $(B) $(FLAGS)

setup:
	@tools/setup build

setup-test:
	@tools/setup test

setup-real:
	@tools/setup real

setup-bench:
	@tools/setup bench

# A build that was set up where what tests need was missing has its tests from here on.
tests: setup-test $(B)/build.ninja
	@grep -q '"name"' $(B)/meson-info/intro-tests.json || meson setup --reconfigure $(B) -Dtests=enabled
	@ninja -C $(B)

check: tests
	@$(RUN) -C $(B) --no-rebuild --suite unit --suite sim --suite guards

test: tests
	@status=0; $(RUN) -C $(B) --no-rebuild $(TESTS) || status=$$?; tools/skipped $(B); exit $$status

steady: tests
	@tools/setup steady
	@tools/steady $(RUNS)

demo: all
	@ninja -C $(B) demo/demo_web
	@demo/run $(B)/weir $(B)/demo/demo_web

# Words of the shell, but not its patterns: URLs have & and ? in them.
export SEEDS
crawl: all
	@test -n "$$SEEDS" || { echo 'make crawl: of what? make crawl SEEDS="https://example.org"' >&2; exit 2; }
	@set -f; $(B)/weir crawl $(OPTIONS) $$SEEDS

# What `make asan` and `make tsan` do with their builds; `tests` makes them only.
WITH = sanitized

# Any report of a sanitizer ends the test, and a slow program is given more time and fewer worlds.
sanitized: AT_ONCE = 5
sanitized: tests
	@export WEIR_TEST_LAW_SEEDS=$${WEIR_TEST_LAW_SEEDS:-100} WEIR_TEST_CRAWL_SEEDS=$${WEIR_TEST_CRAWL_SEEDS:-75} \
		UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=$(CURDIR)/tests/tsan.supp; \
		$(RUN) -C $(B) --no-rebuild --timeout-multiplier 5 $(SUITES)

# By clang: another compiler sees other things, and its sanitizers more (numbers that no integer can hold).
asan:
	@CC=clang $(MAKE) $(WITH) B=$(B)-asan \
		FLAGS="$(FLAGS) -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fno-sanitize-recover=all"

# Without those that drive the whole program, which tests in C have shown thread by thread, and without those that have
# one thread; they take minutes.
tsan:
	@$(MAKE) $(WITH) B=$(B)-tsan FLAGS="$(FLAGS) -Db_sanitize=thread" SUITES="$(SUITES) --no-suite program --no-suite pure"

# FUZZ are the targets, all of them without it: make fuzz FUZZ=url FUZZ_SECONDS=600
fuzz:
	@CC=clang $(MAKE) tests B=$(B)-fuzz FLAGS="$(FLAGS) -Dfuzz=true -Db_sanitize=address,undefined"
	@tests/fuzz/run $(B)-fuzz $(FUZZ_SECONDS) $(FUZZ)

# CORPORA is a folder with one for each target, as a long run leaves it: make fuzz-coverage CORPORA=/tmp/corpora
fuzz-coverage:
	@tools/setup coverage
	@$(MAKE) tests B=$(B)-fuzz-coverage FLAGS="$(FLAGS) -Db_coverage=true"
	@tests/fuzz/cover $(B)-fuzz-coverage $(CORPORA)

sim-long: tests
	@WEIR_TEST_LAW_SEEDS=$${WEIR_TEST_LAW_SEEDS:-20000} $(B)/tests/sim/test_sim_laws
	@WEIR_TEST_CRAWL_SEEDS=$${WEIR_TEST_CRAWL_SEEDS:-20000} $(B)/tests/sim/test_sim_crawl

store-long: tests
	@WEIR_TEST_KILLS=$${WEIR_TEST_KILLS:-500} $(B)/tests/store/test_store_kill

crawl-long: tests
	@WEIR_TEST_KILLS=$${WEIR_TEST_KILLS:-300} $(B)/tests/engine/test_engine_kill
	@WEIR_TEST_CRAWL_HOSTS=100 WEIR_TEST_CRAWL_INTERVAL_MS=1000 WEIR_TEST_CRAWL_DELAY_MS=5000 $(B)/tests/engine/test_engine_pace

cluster-long: tests
	@tests/e2e/test_cluster.py $(B)/weir $${WEIR_TEST_CLUSTER:-200 240 180}

soak: all
	@ninja -C $(B) demo/demo_web
	@tests/soak/run $(B)/weir $(B)/demo/demo_web $(SOAK_SECONDS)

real: setup-real all
	@bench/real/run $(B)/weir --build $(B)/real --seconds $(REAL_SECONDS) --names "$(REAL)" --clients "$(REAL_CLIENTS)"

elsewhere:
	@tools/elsewhere $(MACHINE)

# Atomic counters: without them, threads leave branches that were taken a negative number of times.
coverage:
	@tools/setup coverage
	@$(MAKE) tests B=$(B)-coverage FLAGS="$(FLAGS) -Db_coverage=true -Dc_args=-fprofile-update=atomic"
	@$(RUN) -C $(B)-coverage --no-suite guards
	@gcovr --root . --filter src/ --exclude-throw-branches --print-summary $(B)-coverage

mutate: tests
	@tools/mutate --build $(B) $(OPTIONS) $(ROOM)

bench: all
	@ninja -C $(B) bench

bench-peers: setup-bench all
	@ninja -C $(B) bench-peers

bench-fetch: setup-bench all
	@ninja -C $(B) bench-fetch

bench-attacks: setup-bench all
	@ninja -C $(B) bench-attacks

bench-crawl: setup-bench all
	@ninja -C $(B) bench-crawl

bench-polite: setup-bench all
	@ninja -C $(B) bench-polite

bench-resume: all
	@ninja -C $(B) bench-resume

bench-serve: setup-bench all
	@ninja -C $(B) bench-serve

bench-share-fetch: setup-bench all
	@ninja -C $(B) bench-share-fetch

bench-share: setup-bench all
	@ninja -C $(B) bench-share

bench-share-outage: setup-bench all
	@ninja -C $(B) bench-share-outage

bench-cluster: setup-bench all
	@ninja -C $(B) bench-cluster

# Each line: the picture, the scenario, and who is shown.
define PLOTS
bucket  P1c  tide  aimd:alpha=0.1,start=1,max=500,burst=5  cubic
window  P3c  tide  learned
ban     P4a  tide  cubic
queue   P5b  tide  gradient2
step    P6a  tide  aimd:alpha=0.1,start=1,max=500,burst=5  vegas
free    P8a  tide  autothrottle-8
outage  P9b  tide  aimd:alpha=0.1,start=1,max=500,burst=5
endef
export PLOTS

# What limits grant: the picture, and when requests come.
define LIMIT_PLOTS
limit-edge    1 at once, pause 8s, 100/s for 4s, pause 3s
limit-steady  15/s for 30s
limit-pause   8/s for 5s, pause 15s, 100/s for 2s, 15/s for 8s
endef
export LIMIT_PLOTS
TRY = $(B)/weir simulate

plots: all
	@mkdir -p docs/guide/img
	@echo "$$PLOTS" | while read -r picture scenario pacers; do \
		$(B)/weir simulate $$scenario $$(printf ' --pacer %s' $$pacers) --plot docs/guide/img/$$picture.svg || exit; \
	done
	@echo "$$LIMIT_PLOTS" | while read -r picture traffic; do \
		$(TRY) --limit "100/10s" --limit "100/10s burst=20" --limit "100/10s fixed_window" --limit "100/10s sliding_window" \
			--limit "100/10s sliding_log" --limit "100/10s leaky_bucket" --limit "20/s, 100/10s sliding_log" \
			--traffic "$$traffic" --plot docs/guide/img/$$picture.svg || exit; \
	done
	@$(TRY) --limit "10/s burst=5" --limit "10/s leaky_bucket" --limit "10/s leaky_bucket burst=60" \
		--traffic "60/s for 1s, pause 5s" --wait 10s --plot docs/guide/img/limit-drain.svg
	@$(TRY) --limit "20/s" --limit "concurrent=10" --limit "4/s, concurrent=10" \
		--traffic "10/s for 5s, 40/s for 1s, 10/s for 6s" --take 2s --plot docs/guide/img/limit-flight.svg

format:
	@git ls-files -z '*.c' '*.h' | xargs -0 $$(command -v clang-format-14 || command -v clang-format) -i

install: all
	@meson configure $(B) --prefix=$(PREFIX)
	@meson install -C $(B)

uninstall: all
	@meson configure $(B) --prefix=$(PREFIX)
	@tools/uninstall $(B)

help:
	@sed -n '/^$$/q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

hooks:
	@git config core.hooksPath tools/hooks

release: setup-test
	@tools/release $(VERSION)

clean:
	@rm -rf $(B) $(B)-asan $(B)-tsan $(B)-fuzz $(B)-fuzz-coverage $(B)-coverage $(B)-mutate

.PHONY: hooks release all setup setup-test setup-bench tests mutate demo crawl check test steady help uninstall sanitized asan tsan fuzz fuzz-coverage store-long crawl-long soak cluster-long coverage bench bench-peers bench-fetch bench-attacks bench-crawl bench-polite bench-resume bench-serve bench-share bench-share-outage bench-share-fetch bench-cluster plots format install clean elsewhere real setup-real
