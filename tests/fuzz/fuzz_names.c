/* SPDX-License-Identifier: MIT */
/* fuzz_names.c - fuzzes host, method and credentials of a request: each is judged as services
 * understand it, or refused. The first byte selects one: 'h' a Host and, after a newline, a target;
 * 'm' a method; 'c' an Authorization. The services are simple models that share no code with the
 * reader. */
#include "core/admit/credentials.h"
#include "core/admit/match.h"
#include "core/admit/method.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fuzz/fuzz.h"

#define TEXT_MAX 1000

/* ---- hosts ---- */

static void cut(char *text, const char *at)
{
    if (at != NULL)
        text[at - text] = '\0';
}

static void fold(char *text)
{
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

/* Takes the host up to the first colon that is not in brackets, as many services do. */
static void take_until_colon(char *host)
{
    cut(host, strchr(host[0] == '[' && strchr(host, ']') != NULL ? strchr(host, ']') : host, ':'));
}

/* Takes the host up to the last colon, as other services do. */
static void take_until_last_colon(char *host)
{
    char *colon = strrchr(host, ':');

    if (colon != NULL && strchr(colon, ']') == NULL)
        cut(host, colon);
}

/* Drops what precedes the last "@", which is not part of the host (RFC 3986). */
static void take_after_user(char *host)
{
    char *at = strrchr(host, '@');

    if (at != NULL)
        memmove(host, at + 1, strlen(at + 1) + 1);
    take_until_last_colon(host);
}

/* Takes the first host of a list, which proxies make of several fields. */
static void take_first(char *host)
{
    cut(host, strpbrk(host, ", \t"));
    take_until_colon(host);
}

static void take_last(char *host)
{
    char *comma = strrchr(host, ',');

    if (comma != NULL)
        memmove(host, comma + 1, strlen(comma + 1) + 1);
    take_until_colon(host);
}

static void (*const takes_host[])(char *host) = {take_until_colon, take_until_last_colon, take_after_user, take_first,
                                                 take_last};

/* Returns true if a resolver takes both for the same host. */
static bool is_same_host(char *taken, const char *judged)
{
    size_t bytes = strlen(taken);
    struct in6_addr a6, b6;
    struct in_addr a4, b4;

    if (bytes > 1 && taken[bytes - 1] == '.')
        taken[--bytes] = '\0';
    fold(taken);
    /* An address in a form that inet_aton knows must be in its usual form. */
    if (judged[0] != '[') {
        bool is_number = inet_aton(judged, &a4) != 0;
        return strcmp(taken, judged) == 0 &&
               (!is_number || (inet_pton(AF_INET, judged, &b4) == 1 && a4.s_addr == b4.s_addr));
    }
    char text[TEXT_MAX + 1], own[TEXT_MAX + 1];
    if (taken[0] != '[' || taken[bytes - 1] != ']')
        return false;
    taken[bytes - 1] = '\0';
    snprintf(text, sizeof text, "%s", taken + 1);
    snprintf(own, sizeof own, "%.*s", (int)strlen(judged) - 2, judged + 1);
    return inet_pton(AF_INET6, text, &a6) == 1 && inet_pton(AF_INET6, own, &b6) == 1 &&
           memcmp(&a6, &b6, sizeof a6) == 0;
}

static void check_taken(const char *host, const char *judged)
{
    char text[TEXT_MAX + 1];

    for (size_t i = 0; i < sizeof takes_host / sizeof takes_host[0]; i++) {
        snprintf(text, sizeof text, "%s", host);
        takes_host[i](text);
        if (!is_same_host(text, judged)) {
            fprintf(stderr, "service %zu takes \"%s\" for \"%s\", judged is \"%s\"\n", i, host, text, judged);
            fuzz_check(false); /* a service takes another host */
        }
    }
}

/* Copies the text between "//" and the path. Returns false if there is no "//". */
static bool find_authority(const char *target, char *ret_text)
{
    if (strncasecmp(target, "http://", 7) != 0 && strncasecmp(target, "https://", 8) != 0)
        return false;
    target = strstr(target, "//") + 2;
    snprintf(ret_text, TEXT_MAX + 1, "%.*s", (int)strcspn(target, "/?#"), target);
    return true;
}

/* Some services use Host, some the URL: both must be the host that was judged. */
static void check_host(char *text)
{
    static struct wr_request_reading asked;
    char authority[TEXT_MAX + 1];
    char *target = text, *host = strsep(&target, "\n");
    weir_request request;

    weir_request_init(&request, "GET", target != NULL ? target : "/", NULL);
    request.host = host;
    request.host_bytes = strlen(host);
    if (wr_request_reading_begin(&request, WR_READS_HOST, 0, &asked) != WEIR_FAULT_NONE)
        return;
    fuzz_check(asked.request.host_bytes == strlen(asked.request.host) && asked.request.host_bytes > 0);
    host += strspn(host, " \t");
    for (size_t bytes = strlen(host); bytes > 0 && strchr(" \t", host[bytes - 1]) != NULL; bytes--)
        host[bytes - 1] = '\0';
    check_taken(host, asked.request.host);
    if (target != NULL && find_authority(target, authority))
        check_taken(authority, asked.request.host);
}

/* ---- methods ---- */

/* Checks that a method that is not a token is refused. A service compares a token in any case, and
 * only with methods that it handles. It answers a HEAD like a GET. */
static void check_method(const char *text)
{
    static const char *const names[] = {"GET",     "HEAD",  "POST",  "PUT",   "DELETE", "CONNECT",
                                        "OPTIONS", "TRACE", "PATCH", "PURGE", "post",   "x"};
    static struct wr_request_reading asked;
    const struct wr_span method = {text, strlen(text)};
    weir_request request;
    char memory[TEXT_MAX + 1];
    struct wr_buf key;

    weir_request_init(&request, text, "/", NULL);
    bool is_token = true;
    for (const char *c = text; *c != '\0'; c++)
        is_token = is_token && *c > ' ' && *c <= '~' && strchr("\"(),/:;<=>?@[\\]{}", *c) == NULL;
    fuzz_check(wr_request_reading_begin(&request, WR_READS_METHOD, 0, &asked) ==
               (is_token ? WEIR_FAULT_NONE : WEIR_FAULT_BYTES));
    if (!is_token)
        return;
    wr_buf_init_fixed(&key, memory, sizeof memory);
    wr_method_append(&key, method);
    bool is_known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bool is_meant = strcasecmp(names[i], text) == 0 || (i == 0 && strcasecmp(text, "HEAD") == 0);
        const struct wr_span judged = {asked.request.method, asked.request.method_bytes};
        fuzz_check(wr_method_fits(wr_span_of(names[i]), method) == is_meant);
        fuzz_check(wr_method_fits(wr_span_of(names[i]), judged) == is_meant);
        if (i < 9 && strcasecmp(names[i], text) == 0)
            is_known = strcmp(memory, names[i]) == 0 && wr_span_is(judged, names[i]);
    }
    fuzz_check(is_known || strcmp(memory, "OTHER") == 0); /* callers cannot make many keys */
}

/* ---- credentials ---- */

/* Takes the second word, or the only one. Returns false if there is no word. */
static bool take_second_word(const char *value, char *ret_token)
{
    const char *first = value + strspn(value, " \t"), *end = first + strcspn(first, " \t");
    const char *second = end + strspn(end, " \t"), *word = *second != '\0' ? second : first;

    snprintf(ret_token, TEXT_MAX + 1, "%.*s", (int)strcspn(word, " \t"), word);
    return *first != '\0';
}

static bool take_last_word(const char *value, char *ret_token)
{
    size_t bytes = strlen(value);

    while (bytes > 0 && strchr(" \t", value[bytes - 1]) == NULL)
        bytes--;
    snprintf(ret_token, TEXT_MAX + 1, "%s", value + bytes);
    return true;
}

/* ^Bearer +(.*)$ */
static bool take_rest(const char *value, char *ret_token)
{
    value += strcspn(value, " \t");
    value += strspn(value, " \t");
    snprintf(ret_token, TEXT_MAX + 1, "%s", value);
    return *value != '\0';
}

/* Takes the first token of a list: "a, b" and "a;b" have two. */
static bool take_first_of_list(const char *value, char *ret_token)
{
    bool is_there = take_second_word(value, ret_token);

    cut(ret_token, strpbrk(ret_token, ",;"));
    return is_there;
}

static bool take_without_quotes(const char *value, char *ret_token)
{
    char *to = ret_token;

    if (!take_second_word(value, ret_token))
        return false;
    for (const char *at = ret_token; *at != '\0'; at++)
        if (*at != '"' && *at != '\'')
            *to++ = *at;
    *to = '\0';
    return true;
}

static bool (*const takes_token[])(const char *value, char *ret_token) = {take_second_word, take_last_word, take_rest,
                                                                          take_first_of_list, take_without_quotes};

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

static int digit_of(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, c);

    return at != NULL ? (int)(at - digits) : c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Decodes Base64 like a lenient reader, which skips other characters, and encodes it again. */
static void recode(const char *text, size_t bytes, const char *last, bool is_padded, char *ret_text)
{
    char *at = ret_text;
    size_t whole = 0, written = 0;

    for (size_t i = 0; i < bytes && text[i] != '='; i++)
        whole += digit_of(text[i]) >= 0;
    whole = whole * 6 / 8; /* whole bytes; the rest of the last digit has no meaning */
    size_t wanted = (whole * 8 + 5) / 6;
    for (size_t i = 0; i < bytes && text[i] != '=' && written < wanted; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            continue;
        written++;
        if (written == wanted && whole * 8 % 6 != 0)
            digit &= whole * 8 % 6 == 2 ? 0x30 : 0x3c;
        *at++ = digit < 62 ? digits[digit] : last[digit - 62];
    }
    for (; is_padded && written % 4 != 0; written++)
        *at++ = '=';
    *at = '\0';
}

static void check_basic(const char *token)
{
    char again[TEXT_MAX + 8];

    recode(token, strlen(token), "+/", true, again);
    fuzz_check(strcmp(again, token) == 0);
}

static void check_jwt(const char *token)
{
    char again[TEXT_MAX + 8];

    for (const char *at = token;; at++) {
        size_t bytes = strcspn(at, ".");
        recode(at, bytes, "-_", false, again);
        fuzz_check(strlen(again) == bytes && memcmp(again, at, bytes) == 0);
        at += bytes;
        if (*at == '\0')
            return;
    }
}

static void check_credentials(char *value)
{
    char token[TEXT_MAX + 1], taken[TEXT_MAX + 1];
    struct wr_span judged;

    if (wr_credentials_read(wr_span_of(value), &judged) != WEIR_FAULT_NONE)
        return;
    snprintf(token, sizeof token, "%.*s", (int)judged.bytes, judged.data);
    fuzz_check(strlen(token) == judged.bytes && judged.bytes > 0);
    value += strspn(value, " \t");
    for (size_t bytes = strlen(value); bytes > 0 && strchr(" \t", value[bytes - 1]) != NULL; bytes--)
        value[bytes - 1] = '\0';
    for (size_t i = 0; i < sizeof takes_token / sizeof takes_token[0]; i++)
        if (takes_token[i](value, taken) && strcmp(taken, token) != 0) {
            fprintf(stderr, "service %zu takes \"%s\" for \"%s\", judged is \"%s\"\n", i, value, taken, token);
            fuzz_check(false); /* a service takes another token */
        }
    bool is_basic = strncasecmp(value, "basic", 5) == 0 && strchr(" \t", value[5]) != NULL && value[5] != '\0';
    if (is_basic)
        check_basic(token);
    else if (strncmp(token, "eyJ", 3) == 0 && strchr(token, '.') != NULL)
        check_jwt(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char text[TEXT_MAX + 1];

    if (bytes < 1 || bytes > TEXT_MAX || memchr(data, '\0', bytes) != NULL)
        return 0;
    memcpy(text, data + 1, bytes - 1);
    text[bytes - 1] = '\0';
    if (data[0] == 'h')
        check_host(text);
    else if (data[0] == 'm')
        check_method(text);
    else if (data[0] == 'c')
        check_credentials(text);
    return 0;
}
