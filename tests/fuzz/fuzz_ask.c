/* SPDX-License-Identifier: MIT */
/* fuzz_ask.c - fuzzes request bodies of the API: every accepted body is JSON, and means what
 * Jansson reads. */
#include "serve/daemon/api_request.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <weir/time.h>

#include "fuzz/fuzz.h"

static void check_text(const json_t *object, const char *name, struct wr_span text)
{
    const json_t *theirs = json_object_get(object, name);

    fuzz_check((theirs != NULL) == (text.data != NULL));
    if (theirs == NULL)
        return;
    fuzz_check(json_is_string(theirs) && json_string_length(theirs) == text.bytes);
    fuzz_check(memcmp(json_string_value(theirs), text.data, text.bytes) == 0);
}

/* Checks a number; a missing one counts as 0. */
static void check_number(const json_t *object, const char *name, int64_t number)
{
    const json_t *theirs = json_object_get(object, name);

    fuzz_check(theirs == NULL ? number == 0 : json_is_integer(theirs) && json_integer_value(theirs) == number);
}

/* Checks the header names only: of headers with the same name Jansson has the last. */
static void check_headers(const json_t *object, const struct wr_api_request *ask)
{
    const json_t *headers = json_object_get(object, "headers");

    fuzz_check(json_object_size(headers) <= ask->header_count);
    for (uint32_t i = 0; i < ask->header_count; i++) {
        struct wr_span name = ask->headers[i].name;
        if (name.bytes == 0 || memchr(name.data, '\0', name.bytes) != NULL)
            continue;
        char *text = strndup(name.data, name.bytes);
        fuzz_check(text != NULL && json_is_string(json_object_get(headers, text)));
        free(text);
    }
}

static void check_ask(const json_t *object, const struct wr_api_request *ask)
{
    fuzz_check(json_is_object(object));
    check_text(object, "method", ask->method);
    check_text(object, "target", ask->target);
    check_text(object, "host", ask->host);
    check_text(object, "client", ask->client);
    check_text(object, "rule", ask->rule);
    check_text(object, "key", ask->key);
    check_text(object, "hold", ask->hold);
    check_number(object, "cost", ask->cost);
    check_number(object, "used", ask->used);
    check_number(object, "timeout_ms", ask->timeout_ns / WEIR_MILLISECOND);
    check_number(object, "lease_ms", ask->lease_ns / WEIR_MILLISECOND);
    fuzz_check(((ask->members & WR_API_USED) != 0) == (json_object_get(object, "used") != NULL));
    fuzz_check(((ask->members & WR_API_TIMEOUT) != 0) == (json_object_get(object, "timeout_ms") != NULL));
    check_headers(object, ask);
}

static bool is_accepted(struct wr_api_reader *reader, struct wr_span body)
{
    struct wr_api_request ask;

    wr_api_reader_begin(reader, body);
    while (wr_api_reader_next(reader, &ask))
        continue;
    return reader->wrong == NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct wr_api_reader reader;
    struct wr_span body = {(const char *)data, bytes};
    struct wr_api_request ask;
    json_error_t error;
    size_t index = 0;

    if (!is_accepted(&reader, body))
        return 0;
    json_t *theirs = json_loadb(body.data, body.bytes, JSON_ALLOW_NUL, &error);
    /* The reader does not check the encoding of strings; its callers do. */
    if (theirs == NULL) {
        fuzz_check(json_error_code(&error) == json_error_invalid_utf8 ||
                   json_error_code(&error) == json_error_null_byte_in_key);
        return 0;
    }
    wr_api_reader_begin(&reader, body);
    while (wr_api_reader_next(&reader, &ask))
        check_ask(reader.is_list ? json_array_get(theirs, index++) : theirs, &ask);
    fuzz_check(!reader.is_list || index == json_array_size(theirs));
    json_decref(theirs);
    return 0;
}
