/* SPDX-License-Identifier: MIT */
/* paces.c - measures a request through the gate of a host, alone and through the pacer. */
#include "cost.h"

#include <stdlib.h>
#include <weir/pace.h>

#include "core/pace/gate.h"

#define REQUESTS 3000
#define HOSTS 100
#define LATENCY_NS (50 * WEIR_MILLISECOND)

static const weir_outcome answered = {.size = sizeof answered, .status = 200, .latency_ns = LATENCY_NS};
static weir_pace_options pace;
static struct wr_gate *gate;
static weir_pacer *pacer;
static char hosts[HOSTS][COST_KEY_BYTES + 1];

static void open_gate(void)
{
    weir_pace_options_init(&pace);
    gate = calloc(1, wr_gate_bytes(&pace));
    cost_need(gate != NULL, "no memory");
    wr_gate_init(gate, &pace, NULL, cost_clock.now, cost_clock.now);
}

static void pass_gate(uint32_t number)
{
    (void)number;
    int64_t now = cost_clock.now += WEIR_SECOND;
    cost_need(wr_gate_ask(gate, &pace, now).verdict == WEIR_GO, "a gate is shut after a second");
    uint32_t seq = wr_gate_reserve(gate, &pace, now);
    struct wr_gate_start start = wr_gate_sent(gate, &pace, seq, now);
    (void)wr_gate_tell(gate, &pace, &start, &answered, now + LATENCY_NS, 0);
}

static void close_gate(void)
{
    free(gate);
}

static void open_pacer(void)
{
    weir_pacer_options options;
    weir_pacer_options_init(&options);
    weir_pace_options_init(&pace);
    options.sweep_every_ns = -1;
    options.seed = 1;
    options.max_hosts = 2 * HOSTS;
    options.clock = &cost_clock.clock;
    cost_need(weir_pacer_new(&pace, &options, &pacer) == 0, "no pacer");
    for (size_t i = 0; i < HOSTS; i++)
        cost_key(i, hosts[i]);
}

static void pass_pacer(uint32_t number)
{
    weir_permit permit;
    weir_decision decision;
    cost_clock.now += WEIR_SECOND;
    cost_need(weir_pacer_try(pacer, hosts[number % HOSTS], COST_KEY_BYTES, NULL, WEIR_REPORTS_SENT, &permit,
                             &decision) == 0 &&
                  decision.verdict == WEIR_GO && weir_permit_sent(&permit) == 0 &&
                  weir_permit_finish(&permit, &answered) == 0,
              "a pacer refuses after a second");
}

static void close_pacer(void)
{
    weir_pacer_free(pacer);
}

const struct cost_figure cost_paces[] = {
    {"gate", REQUESTS, open_gate, pass_gate, close_gate},
    {"pacer", REQUESTS, open_pacer, pass_pacer, close_pacer},
    {.name = NULL},
};
