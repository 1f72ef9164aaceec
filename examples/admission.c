/* SPDX-License-Identifier: MIT */
/* admission.c - may this HTTP request be served, and which headers tell the caller?
 *
 * Any server will do: the request is handed over as method, target, address of the peer, and a function that finds
 * headers. Each address may ask twice a minute.
 *
 *     cc admission.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <weir/admit.h>

static weir_counter *counter;

/* Answers a request that came through our proxy, 10.0.0.1, which adds its caller to X-Forwarded-For. */
static int answer(const char *target, const char *forwarded_for)
{
    const weir_header headers[] = {{"X-Forwarded-For", forwarded_for}};
    weir_header_list list = {headers, 1};
    weir_request request;
    weir_admission admission;
    char fields[WEIR_FIELDS_BYTES_MAX];
    size_t fields_bytes;

    weir_request_init(&request, "GET", target, "10.0.0.1");
    request.header = weir_header_list_find;
    request.header_context = &list;
    if (weir_counter_try(counter, &request, &admission) < 0 ||
        weir_fields_format(&admission, WEIR_FIELD_RETRY_AFTER | WEIR_FIELDS_RATELIMIT, weir_wall_now(), fields,
                           sizeof fields, &fields_bytes) < 0)
        return -1;
    printf("%s for %s: %d\n%s", target, forwarded_for, weir_admission_status(&admission), fields);
    weir_counter_release(counter, &admission); /* it has been served */
    return weir_admission_status(&admission);
}

int main(void)
{
    weir_limit limit;
    weir_table *table;
    weir_network proxies;
    weir_key key;
    weir_rule rule;

    if (weir_limit_fixed_window(&limit, 2, WEIR_MINUTE) < 0 || weir_table_new(&limit, 1, NULL, &table) < 0 ||
        weir_network_parse("10.0.0.0/8", &proxies) < 0)
        return 1;

    /* The caller is the address itself, or the one our proxies name: what strangers write there is not believed. */
    weir_key_init(&key, WEIR_KEY_IP);
    key.trusted = &proxies;
    key.trusted_count = 1;

    weir_repository addresses = weir_table_repository(table);
    weir_rule_init(&rule, "per-ip", &key, &addresses);
    rule.owns_repository = true;
    if (weir_counter_new(&rule, 1, NULL, &counter) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        weir_table_free(table);
        return 1;
    }

    int ok = answer("/", "203.0.113.7") == 200 && answer("/login", "203.0.113.7") == 200;
    ok = ok && answer("/", "198.51.100.1, 203.0.113.7") == 429; /* the first address is a lie */
    ok = ok && answer("/", "2001:db8::1") == 200;

    weir_counter_free(counter);
    return ok ? 0 : 1;
}
