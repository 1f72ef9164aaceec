/* SPDX-License-Identifier: MIT */
/* guard_command.c - weir guard: reports whether weir may connect to an address, host or URL. */
#include "cli/guard/guard_command.h"

#include <stdatomic.h>
#include <string.h>

#include "cli/kit/command_options.h"
#include "cli/kit/console.h"
#include "cli/kit/sanitise.h"
#include "core/web/url/address_guard.h"
#include "core/web/url/url.h"
#include "http/net/idna.h"
#include "http/net/resolver.h"
#include "limiter/clock/clock.h"

#define OPERANDS_MAX 1000000

struct guard_settings {
    int64_t timeout_ns;
};

static const struct wr_option options[] = {
    {"timeout", WR_DURATION(struct guard_settings, timeout_ns), .value = "TIME", .min = 1, .max = WEIR_HOUR,
     .help = "Time limit for looking up a name"},
};

static const struct wr_usage usage = {
    .who = "weir guard",
    .operands = "ADDRESS|URL…",
    .operands_min = 1,
    .operands_max = OPERANDS_MAX,
    .about = "Prints a line for each URL, host or address: allowed or blocked, the reason, and the\n"
             "argument, separated by tabs. A name is looked up; weir connects only to its allowed\n"
             "addresses. Blocked are loopback, private and link-local networks, metadata services of\n"
             "clouds, reserved addresses, addresses that embed one of these, and URLs that are not http\n"
             "or https.\n"
             "\n"
             "Exits with 0 if all are allowed and 1 if one is blocked or cannot be looked up.\n",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* ---- name lookup ---------------------------------------------------------------------------- */

struct guard_lookup {
    struct wr_dns_query query; /* must be the first member: on_answer casts it to struct guard_lookup */
    struct wr_parker parker;
    atomic_bool is_answered;
};

static void on_lookup_answer(struct wr_dns_query *query)
{
    struct guard_lookup *waiting = (struct guard_lookup *)query;

    atomic_store(&waiting->is_answered, true);
    wr_unpark(&waiting->parker);
}

/* Looks up a host name and waits for the answer. The answer is WR_DNS_FAILED also after a
 * timeout. */
static void look_up_host(struct wr_resolver *resolver, const char *host, int64_t timeout_ns,
                         struct wr_dns_answer *ret_answer)
{
    const weir_clock *clock = weir_clock_monotonic();
    int64_t until = wr_clock_now(clock) + timeout_ns;
    struct guard_lookup waiting = {.query.on_answer = on_lookup_answer};
    bool is_ready = false;

    *ret_answer = (struct wr_dns_answer){.kind = WR_DNS_FAILED};
    if (wr_parker_init(&waiting.parker) < 0)
        return;
    if (wr_resolver_resolve(resolver, wr_span_of(host), &waiting.query, &is_ready) == 0) {
        while (!is_ready && !atomic_load(&waiting.is_answered) && wr_clock_now(clock) < until)
            wr_park(&waiting.parker, clock, until);
        wr_resolver_cancel(resolver, &waiting.query);
        if (is_ready || atomic_load(&waiting.is_answered))
            *ret_answer = waiting.query.answer;
    }
    wr_parker_release(&waiting.parker);
}

/* ---- verdict -------------------------------------------------------------------------------- */

/* Appends the reason for an address, such as "127.0.0.1 is loopback: this machine". */
static void append_why(struct wr_buf *why, const struct wr_address *address)
{
    if (why->length > 0)
        wr_buf_append_string(why, "; ");
    wr_address_append(why, address);
    wr_buf_append_string(why, " is ");
    wr_buf_append_string(why, wr_guard_text(wr_guard_class(address)));
}

static int print_guard_line(bool is_allowed, const char *why, const char *operand)
{
    wr_print("%s\t%s\t", is_allowed ? "allowed" : "blocked", why);
    wr_print_sanitised(wr_span_of(operand));
    wr_print("\n");
    return is_allowed ? WR_EXIT_OK : WR_EXIT_FAILED;
}

/* Prints the verdict on all addresses of a host. The host is allowed if one address is public,
 * because weir connects only to that one. */
static int print_addresses_verdict(const struct wr_dns_answer *answer, const char *operand)
{
    char text[2048];
    struct wr_buf why;
    bool is_allowed = false;

    for (size_t i = 0; i < answer->count; i++)
        is_allowed = is_allowed || wr_guard_class(&answer->list[i]) == WR_GUARD_PUBLIC;
    wr_buf_init_fixed(&why, text, sizeof text);
    for (size_t i = 0; i < answer->count; i++)
        append_why(&why, &answer->list[i]);
    return print_guard_line(is_allowed, text, operand);
}

static int print_name_verdict(struct wr_resolver *resolver, const char *host, int64_t timeout_ns, const char *operand)
{
    struct wr_dns_answer answer;

    look_up_host(resolver, host, timeout_ns, &answer);
    if (answer.kind == WR_DNS_FOUND)
        return print_addresses_verdict(&answer, operand);
    wr_complain("%s: %s", host,
                answer.kind == WR_DNS_ABSENT ? "there is no such host" : "the name could not be looked up");
    return WR_EXIT_FAILED;
}

/* Extracts the host of a URL, or of a text without a scheme, such as 127.1 or example.org:8080. */
static enum wr_url_fault operand_host(const char *operand, char ret_host[WR_NAME_MAX + 1])
{
    char memory[WR_URL_ROOM], longer[WR_URL_ROOM];
    struct wr_span input = wr_span_of(operand);
    struct wr_url url;
    struct wr_buf buf;

    if (strstr(operand, "://") == NULL) {
        wr_buf_init_fixed(&buf, longer, sizeof longer);
        wr_buf_append_string(&buf, "http://");
        wr_buf_append_string(&buf, operand);
        input = wr_buf_from(&buf, 0);
    }
    enum wr_url_fault fault = wr_url_parse(input, NULL, wr_idna_libidn2(), memory, sizeof memory, &url);
    if (fault != WR_URL_OK)
        return fault;
    wr_host_copy(wr_url_host(&url), ret_host);
    return WR_URL_OK;
}

static int print_operand_verdict(struct wr_resolver *resolver, int64_t timeout_ns, const char *operand)
{
    struct wr_dns_answer answer = {.kind = WR_DNS_FOUND, .count = 1};
    char host[WR_NAME_MAX + 1];

    if (wr_address_parse(wr_span_of(operand), &answer.list[0]))
        return print_addresses_verdict(&answer, operand);
    enum wr_url_fault fault = operand_host(operand, host);
    if (fault != WR_URL_OK)
        return print_guard_line(false, wr_url_fault_text(fault), operand);
    if (wr_address_parse(wr_span_of(host), &answer.list[0]))
        return print_addresses_verdict(&answer, operand);
    return print_name_verdict(resolver, host, timeout_ns, operand);
}

int wr_guard_run(int argc, char **argv)
{
    struct guard_settings settings = {.timeout_ns = 15 * WEIR_SECOND};
    struct wr_resolver *resolver;
    int status;

    if (!wr_options_parse(&usage, &argc, argv, &settings, &status))
        return status;
    int error = wr_resolver_new(&(struct wr_resolver_options){.clock = weir_clock_monotonic()}, &resolver);
    if (error < 0) {
        wr_complain("%s", weir_error_text(error));
        return WR_EXIT_FAILED;
    }
    status = WR_EXIT_OK;
    for (int i = 0; i < argc; i++)
        if (print_operand_verdict(resolver, settings.timeout_ns, argv[i]) != WR_EXIT_OK)
            status = WR_EXIT_FAILED;
    wr_resolver_free(resolver);
    return status;
}
