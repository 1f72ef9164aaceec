/* SPDX-License-Identifier: MIT */
/* test_pacer_groups.c - tests of hosts that share a gate by registrable domain or by address
 * (S0-107, D8). */
#include "rig.h"

static void groups_set_up(struct pacing *pacing, uint32_t groups)
{
    pacing_init(pacing, WEIR_PROFILE_STRICT);
    pacing->pace.jitter_over_ns = WEIR_HOUR;
    pacing->options.groups = groups;
    pacing_start(pacing);
}

static weir_decision try_at(struct pacing *pacing, const char *key, const char *address, uint32_t flags,
                            weir_permit *ret_permit)
{
    weir_decision decision;
    assert_int_equal(weir_pacer_try(pacing->pacer, key, strlen(key), address, flags, ret_permit, &decision), 0);
    return decision;
}

static bool goes_at(struct pacing *pacing, const char *key, const char *address)
{
    weir_permit permit;
    bool goes = try_at(pacing, key, address, 0, &permit).verdict == WEIR_GO;
    weir_permit_abandon(&permit);
    return goes;
}

/* ---- which hosts share a gate ---- */

static void only_hosts_of_one_registrable_domain_share_a_gate(void **state)
{
    (void)state;
    static const struct {
        const char *first, *second;
        bool share;
    } cases[] = {
        {"a.example.co.uk", "b.example.co.uk", true},
        {"example.co.uk", "deep.down.example.co.uk", true},
        {"a.example.co.uk:8080", "b.example.co.uk", true},
        {"www.example1.org", "ftp.example1.org", true},
        {"example.co.uk", "other.co.uk", false}, /* co.uk is a public suffix */
        {"example.org", "example.com", false},
        {"alice.github.io", "bob.github.io", false}, /* so is github.io */
        {"192.0.2.1", "198.51.2.1", false},          /* "2.1" is no domain */
        {"[2001:db8::1]", "[2001:db8::2]", false},
        {"localhost", "localhost:8080", false},
        {"token one", "token two", false}, /* keys that are no host names */
        {"a.b\xc3\xa9.org", "c.b\xc3\xa9.org", false},
        {"a.", "b.", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pacing pacing;
        groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
        assert_true(goes_at(&pacing, cases[i].first, NULL));
        assert_int_equal(goes_at(&pacing, cases[i].second, NULL), !cases[i].share);
        pacing_tear_down(&pacing);
        groups_set_up(&pacing, WEIR_GROUP_NONE);
        assert_true(goes_at(&pacing, cases[i].first, NULL));
        assert_true(goes_at(&pacing, cases[i].second, NULL));
        pacing_tear_down(&pacing);
    }
}

static void host_names_over_253_bytes_have_no_domain(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    char name[WEIR_PACE_KEY_MAX];
    memset(name, 'x', sizeof name);
    memcpy(name + 253 - 4, ".org", 4);
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_try(pacing.pacer, name, 253, NULL, 0, &permit, &decision), 0);
    assert_int_equal(permit.domain_bytes, 253);
    tell(&permit, 200);
    memset(name, 'x', sizeof name);
    memcpy(name + sizeof name - 4, ".org", 4);
    assert_int_equal(weir_pacer_try(pacing.pacer, name, sizeof name, NULL, 0, &permit, &decision), 0);
    assert_int_equal(permit.domain_bytes, 0);
    tell(&permit, 200);
    pacing_tear_down(&pacing);
}

static void thousand_aliases_of_one_address_share_its_gate_however_it_is_spelled(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_ADDRESS);
    assert_true(goes_at(&pacing, "alias.example", "192.0.2.7"));
    char key[KEY_BYTES];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(key, sizeof key, "alias%d.example", i);
        assert_false(goes_at(&pacing, key, i % 2 == 0 ? "192.0.2.7" : "::ffff:192.0.2.7"));
    }
    assert_true(goes_at(&pacing, "elsewhere.example", "192.0.2.8"));
    assert_true(goes_at(&pacing, "nowhere.example", NULL)); /* not resolved yet */
    pass(&pacing, WEIR_SECOND);
    assert_true(goes_at(&pacing, "alias5.example", "192.0.2.7"));
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_try(pacing.pacer, "h", 1, "example.org", 0, &permit, &decision), WEIR_E_INVAL);
    assert_string_equal(weir_error_detail(), "address \"example.org\": not a numeric address; use one like 192.0.2.1 "
                                             "or 2001:db8::1");
    pacing_tear_down(&pacing);
}

/* ---- the strictest gate decides ---- */

static void strictest_of_host_domain_and_address_decides(void **state)
{
    (void)state;
    static const char *const gates[] = {"www.example.org", "domain:example.org", "address:2001:db8::1"};
    for (size_t strict = 0; strict < 3; strict++) {
        struct pacing pacing;
        groups_set_up(&pacing, WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS);
        int64_t delay_ns = 9 * WEIR_SECOND;
        assert_int_equal(weir_pacer_robots_delay(pacing.pacer, gates[strict], strlen(gates[strict]), delay_ns), 0);
        assert_true(goes_at(&pacing, "www.example.org", "2001:db8:0::1"));
        weir_permit permit;
        weir_decision decision = try_at(&pacing, "www.example.org", "2001:db8::1", 0, &permit);
        assert_int_equal(decision.reason, WEIR_REASON_ROBOTS_DELAY);
        assert_true(decision.wait_ns == delay_ns);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(look_at(&pacing, gates[i]).starts, 1); /* a refusal charges nothing */
        assert_int_equal(pacer_stats(&pacing).hosts, 3);
        assert_int_equal(pacer_stats(&pacing).requests, 1);
        pacing_tear_down(&pacing);
    }
}

static void all_gates_of_a_request_learn_from_its_outcome(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS);
    weir_permit permit;
    assert_int_equal(try_at(&pacing, "a.example.org", "192.0.2.1", 0, &permit).verdict, WEIR_GO);
    weir_outcome outcome = answer_retry_after(429, 30 * WEIR_SECOND);
    assert_int_equal(weir_permit_finish(&permit, &outcome), 0);
    assert_int_equal(look_at(&pacing, "domain:example.org").in_flight, 0);
    assert_int_equal(look_at(&pacing, "address:192.0.2.1").in_flight, 0);
    weir_decision sibling = try_at(&pacing, "b.example.org", NULL, 0, &permit);
    assert_int_equal(sibling.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(sibling.wait_ns == 30 * WEIR_SECOND);
    weir_decision neighbour = try_at(&pacing, "example.com", "192.0.2.1", 0, &permit);
    assert_int_equal(neighbour.reason, WEIR_REASON_RETRY_AFTER);
    assert_true(goes_at(&pacing, "example.com", "192.0.2.2"));
    pass(&pacing, WEIR_MINUTE);
    /* without a permit */
    assert_int_equal(weir_pacer_tell(pacing.pacer, "b.example.org", 13, &outcome), 0);
    assert_int_equal(try_at(&pacing, "a.example.org", NULL, 0, &permit).reason, WEIR_REASON_RETRY_AFTER);
    pacing_tear_down(&pacing);
}

static void group_can_be_paused_and_inspected_but_not_acquired(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    weir_permit permit;
    weir_decision decision;
    assert_int_equal(weir_pacer_try(pacing.pacer, "domain:example.org", 18, NULL, 0, &permit, &decision), WEIR_E_INVAL);
    assert_int_equal(weir_pacer_try(pacing.pacer, "address:192.0.2.1", 17, NULL, 0, &permit, &decision), WEIR_E_INVAL);
    assert_true(goes_at(&pacing, "domain:8080", NULL)); /* a host with a port, not a group */
    assert_int_equal(weir_pacer_pause(pacing.pacer, "domain:example.org", 18, true), 0);
    assert_int_equal(try_at(&pacing, "www.example.org", NULL, 0, &permit).reason, WEIR_REASON_PAUSED);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "domain:example.org", 18, false), 0);
    assert_true(goes_at(&pacing, "www.example.org", NULL));
    pacing_tear_down(&pacing);
}

/* ---- sending ---- */

static void gates_of_a_permit_are_sent_and_given_back_together(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS);
    static const char *const gates[] = {"a.example.org", "domain:example.org", "address:192.0.2.1"};
    weir_permit permit;
    assert_int_equal(try_at(&pacing, gates[0], "192.0.2.1", WEIR_REPORTS_SENT, &permit).verdict, WEIR_GO);
    /* reserved: the first may start at any moment */
    assert_false(goes_at(&pacing, "b.example.org", NULL));
    assert_false(goes_at(&pacing, "example.com", "192.0.2.1"));
    weir_permit_abandon(&permit);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(look_at(&pacing, gates[i]).in_flight, 0);
    assert_int_equal(try_at(&pacing, gates[0], "192.0.2.1", WEIR_REPORTS_SENT, &permit).verdict, WEIR_GO);
    pass(&pacing, 10 * WEIR_SECOND);
    assert_int_equal(weir_permit_sent(&permit), 0);
    weir_permit other;
    assert_true(try_at(&pacing, "b.example.org", NULL, 0, &other).wait_ns == WEIR_SECOND);
    assert_true(try_at(&pacing, "example.com", "192.0.2.1", 0, &other).wait_ns == WEIR_SECOND);
    tell(&permit, 200);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(try_at(&pacing, gates[0], "192.0.2.1", WEIR_REPORTS_SENT, &permit).verdict, WEIR_GO);
    assert_int_equal(weir_pacer_pause(pacing.pacer, gates[2], strlen(gates[2]), true), 0);
    /* one gate that is paused withdraws the permit */
    assert_int_equal(weir_permit_sent(&permit), WEIR_E_WITHDRAWN);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(look_at(&pacing, gates[i]).in_flight, 0);
        assert_int_equal(look_at(&pacing, gates[i]).starts, 1);
    }
    pacing_tear_down(&pacing);
}

/* ---- waiting ---- */

static void requests_of_a_domain_wait_in_order_of_arrival(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    static const char *const keys[] = {"a.example.org", "b.example.org", "c.example.org", "d.example.org"};
    struct fetcher siblings[4];
    int64_t last_at = weir_clock_now(pacing.clock);
    weir_permit first = acquired(&pacing, "www.example.org", 0);
    for (int i = 0; i < 4; i++)
        fetcher_wait(&siblings[i], &pacing, keys[i], 0, WEIR_FOREVER, NULL);
    assert_int_equal(look_at(&pacing, "domain:example.org").waiters, 4);
    assert_false(goes_at(&pacing, keys[0], NULL)); /* its gate is reserved */
    assert_true(goes_at(&pacing, "example.com", NULL));
    for (int i = 0; i < 4; i++) {
        pass(&pacing, WEIR_SECOND);
        assert_int_equal(fetcher_join(&siblings[i]), 0);
        assert_true(siblings[i].permit.held[0].sent_at == last_at + WEIR_SECOND);
        assert_true(siblings[i].permit.held[1].sent_at == last_at + WEIR_SECOND);
        last_at += WEIR_SECOND;
        tell(&siblings[i].permit, 200);
    }
    tell(&first, 200);
    assert_int_equal(look_at(&pacing, "domain:example.org").in_flight, 0);
    pacing_tear_down(&pacing);
}

static void caller_that_stops_waiting_at_the_domain_gives_its_host_back(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS);
    fetch(&pacing, "www.example.org", 200);
    weir_cancel *cancel;
    assert_int_equal(weir_cancel_new(NULL, &cancel), 0);
    struct fetcher cancelled, timed_out;
    fetcher_wait(&cancelled, &pacing, "a.example.org", 0, WEIR_FOREVER, cancel);
    fetcher_wait(&timed_out, &pacing, "b.example.org", 0, 500 * MS, NULL);
    assert_int_equal(look_at(&pacing, "a.example.org").in_flight, 1);
    weir_cancel_fire(cancel);
    assert_int_equal(fetcher_join(&cancelled), WEIR_E_CANCELLED);
    pass(&pacing, 500 * MS);
    assert_int_equal(fetcher_join(&timed_out), WEIR_E_TIMEOUT);
    assert_int_equal(look_at(&pacing, "a.example.org").in_flight, 0);
    assert_int_equal(look_at(&pacing, "b.example.org").in_flight, 0);
    pass(&pacing, 500 * MS);
    assert_true(goes_at(&pacing, "a.example.org", NULL));
    weir_cancel_free(cancel);
    pacing_tear_down(&pacing);
}

/* K2: the host was paused while the request waited at the domain. The request must not start; it
 * waits at the host again. */
static void host_paused_while_a_request_waits_at_the_domain_is_obeyed(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    fetch(&pacing, "www.example.org", 200);
    struct fetcher waiter;
    fetcher_wait(&waiter, &pacing, "a.example.org", 0, WEIR_FOREVER, NULL);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "a.example.org", 13, true), 0);
    pass(&pacing, WEIR_SECOND);
    for (int64_t until = patience_ends_at(); look_at(&pacing, "a.example.org").waiters == 0;)
        keep_waiting(until);
    test_await_waiters(pacing.clock, 1);
    assert_int_equal(atomic_load(&pacing.finished), 0);
    /* other hosts of the domain may start meanwhile */
    assert_int_equal(look_at(&pacing, "domain:example.org").in_flight, 0);
    assert_true(goes_at(&pacing, "b.example.org", NULL));
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "a.example.org", 13, false), 0);
    assert_int_equal(fetcher_join(&waiter), 0);
    tell(&waiter.permit, 200);
    pacing_tear_down(&pacing);
}

/* The request waits at the domain for longer than reservation_max_ns. It keeps the reservation of
 * its host, and no other request overtakes it. */
static void reservation_of_a_host_lasts_through_a_long_wait_at_the_domain(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    fetch(&pacing, "www.example.org", 200);
    pass(&pacing, WEIR_SECOND);
    /* so that the reservation is not the first of this host */
    fetch(&pacing, "a.example.org", 200);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "domain:example.org", 18, true), 0);
    struct fetcher first, second;
    fetcher_wait(&first, &pacing, "a.example.org", WEIR_REPORTS_SENT, WEIR_FOREVER, NULL);
    fetcher_wait(&second, &pacing, "a.example.org", 0, WEIR_FOREVER, NULL);
    for (int i = 0; i < 5; i++) {
        pass(&pacing, WEIR_MINUTE);
        test_await_waiters(pacing.clock, 2);
        assert_int_equal(look_at(&pacing, "a.example.org").waiters, 1);
        assert_int_equal(look_at(&pacing, "domain:example.org").waiters, 1);
    }
    /* www.example.org; a.example.org is reserved */
    assert_int_equal(weir_pacer_sweep(pacing.pacer), 1);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "domain:example.org", 18, false), 0);
    assert_int_equal(fetcher_join(&first), 0);
    pass(&pacing, WEIR_MINUTE);
    /* its two minutes began when it was granted */
    assert_int_equal(weir_permit_sent(&first.permit), 0);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(fetcher_join(&second), 0);
    assert_true(second.permit.held[0].sent_at == first.permit.held[0].sent_at + WEIR_SECOND);
    tell(&first.permit, 200);
    tell(&second.permit, 200);
    pacing_tear_down(&pacing);
}

static void ticket_keeps_its_place_however_long_it_waits_at_the_address(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_ADDRESS);
    assert_int_equal(weir_pacer_pause(pacing.pacer, "address:192.0.2.1", 17, true), 0);
    weir_pace_ticket *tickets[2];
    weir_permit permits[2];
    weir_decision decision;
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            weir_pacer_enqueue(pacing.pacer, "h", 1, "192.0.2.1", 0, WEIR_FOREVER, ignore_wake, NULL, &tickets[i]), 0);
    for (int i = 0; i < 3; i++, pass(&pacing, WEIR_MINUTE))
        for (int k = 0; k < 2; k++) {
            assert_int_equal(weir_pace_ticket_poll(tickets[k], &permits[k], &decision), 0);
            assert_int_equal(decision.verdict, WEIR_WAIT);
        }
    assert_int_equal(weir_pacer_pause(pacing.pacer, "address:192.0.2.1", 17, false), 0);
    assert_int_equal(weir_pace_ticket_poll(tickets[1], &permits[1], &decision), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    assert_int_equal(weir_pace_ticket_poll(tickets[0], &permits[0], &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    tell(&permits[0], 200);
    for (int i = 0; i < 2; i++)
        weir_pace_ticket_free(tickets[i]);
    pacing_tear_down(&pacing);
}

/* The host was forgotten while a ticket waited at the address, then added again by a request that
 * holds it. */
static void ticket_of_a_forgotten_host_does_not_end_the_new_reservation(void **state)
{
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        struct pacing pacing;
        groups_set_up(&pacing, WEIR_GROUP_ADDRESS);
        assert_int_equal(weir_pacer_pause(pacing.pacer, "address:192.0.2.1", 17, true), 0);
        weir_pace_ticket *ticket;
        weir_permit permit;
        weir_decision decision;
        assert_int_equal(
            weir_pacer_enqueue(pacing.pacer, "h", 1, "192.0.2.1", 0, WEIR_FOREVER, ignore_wake, NULL, &ticket), 0);
        assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), 0);
        assert_int_equal(look_at(&pacing, "h").in_flight, 1);
        assert_int_equal(weir_pacer_forget(pacing.pacer, "h", 1), 0);
        weir_permit successor = acquired(&pacing, "h", WEIR_REPORTS_SENT);
        assert_int_equal(weir_pacer_pause(pacing.pacer, "address:192.0.2.1", 17, false), 0);
        if (!frees)
            assert_int_equal(weir_pace_ticket_poll(ticket, &permit, &decision), WEIR_E_WITHDRAWN);
        weir_pace_ticket_free(ticket);
        assert_int_equal(look_at(&pacing, "h").in_flight, 1);
        assert_int_equal(look_at(&pacing, "address:192.0.2.1").in_flight, 0);
        assert_int_equal(weir_permit_sent(&successor), 0);
        tell(&successor, 200);
        pacing_tear_down(&pacing);
    }
}

static void open_breaker_of_a_domain_fails_its_hosts_and_holds_nothing(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN);
    for (int i = 0; i < 5; i++) { /* each host failed only once */
        char key[KEY_BYTES];
        (void)snprintf(key, sizeof key, "h%d.example.org", i);
        fetch(&pacing, key, 500);
        pass(&pacing, WEIR_SECOND);
    }
    weir_permit permit;
    assert_int_equal(weir_pacer_acquire(pacing.pacer, "www.example.org", 15, 0, WEIR_FOREVER, NULL, &permit, NULL),
                     WEIR_E_CIRCUIT);
    assert_int_equal(look_at(&pacing, "www.example.org").in_flight, 0);
    assert_int_equal(look_at(&pacing, "www.example.org").breaker, WEIR_BREAKER_CLOSED);
    assert_int_equal(pacer_stats(&pacing).open_circuits, 1);
    pacing_tear_down(&pacing);
}

static void ticket_passes_one_gate_after_the_other(void **state)
{
    (void)state;
    struct pacing pacing;
    groups_set_up(&pacing, WEIR_GROUP_DOMAIN | WEIR_GROUP_ADDRESS);
    weir_pace_ticket *tickets[2];
    weir_permit permit, other;
    weir_decision decision;
    assert_int_equal(weir_pacer_robots_delay(pacing.pacer, "address:192.0.2.1", 17, 3 * WEIR_SECOND), 0);
    assert_int_equal(try_at(&pacing, "www.example.org", "192.0.2.1", 0, &other).verdict, WEIR_GO);
    tell(&other, 200);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_pacer_enqueue(pacing.pacer, i == 0 ? "a.example.org" : "b.example.org", 13, "192.0.2.1",
                                            0, WEIR_FOREVER, ignore_wake, NULL, &tickets[i]),
                         0);
    assert_int_equal(weir_pace_ticket_poll(tickets[0], &permit, &decision), 0);
    assert_true(decision.wait_ns == WEIR_SECOND); /* the interval of the domain */
    assert_int_equal(weir_pace_ticket_poll(tickets[1], &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_WAIT);
    pass(&pacing, WEIR_SECOND);
    assert_int_equal(weir_pace_ticket_poll(tickets[0], &permit, &decision), 0);
    assert_true(decision.wait_ns == 2 * WEIR_SECOND); /* the delay of the address */
    assert_int_equal(decision.reason, WEIR_REASON_ROBOTS_DELAY);
    assert_int_equal(look_at(&pacing, "domain:example.org").in_flight, 1);
    weir_pace_ticket_free(tickets[0]); /* gives the host and the domain back */
    assert_int_equal(look_at(&pacing, "a.example.org").in_flight, 0);
    assert_int_equal(look_at(&pacing, "domain:example.org").in_flight, 0);
    pass(&pacing, 2 * WEIR_SECOND);
    assert_int_equal(weir_pace_ticket_poll(tickets[1], &permit, &decision), 0);
    assert_int_equal(decision.verdict, WEIR_GO);
    assert_true(permit.sent);
    assert_true(permit.waited_ns == 3 * WEIR_SECOND);
    weir_pace_ticket_free(tickets[1]);
    tell(&permit, 200);
    assert_int_equal(look_at(&pacing, "address:192.0.2.1").starts, 2);
    assert_int_equal(look_at(&pacing, "address:192.0.2.1").in_flight, 0);
    pacing_tear_down(&pacing);
}

WEIR_TESTS(test(only_hosts_of_one_registrable_domain_share_a_gate), test(host_names_over_253_bytes_have_no_domain),
           test(thousand_aliases_of_one_address_share_its_gate_however_it_is_spelled),
           test(strictest_of_host_domain_and_address_decides), test(all_gates_of_a_request_learn_from_its_outcome),
           test(group_can_be_paused_and_inspected_but_not_acquired),
           test(gates_of_a_permit_are_sent_and_given_back_together),
           test(requests_of_a_domain_wait_in_order_of_arrival),
           test(caller_that_stops_waiting_at_the_domain_gives_its_host_back),
           test(host_paused_while_a_request_waits_at_the_domain_is_obeyed),
           test(reservation_of_a_host_lasts_through_a_long_wait_at_the_domain),
           test(ticket_keeps_its_place_however_long_it_waits_at_the_address),
           test(ticket_of_a_forgotten_host_does_not_end_the_new_reservation),
           test(open_breaker_of_a_domain_fails_its_hosts_and_holds_nothing),
           test(ticket_passes_one_gate_after_the_other))
