/* SPDX-License-Identifier: MIT */
/* admission.c - admits HTTP requests, and writes the response headers that describe the limits.
 *
 * It fits any server: a request is its method, target, address of the peer, and a function that
 * finds headers. Each address may send two requests a minute and 100 an hour. There is one rule per
 * window, so that the response headers describe both limits.
 *
 *     cc admission.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <weir/admit.h>

static weir_admission *counter;

/* Answers a request that came through our proxy, 10.0.0.1, which appends the address of its caller
 * to X-Forwarded-For. */
static int answer(const char *target, const char *forwarded_for)
{
    const weir_header headers[] = {{"X-Forwarded-For", forwarded_for}};
    weir_header_list list = {headers, 1};
    weir_request request;
    weir_admission_result admission;
    char fields[WEIR_FIELDS_BYTES_MAX];
    size_t fields_bytes;

    weir_request_init(&request, "GET", target, "10.0.0.1");
    request.header = weir_header_list_find;
    request.header_context = &list;
    if (weir_admission_try(counter, &request, &admission) < 0 ||
        weir_fields_format(&admission, WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_RATELIMIT, weir_wall_now(), fields,
                           sizeof fields, &fields_bytes) < 0)
        return -1;
    printf("%s for %s: %d\n%s", target, forwarded_for, weir_admission_result_status(&admission), fields);
    weir_admission_release(counter, &admission); /* the response was sent */
    return weir_admission_result_status(&admission);
}

/* Makes a rule that grants `requests` per window and key. The counter that gets the rule owns its
 * table. */
static int make_rule(const char *name, const weir_key_rule *key, uint32_t requests, int64_t window_ns,
                     weir_key_store *ret_repository, weir_rule *ret_rule)
{
    weir_limit limit;
    weir_table *table;

    if (weir_limit_fixed_window(&limit, requests, window_ns) < 0 || weir_table_new(&limit, 1, NULL, &table) < 0)
        return -1;
    *ret_repository = weir_table_key_store(table);
    weir_rule_init(ret_rule, name, key, ret_repository);
    ret_rule->owns_store = true;
    return 0;
}

static int open_counter(const weir_key_rule *key)
{
    weir_key_store repositories[2];
    weir_rule rules[2];

    if (make_rule("minute", key, 2, WEIR_MINUTE, &repositories[0], &rules[0]) < 0)
        return -1;
    if (make_rule("hour", key, 100, WEIR_HOUR, &repositories[1], &rules[1]) == 0) {
        if (weir_admission_new(rules, 2, NULL, &counter) == 0)
            return 0;
        repositories[1].free(repositories[1].context);
    }
    repositories[0].free(repositories[0].context);
    return -1;
}

int main(void)
{
    weir_network proxies;
    weir_key_rule key;

    if (weir_network_parse("10.0.0.0/8", &proxies) < 0)
        return 1;

    /* The key is the address of the peer. If the peer is one of our proxies, the key is the address
     * that the proxy appended. Addresses that callers write into the header are ignored. */
    weir_key_rule_init(&key, WEIR_KEY_IP);
    key.trusted = &proxies;
    key.trusted_count = 1;

    if (open_counter(&key) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    int ok = answer("/", "203.0.113.7") == 200 && answer("/login", "203.0.113.7") == 200;
    ok = ok && answer("/", "198.51.100.1, 203.0.113.7") == 429; /* the first address is forged */
    ok = ok && answer("/", "2001:db8::1") == 200;

    weir_admission_free(counter);
    return ok ? 0 : 1;
}
