/* SPDX-License-Identifier: MIT */
/* agency.c - the thread that talks to the store for all budgets of a process.
 *
 * Callers' threads append errands to a list and wake the loop. A timer renews the seat after a
 * third of its time; while the store is down it probes as often as the breaker allows. Resolving a
 * host name may block this thread. That happens only while connecting, when the store counts as
 * down and no caller waits for it.
 */
#include "shell/share/agency.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#define LOOK_MS 25       /* period of the timer, ms */
#define TOLD_AT_ONCE 16  /* most store requests in progress without a waiting caller */
#define LOOKED_AT_ONCE 8 /* budgets that one report looks at */
#define PATIENCE_MS 250  /* longest wait of wr_agency_start for the first answer */

/* ---- reports and state ----------------------------------------------------------------------- */

/* Returns the next budget in rotation, with a reference; NULL if there are none. */
static struct wr_budget *next_budget(struct wr_agency *agency)
{
    (void)pthread_mutex_lock(&agency->lock);
    struct wr_list_link *link = agency->budgets.first;
    struct wr_budget *budget = link != NULL ? WR_LINKED(link, struct wr_budget, link) : NULL;
    if (budget != NULL) {
        wr_list_take(link);
        wr_list_push(&agency->budgets, link);
        wr_budget_hold(budget);
    }
    (void)pthread_mutex_unlock(&agency->lock);
    return budget;
}

/* Sends what accounts have to report: debts after an outage or a missing answer, unused permits,
 * permits in flight, and states that the store may have lost. It sends a few at a time, so that
 * requests of callers are not delayed, and scans without the lock that callers need. */
static void tell_more(struct wr_agency *agency)
{
    uint32_t room = agency->telling == 0 ? TOLD_AT_ONCE : 0, told = 0;
    struct wr_list errands = {0};

    for (int i = 0; i < LOOKED_AT_ONCE && told < room; i++) {
        struct wr_budget *budget = next_budget(agency);
        if (budget == NULL)
            break;
        told += wr_budget_own_up(budget, agency->lives, room - told, &errands);
        wr_budget_drop(budget);
    }
    agency->telling += told;
    (void)pthread_mutex_lock(&agency->lock);
    for (struct wr_list_link *link; (link = errands.first) != NULL;) {
        wr_list_take(link);
        wr_list_push(&agency->errands, link);
    }
    bool calls = told > 0 && !agency->is_called;
    agency->is_called = agency->is_called || calls;
    (void)pthread_mutex_unlock(&agency->lock);
    if (calls)
        wr_wakeup_send(&agency->called);
}

/* Copies the state of the connection for all threads. */
static void look(struct wr_agency *agency)
{
    bool was_down = atomic_load(&agency->is_down), is_down = wr_wire_is_down(agency->wire);

    (void)pthread_mutex_lock(&agency->lock);
    wr_wire_view_get(agency->wire, &agency->view.wire);
    is_down = is_down || agency->view.wire.answered == 0;
    agency->view.wire.down = is_down;
    agency->view.seated = wr_seat_held(&agency->seat, wr_boottime_now());
    if (!was_down && is_down)
        (void)atomic_fetch_add(&agency->outages, 1);
    atomic_store(&agency->is_lost, wr_wire_is_lost(agency->wire));
    atomic_store(&agency->is_down, is_down);
    agency->lives += was_down && !is_down;
    (void)pthread_mutex_unlock(&agency->lock);
}

/* Wakes wr_agency_start: the first answer came or was missed. */
static void hear(struct wr_agency *agency)
{
    (void)pthread_mutex_lock(&agency->lock);
    agency->has_heard = true;
    (void)pthread_cond_broadcast(&agency->heard);
    (void)pthread_mutex_unlock(&agency->lock);
}

/* ---- errands --------------------------------------------------------------------------------- */

static void end_errand(struct wr_agency *agency, struct wr_errand *errand, const struct wr_charge_told *told)
{
    bool is_last = errand->is_told_of && --agency->telling == 0;

    wr_errand_end(errand, told);
    if (is_last && told != NULL)
        tell_more(agency); /* if there is more; after a failure the timer does it */
}

static void on_charged(void *context, const struct redisReply *reply)
{
    struct wr_errand *errand = context;
    struct wr_agency *agency = errand->budget->agency;
    struct wr_charge_told told;
    bool is_good = reply != NULL && wr_charge_read(reply, &told) == 0;

    if (wr_wire_is_down(agency->wire) != atomic_load(&agency->is_down))
        look(agency); /* before callers wake, so that they do not ask a store that is down */
    end_errand(agency, errand, is_good ? &told : NULL);
}

static void run_errand(struct wr_agency *agency, struct wr_errand *errand)
{
    const struct wr_charge charge = {
        .key = errand->text,
        .key_bytes = errand->store_key_bytes,
        .permits = errand->permits,
        .extra = errand->extra,
        .owed = errand->owed,
        .bill = errand->bill,
        .back = errand->back,
        .charged_at = errand->back_at,
        .who = errand->budget->who,
        .held = errand->held,
        .message = errand->message,
        .reset = errand->resets,
        .seen = errand->text + errand->seen_at,
    };
    /* While the store is down only the timer probes it: connecting may block, and a caller waits
     * for this errand. */
    if (!wr_wire_is_down(agency->wire) &&
        wr_charge_send(agency->wire, &errand->budget->tariff, &charge, on_charged, errand) == 0)
        return;
    look(agency);
    end_errand(agency, errand, NULL);
}

/* Returns the next errand to send; NULL if there are none, so that callers must wake the loop. */
static struct wr_errand *next_errand(struct wr_agency *agency)
{
    (void)pthread_mutex_lock(&agency->lock);
    struct wr_list_link *link = agency->errands.first;
    if (link != NULL)
        wr_list_take(link);
    else
        agency->is_called = false;
    (void)pthread_mutex_unlock(&agency->lock);
    return link != NULL ? WR_LINKED(link, struct wr_errand, link) : NULL;
}

static void end_loop(struct wr_agency *agency)
{
    wr_wakeup_close(&agency->called, NULL);
    uv_close((uv_handle_t *)&agency->beat, NULL);
    wr_wire_free(agency->wire);
}

static void on_called(struct wr_wakeup *called)
{
    struct wr_agency *agency = called->uv.data;
    struct wr_errand *errand;

    while ((errand = next_errand(agency)) != NULL)
        run_errand(agency, errand);
    (void)pthread_mutex_lock(&agency->lock);
    bool is_ending = agency->is_ending;
    (void)pthread_mutex_unlock(&agency->lock);
    if (is_ending && !wr_wakeup_is_closing(called))
        end_loop(agency);
}

void wr_agency_send(struct wr_agency *agency, struct wr_errand *errand)
{
    (void)pthread_mutex_lock(&agency->lock);
    /* The thread may be connecting now, which may block. So an errand must not be queued once the
     * store is down. */
    bool is_down = atomic_load(&agency->is_down), calls = !is_down && !agency->is_called;
    if (!is_down) {
        wr_list_push(&agency->errands, &errand->link);
        agency->is_called = true;
    }
    (void)pthread_mutex_unlock(&agency->lock);
    if (is_down)
        wr_errand_end(errand, NULL);
    else if (calls)
        wr_wakeup_send(&agency->called);
}

/* ---- the seat -------------------------------------------------------------------------------- */

static void on_seat(void *context, const struct redisReply *reply)
{
    struct wr_agency *agency = context;
    int64_t now = wr_boottime_now();

    agency->is_asking = false;
    uint64_t born = agency->store_born;
    bool is_seated = wr_seat_read(reply, &born);
    (void)pthread_mutex_lock(&agency->lock);
    if (is_seated)
        wr_seat_won(&agency->seat, agency->asked_at, now, WR_SEAT_NS);
    agency->lives += born != agency->store_born; /* the store lost its data, or is another one */
    agency->store_born = born;
    for (struct wr_list_link *link = agency->budgets.first; link != NULL && is_seated; link = link->next)
        wr_budget_take_seat(WR_LINKED(link, struct wr_budget, link), &agency->seat);
    (void)pthread_mutex_unlock(&agency->lock);
    look(agency);
    hear(agency);
}

static void on_beat(uv_timer_t *timer)
{
    struct wr_agency *agency = timer->data;
    int64_t now = wr_boottime_now();
    bool is_down = atomic_load(&agency->is_down), is_due = is_down || now - agency->asked_at >= WR_SEAT_NS / 3;

    if (!is_down)
        tell_more(agency);
    if (agency->is_asking || !is_due)
        return;
    agency->asked_at = now;
    if (wr_seat_send(agency->wire, agency->prefix, agency->who, agency->nodes, on_seat, agency) == 0) {
        agency->is_asking = true;
        return;
    }
    look(agency);
    hear(agency);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *run(void *context)
{
    struct wr_agency *agency = context;
    uv_update_time(&agency->loop);
    (void)uv_timer_start(&agency->beat, on_beat, 0, LOOK_MS);
    (void)uv_run(&agency->loop, UV_RUN_DEFAULT);
    return NULL;
}

static void wait_for_word(struct wr_agency *agency)
{
    int64_t until = wr_monotonic_now() + PATIENCE_MS * WEIR_MILLISECOND;
    const struct timespec at = {.tv_sec = (time_t)(until / WEIR_SECOND), .tv_nsec = (long)(until % WEIR_SECOND)};
    (void)pthread_mutex_lock(&agency->lock);
    while (!agency->has_heard && pthread_cond_timedwait(&agency->heard, &agency->lock, &at) == 0)
        ;
    (void)pthread_mutex_unlock(&agency->lock);
}

int wr_agency_start(struct wr_agency *agency)
{
    sigset_t all, before;

    if (agency->has_thread)
        return 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    agency->has_thread = pthread_create(&agency->thread, NULL, run, agency) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!agency->has_thread) {
        wr_error_note("a thread for the store could not be had");
        return WEIR_E_SYSTEM;
    }
    wait_for_word(agency);
    return 0;
}

/* ---- new and free ---------------------------------------------------------------------------- */

/* Writes all that identifies a store as one text. */
static int write_address(const struct wr_agency_options *options, char ret_address[WR_ADDRESS_BYTES])
{
    const struct wr_wire_options *wire = &options->wire;
    const char *parts[] = {wire->path, wire->host, wire->user, wire->password, options->prefix};
    struct wr_buf buf;

    wr_buf_init_fixed(&buf, ret_address, WR_ADDRESS_BYTES);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        wr_buf_append_string(&buf, parts[i] != NULL ? parts[i] : "\1");
        wr_buf_append_char(&buf, '\n');
    }
    wr_buf_append_u64(&buf, (uint64_t)wire->port);
    return buf.error;
}

static int name_node(struct wr_agency *agency)
{
    uint8_t random[WR_NODE_DIGITS / 2];
    struct wr_buf who;
    int error = wr_random(random, sizeof random);

    wr_buf_init_fixed(&who, agency->who, sizeof agency->who);
    for (size_t i = 0; i < sizeof random && error == 0; i++)
        wr_buf_append_hex(&who, random[i], 2, WR_HEX_SMALL);
    return error;
}

static int fill(struct wr_agency *agency, const struct wr_agency_options *options)
{
    const char *prefix = options->prefix != NULL ? options->prefix : "weir";

    if (options->nodes == 0 || options->nodes > WR_SHARE_NODES_MAX)
        return wr_invalid("nodes is out of range; it must be 1 ... 10000");
    if (strlen(prefix) > WR_SHARE_PREFIX_MAX || strpbrk(prefix, "{}") != NULL)
        return wr_invalid("a prefix of the store's keys has at most 31 bytes, and no braces");
    memcpy(agency->prefix, prefix, strlen(prefix) + 1);
    agency->nodes = options->nodes;
    agency->timeout_ns = options->wire.timeout_ns;
    if (write_address(options, agency->address) != 0)
        return wr_invalid("the store's address is too long; it has at most 1000 bytes");
    return name_node(agency);
}

static int open_loop(struct wr_agency *agency, const struct wr_agency_options *options)
{
    struct wr_wire_options wire = options->wire;

    wire.allocator = agency->allocator;
    if (uv_loop_init(&agency->loop) != 0)
        return WEIR_E_SYSTEM;
    (void)uv_timer_init(&agency->loop, &agency->beat);
    int error = wr_wakeup_init(&agency->called, &agency->loop, on_called);
    if (error == 0 && (error = wr_wire_new(&wire, &agency->loop, &agency->wire)) != 0)
        wr_wakeup_close(&agency->called, NULL);
    if (error == 0) {
        agency->called.uv.data = agency->beat.data = agency;
        return 0;
    }
    uv_close((uv_handle_t *)&agency->beat, NULL);
    (void)uv_run(&agency->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&agency->loop);
    return error;
}

int wr_agency_new(const struct wr_agency_options *options, struct wr_agency **ret_agency)
{
    const weir_allocator *allocator = wr_allocator_or_system(options->allocator);
    struct wr_agency *agency = wr_take(allocator, sizeof *agency, _Alignof(struct wr_agency));
    pthread_condattr_t attributes;

    if (agency == NULL)
        return WEIR_E_NOMEM;
    agency->allocator = allocator;
    agency->view.nodes = options->nodes;
    agency->view.wire.down = true;
    atomic_init(&agency->is_down, true);
    atomic_init(&agency->is_lost, false);
    atomic_init(&agency->outages, 1);
    int error = fill(agency, options);
    if (error == 0)
        error = open_loop(agency, options);
    if (error < 0) {
        wr_give(allocator, agency, sizeof *agency, _Alignof(struct wr_agency));
        return error;
    }
    (void)pthread_mutex_init(&agency->lock, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&agency->heard, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    *ret_agency = agency;
    return 0;
}

bool wr_agency_is(const struct wr_agency *agency, const struct wr_agency_options *options)
{
    char address[WR_ADDRESS_BYTES];

    return write_address(options, address) == 0 && strcmp(address, agency->address) == 0 &&
           agency->nodes == options->nodes && agency->timeout_ns == options->wire.timeout_ns;
}

void wr_agency_free(struct wr_agency *agency)
{
    if (agency == NULL)
        return;
    if (agency->has_thread) {
        (void)pthread_mutex_lock(&agency->lock);
        agency->is_ending = true;
        (void)pthread_mutex_unlock(&agency->lock);
        wr_wakeup_send(&agency->called);
        (void)pthread_join(agency->thread, NULL);
    } else {
        end_loop(agency);
        (void)uv_run(&agency->loop, UV_RUN_DEFAULT);
    }
    (void)uv_loop_close(&agency->loop);
    (void)pthread_cond_destroy(&agency->heard);
    (void)pthread_mutex_destroy(&agency->lock);
    wr_give(agency->allocator, agency, sizeof *agency, _Alignof(struct wr_agency));
}

void wr_agency_view_get(struct wr_agency *agency, struct wr_agency_view *ret_view)
{
    (void)pthread_mutex_lock(&agency->lock);
    *ret_view = agency->view;
    (void)pthread_mutex_unlock(&agency->lock);
}
