/* SPDX-License-Identifier: MIT */
/* fuzz_check.c - fuzzes requests of a trusted proxy: the fields that a simple model finds are those
 * that are used, each of them once, and the rules judge exactly these. */
#include "serve/daemon/forwarded_request.h"
#include "serve/rules/rules.h"

#include <string.h>
#include <strings.h>

#include "core/admit/match.h"
#include "fuzz/fuzz.h"

static const char rules[] = "rules:\n"
                            "  - {name: login, match: {method: POST, path: /login}, key: ip, limit: 5/s}\n"
                            "  - {name: api, match: {path: '/API/**'}, key: 'token:authorization', limit: 5/s}\n"
                            "  - {name: tenant, match: {host: '*.example.org'}, key: host, limit: 5/s}\n"
                            "  - {name: rest, key: [route, method], limit: 5/s}\n"
                            "admission: {trusted: [unix], max_keys: 1000}\n";

/* Opens new rules for each input, so that no limit is charged yet. */
static struct wr_rules *open_book(void)
{
    static struct wr_rules_settings settings;
    char why[WR_CONFIG_WHY_BYTES];
    struct wr_rules *book = NULL;

    if (settings.rule_count == 0) {
        wr_rules_settings_init(&settings);
        fuzz_check(wr_config_parse(&wr_rules_schema, "weir.yaml", rules, sizeof rules - 1, weir_allocator_system(),
                                   &settings, why, sizeof why) == 0);
    }
    fuzz_check(wr_rules_new(&settings, NULL, &book, why, sizeof why) == 0);
    return book;
}

/* ---- a simple model of the fields ---- */

struct plain {
    struct wr_span value;
    size_t count;
};

static struct wr_span trim(const char *text, size_t bytes)
{
    while (bytes > 0 && (*text == ' ' || *text == '\t'))
        text++, bytes--;
    while (bytes > 0 && (text[bytes - 1] == ' ' || text[bytes - 1] == '\t'))
        bytes--;
    return (struct wr_span){text, bytes};
}

/* Finds all lines of the head that begin with "x-original-NAME:" or "x-forwarded-NAME:". */
static struct plain find(const char *head, size_t bytes, const char *name)
{
    struct plain plain = {{NULL, 0}, 0};
    const char *end = head + bytes, *next;

    for (const char *line = head; line < end; line = next) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline + 1;
        const char *colon = memchr(line, ':', (size_t)(newline - line));
        if (colon == NULL)
            continue;
        static const char *const begins[] = {"x-original-", "x-forwarded-"};
        for (size_t i = 0; i < 2; i++) {
            size_t length = strlen(begins[i]);
            if ((size_t)(colon - line) == length + strlen(name) && strncasecmp(line, begins[i], length) == 0 &&
                strncasecmp(line + length, name, strlen(name)) == 0) {
                plain.value = trim(colon + 1, (size_t)(newline - 1 - (colon + 1)));
                plain.count++;
            }
        }
    }
    return plain;
}

static bool is(struct plain plain, const char *text, size_t bytes)
{
    return plain.count == 0 ? text == NULL && bytes == 0
                            : plain.value.bytes == bytes && memcmp(plain.value.data, text, bytes) == 0;
}

/* ---- judging ---- */

static bool is_login(const weir_request *said)
{
    static const char login[] = "/login";
    size_t bytes = sizeof login - 1;

    return said->method_bytes == 4 && strncasecmp(said->method, "post", 4) == 0 && said->target_bytes >= bytes &&
           memcmp(said->target, login, bytes) == 0 && (said->target_bytes == bytes || said->target[bytes] == '?');
}

static void judge(const weir_request *said)
{
    static struct wr_verdict verdict;
    static struct wr_request_reading asked;
    struct wr_rules *book = open_book();
    weir_request_fault fault = wr_request_reading_begin(said, WR_READS_PATH | WR_READS_HOST, 0, &asked);

    fuzz_check(wr_rules_try_now(book, said, &verdict));
    fuzz_check(verdict.cause == WR_CAUSE_GRANTED || verdict.cause == WR_CAUSE_MALFORMED);
    fuzz_check(verdict.allowed == (verdict.cause == WR_CAUSE_GRANTED));
    if (fault != WEIR_FAULT_NONE)
        fuzz_check(!verdict.allowed && verdict.fault == fault);
    else if (is_login(said) && verdict.allowed)
        fuzz_check(strcmp(verdict.rule, "login") == 0);
    wr_rules_free(book);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct wr_request asks;
    const char *field = NULL;
    weir_request said;

    wr_request_init(&asks);
    if (wr_request_head(&asks, (struct wr_span){(const char *)data, bytes}) != WR_REQUEST_HEAD)
        return 0;
    const char *head = (const char *)data;
    struct plain method = find(head, asks.head_bytes, "method"), host = find(head, asks.head_bytes, "host");
    struct plain target = find(head, asks.head_bytes, "uri");
    bool is_url = target.count == 1 && target.value.bytes > 0 && strchr("/?", target.value.data[0]) == NULL;
    weir_request_init(&said, NULL, NULL, "unix:");
    said.header = wr_forwarded_request_header;
    said.header_context = &asks;
    weir_request_fault fault = wr_forwarded_request_read(&asks, &said, &field);
    bool is_sound = method.count == 1 && target.count == 1 && (host.count == 1 || (is_url && host.count == 0));
    fuzz_check((fault == WEIR_FAULT_NONE) == is_sound && (field == NULL) == is_sound);
    fuzz_check(wr_forwarded_request_is_present(&asks) == (target.count > 0));
    if (!is_sound) {
        fuzz_check(said.method == NULL && said.target == NULL && said.host == NULL);
        return 0;
    }
    fuzz_check(is(method, said.method, said.method_bytes) && is(target, said.target, said.target_bytes));
    fuzz_check(is(host, said.host, said.host_bytes));
    judge(&said);
    return 0;
}
