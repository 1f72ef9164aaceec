/* SPDX-License-Identifier: MIT */
/* fuzz_spelling.c - fuzzes spellings of a request: none bypasses a rule. The first byte selects the
 * part: 't' a target, 'h' a host, 'm' a method, 'c' credentials. Each bit of the second byte
 * selects a change that services ignore. A parsed text must parse to itself. A changed spelling is
 * refused, or has a reading of the text. */
#include "core/admit/credentials.h"
#include "core/admit/match.h"
#include "core/admit/method.h"

#include <stdio.h>
#include <string.h>

#include "base/ascii.h"
#include "fuzz/fuzz.h"

#define TEXT_MAX 3000
#define READINGS_MAX 64

struct text {
    char bytes[3 * TEXT_MAX + 64];
    size_t length;
};

static void put(struct text *text, const char *bytes, size_t count)
{
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

static void put_if(struct text *text, bool is_wanted, const char *bytes)
{
    put(text, bytes, is_wanted ? strlen(bytes) : 0);
}

static struct wr_span span_of(const struct text *text)
{
    return (struct wr_span){text->bytes, text->length};
}

static bool same(struct wr_span a, struct wr_span b)
{
    return a.bytes == b.bytes && (a.bytes == 0 || memcmp(a.data, b.data, a.bytes) == 0);
}

static char other_case(char c)
{
    return (char)(wr_ascii_is_alpha(c) ? c ^ 0x20 : c);
}

/* ---- targets ---- */

static weir_request_fault read_target(struct wr_span target, struct wr_request_reading *ret_asked)
{
    weir_request request;

    weir_request_init(&request, "GET", NULL, NULL);
    request.target = target.data == NULL ? "" : target.data;
    request.target_bytes = target.bytes;
    return wr_request_reading_begin(&request, WR_READS_PATH, 0, ret_asked);
}

static struct wr_span path_of(const struct wr_request_reading *asked)
{
    return (struct wr_span){asked->request.target, asked->request.target_bytes};
}

/* Returns true if both have the same route, or one is too long to be a route key. */
static bool same_route(struct wr_span a, struct wr_span b)
{
    char first[WEIR_KEY_MAX + 1], second[WEIR_KEY_MAX + 1];
    struct wr_buf one, other;

    wr_buf_init_fixed(&one, first, sizeof first);
    wr_buf_init_fixed(&other, second, sizeof second);
    return wr_route_append(&one, a, 0) != WEIR_FAULT_NONE || wr_route_append(&other, b, 0) != WEIR_FAULT_NONE ||
           strcmp(first, second) == 0;
}

/* Returns true if a path as it is written parses to itself, or is too long. The third case is a
 * path that no client sends: "/a%3Bb%2Fc" is "/a;b%2Fc" to a service that does not decode
 * slashes. */
static bool is_stable(struct wr_span path, unsigned loose)
{
    static struct wr_request_reading again;
    weir_request_fault fault = read_target(path, &again);

    if (fault == WEIR_FAULT_LONG)
        return true;
    if (fault != WEIR_FAULT_NONE)
        return fault == WEIR_FAULT_ESCAPE && (loose & (WR_LOOSE_ESCAPES | WR_LOOSE_PARTS)) == WR_LOOSE_ESCAPES;
    return same(path, path_of(&again)) && again.loose == 0;
}

/* Checks that each reading of a target is a path. */
static void check_readings(struct wr_span target)
{
    static struct wr_request_reading asked;
    size_t readings = 0;

    if (read_target(target, &asked) != WEIR_FAULT_NONE)
        return;
    do {
        struct wr_span path = path_of(&asked);
        fuzz_check(++readings <= READINGS_MAX && path.bytes > 0 && path.data[0] == '/');
        fuzz_check(memchr(path.data, '?', path.bytes) == NULL && memchr(path.data, '\0', path.bytes) == NULL);
        fuzz_check(is_stable(path, asked.loose));
        fuzz_check(same_route(target, path));
        if ((asked.loose & WR_LOOSE_SLASHES) != 0)
            fuzz_check(memmem(path.data, path.bytes, "//", 2) == NULL);
    } while (wr_request_reading_next(&asked));
    fuzz_check(asked.loose == 0);
}

/* Returns true if some reading of the target is this path. */
static bool has_reading(struct wr_span target, struct wr_span path)
{
    static struct wr_request_reading asked;

    weir_request_fault fault = read_target(target, &asked);
    if (fault == WEIR_FAULT_LONG)
        return true; /* it is refused */
    fuzz_check(fault == WEIR_FAULT_NONE);
    do {
        if (same(path_of(&asked), path))
            return true;
    } while (wr_request_reading_next(&asked));
    return false;
}

static void put_spelled(struct text *text, char c, unsigned how)
{
    char escape[4];

    if ((how & 1) != 0)
        c = other_case(c);
    if ((how & 2) != 0 && c == '/')
        put(text, "/", 1);
    if ((how & 4) != 0 && strchr("/@:,!$&'()*+=", c) != NULL) {
        snprintf(escape, sizeof escape, (how & 1) != 0 ? "%%%02x" : "%%%02X", (unsigned)c);
        put(text, escape, 3);
        return;
    }
    put(text, &c, 1);
}

/* Checks that every spelling of a plain path in lower case has it as a reading, or is refused. */
static void check_target(struct wr_span target, unsigned how)
{
    static struct wr_target read;
    static struct text spelled;
    char memory[TEXT_MAX + 1];
    struct wr_buf path;

    check_readings(target);
    wr_buf_init_fixed(&path, memory, sizeof memory);
    if (wr_route_append(&path, target, 0) != WEIR_FAULT_NONE)
        return;
    struct wr_span loosest = wr_buf_from(&path, 0);
    if (wr_target_read(loosest, &read) != WEIR_FAULT_NONE || memchr(loosest.data, '%', loosest.bytes) != NULL)
        return;
    fuzz_check(read.varies == 0 && read.is_written);
    spelled.length = 0;
    put_if(&spelled, (how & 8) != 0, "hTTp://h:80");
    put(&spelled, "/", 1);
    for (size_t i = 1; i < loosest.bytes; i++)
        put_spelled(&spelled, loosest.data[i], how);
    put_if(&spelled, (how & 16) != 0 && loosest.bytes > 1, "//");
    put_if(&spelled, (how & 32) != 0 && loosest.bytes > 1, ";a=1");
    put_if(&spelled, (how & 64) != 0 && loosest.bytes > 1, "/");
    put_if(&spelled, (how & 128) != 0, "?a=/../b");
    fuzz_check(has_reading(span_of(&spelled), loosest));
}

/* ---- hosts, methods, credentials ---- */

static void check_host(struct wr_span host, unsigned how)
{
    static struct text spelled;
    char memory[WR_HOST_MAX + 1], other[WR_HOST_MAX + 1];
    struct wr_buf first, again;

    wr_buf_init_fixed(&first, memory, sizeof memory);
    if (wr_host_append(&first, host) != WEIR_FAULT_NONE)
        return;
    wr_buf_init_fixed(&again, other, sizeof other);
    fuzz_check(wr_host_append(&again, wr_buf_from(&first, 0)) == WEIR_FAULT_NONE);
    fuzz_check(strcmp(memory, other) == 0);
    spelled.length = 0;
    for (size_t i = 0; i < first.length; i++) {
        char c = (how & 1) != 0 ? other_case(memory[i]) : memory[i];
        put(&spelled, &c, 1);
    }
    if ((how & 2) != 0 && memory[0] != '[')
        put(&spelled, ".", 1);
    if ((how & 4) != 0)
        put(&spelled, ":8080", (how & 8) != 0 ? 1 : 5);
    wr_buf_init_fixed(&again, other, sizeof other);
    fuzz_check(wr_host_append(&again, span_of(&spelled)) == WEIR_FAULT_NONE);
    fuzz_check(strcmp(memory, other) == 0);
}

static void check_method(struct wr_span method, unsigned how)
{
    static struct text spelled;
    char first[16], again[16];
    struct wr_buf buf;

    spelled.length = 0;
    for (size_t i = 0; i < method.bytes; i++) {
        char c = (how >> i % 8 & 1) != 0 ? other_case(method.data[i]) : method.data[i];
        put(&spelled, &c, 1);
    }
    fuzz_check(wr_method_fits(method, span_of(&spelled)) && wr_method_fits(span_of(&spelled), method));
    wr_buf_init_fixed(&buf, first, sizeof first);
    wr_method_append(&buf, method);
    wr_buf_init_fixed(&buf, again, sizeof again);
    wr_method_append(&buf, span_of(&spelled));
    fuzz_check(strcmp(first, again) == 0);
}

static void check_credentials(struct wr_span value, unsigned how)
{
    static const char *const schemes[] = {"Bearer", "bEARER", "token", "x"};
    static struct text spelled;
    struct wr_span token, again;

    if (wr_credentials_read(value, &token) != WEIR_FAULT_NONE)
        return;
    fuzz_check(token.bytes > 0 && memchr(token.data, ' ', token.bytes) == NULL);
    spelled.length = 0;
    put(&spelled, " \t ", how & 3);
    put(&spelled, schemes[how >> 2 & 3], strlen(schemes[how >> 2 & 3]));
    put(&spelled, " \t ", 1 + (how >> 4 & 1));
    put(&spelled, token.data, token.bytes);
    put(&spelled, "\t ", how >> 6 & 1);
    fuzz_check(wr_credentials_read(span_of(&spelled), &again) == WEIR_FAULT_NONE && same(token, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char memory[TEXT_MAX + 1];

    if (bytes < 2 || bytes - 2 > TEXT_MAX)
        return 0;
    memcpy(memory, data + 2, bytes - 2);
    memory[bytes - 2] = '\0';
    struct wr_span text = {memory, bytes - 2};
    if (data[0] == 'h')
        check_host(text, data[1]);
    else if (data[0] == 'm')
        check_method(text, data[1]);
    else if (data[0] == 'c')
        check_credentials(text, data[1]);
    else
        check_target(text, data[1]);
    return 0;
}
