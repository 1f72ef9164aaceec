/* SPDX-License-Identifier: MIT */
/* api_request.c - parses the JSON (RFC 8259) of API requests. */
#include "serve/daemon/api_request.h"

#include "base/ascii.h"

#include <weir/time.h>

static bool refuse_json(struct wr_api_reader *reader, const char *wrong)
{
    if (reader->wrong == NULL)
        reader->wrong = wrong;
    return false;
}

static void skip_json_blanks(struct wr_api_reader *reader)
{
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

/* Skips blanks and one `c`. Returns false if the next character is not `c`. */
static bool take_json_char(struct wr_api_reader *reader, char c)
{
    skip_json_blanks(reader);
    if (reader->at == reader->end || *reader->at != c)
        return false;
    reader->at++;
    return true;
}

/* ---- strings ---- */

static bool put_scratch_byte(struct wr_api_reader *reader, uint32_t byte)
{
    if (reader->scratch_bytes == WR_API_SCRATCH_BYTES)
        return refuse_json(reader, "strings with escapes are too long; send them without escapes");
    reader->scratch[reader->scratch_bytes++] = (char)byte;
    return true;
}

static bool put_point(struct wr_api_reader *reader, uint32_t point)
{
    if (point < 0x80)
        return put_scratch_byte(reader, point);
    if (point < 0x800)
        return put_scratch_byte(reader, 0xc0 | point >> 6) && put_scratch_byte(reader, 0x80 | (point & 0x3f));
    if (point < 0x10000)
        return put_scratch_byte(reader, 0xe0 | point >> 12) && put_scratch_byte(reader, 0x80 | (point >> 6 & 0x3f)) &&
               put_scratch_byte(reader, 0x80 | (point & 0x3f));
    return put_scratch_byte(reader, 0xf0 | point >> 18) && put_scratch_byte(reader, 0x80 | (point >> 12 & 0x3f)) &&
           put_scratch_byte(reader, 0x80 | (point >> 6 & 0x3f)) && put_scratch_byte(reader, 0x80 | (point & 0x3f));
}

static bool read_hex(struct wr_api_reader *reader, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    if (reader->end - reader->at < 4)
        return refuse_json(reader, "a string that does not end");
    for (int i = 0; i < 4; i++) {
        int digit = wr_ascii_hex_value(*reader->at++);
        if (digit < 0)
            return refuse_json(reader, "a string with an invalid escape; \\u has four hex digits");
        unit = unit << 4 | (uint32_t)digit;
    }
    *ret_unit = unit;
    return true;
}

/* Reads the code unit after "\u". A surrogate pair makes one character; half a pair is refused. */
static bool read_unit(struct wr_api_reader *reader)
{
    uint32_t unit = 0, low = 0;
    if (!read_hex(reader, &unit))
        return false;
    if (unit < 0xd800 || unit > 0xdfff)
        return put_point(reader, unit);
    if (unit > 0xdbff || reader->end - reader->at < 6 || reader->at[0] != '\\' || reader->at[1] != 'u')
        return refuse_json(reader, "a string with half a surrogate pair");
    reader->at += 2;
    if (!read_hex(reader, &low))
        return false;
    if (low < 0xdc00 || low > 0xdfff)
        return refuse_json(reader, "a string with half a surrogate pair");
    return put_point(reader, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
}

static bool read_json_escape(struct wr_api_reader *reader)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (reader->at == reader->end)
        return refuse_json(reader, "a string that does not end");
    char c = *reader->at++;
    if (c == 'u')
        return read_unit(reader);
    const char *hit = c == '\0' ? NULL : strchr(from, c);
    if (hit == NULL)
        return refuse_json(reader, "a string with an invalid escape");
    return put_scratch_byte(reader, (unsigned char)to[hit - from]);
}

/* Decodes a string into the scratch buffer, from its first escape on. */
static bool read_escaped(struct wr_api_reader *reader, const char *start, struct wr_span *ret_text)
{
    size_t at = reader->scratch_bytes;
    for (const char *c = start; c < reader->at; c++)
        if (!put_scratch_byte(reader, (unsigned char)*c))
            return false;
    while (reader->at < reader->end && *reader->at != '"') {
        char c = *reader->at++;
        if ((unsigned char)c < 0x20)
            return refuse_json(reader, "a string with a control character");
        if (c == '\\' ? !read_json_escape(reader) : !put_scratch_byte(reader, (unsigned char)c))
            return false;
    }
    if (reader->at == reader->end)
        return refuse_json(reader, "a string that does not end");
    reader->at++;
    *ret_text = (struct wr_span){reader->scratch + at, reader->scratch_bytes - at};
    return true;
}

static bool read_string(struct wr_api_reader *reader, struct wr_span *ret_text)
{
    if (!take_json_char(reader, '"'))
        return refuse_json(reader, "a string is expected here");
    const char *start = reader->at;
    for (; reader->at < reader->end && *reader->at != '"'; reader->at++) {
        if (*reader->at == '\\')
            return read_escaped(reader, start, ret_text);
        if ((unsigned char)*reader->at < 0x20)
            return refuse_json(reader, "a string with a control character");
    }
    if (reader->at == reader->end)
        return refuse_json(reader, "a string that does not end");
    *ret_text = (struct wr_span){start, (size_t)(reader->at - start)};
    reader->at++;
    return true;
}

/* ---- numbers ---- */

static bool read_whole_number(struct wr_api_reader *reader, uint64_t min, uint64_t max, const char *wrong,
                              uint64_t *ret_number)
{
    uint64_t number = 0;
    skip_json_blanks(reader);
    const char *start = reader->at;
    while (reader->at < reader->end && wr_ascii_is_digit(*reader->at) && reader->at - start < 19)
        number = number * 10 + (uint64_t)(*reader->at++ - '0');
    bool is_more = reader->at < reader->end && (wr_ascii_is_alnum(*reader->at) || strchr(".+-_", *reader->at) != NULL);
    bool has_zero = reader->at - start > 1 && *start == '0';
    if (reader->at == start || is_more || has_zero || number < min || number > max)
        return refuse_json(reader, wrong);
    *ret_number = number;
    return true;
}

static bool read_ms(struct wr_api_reader *reader, const char *wrong, int64_t *ret_ns)
{
    uint64_t ms = 0;
    if (!read_whole_number(reader, 0, 86400000, wrong, &ms))
        return false;
    *ret_ns = (int64_t)ms * WEIR_MILLISECOND;
    return true;
}

static bool read_count_member(struct wr_api_reader *reader, uint64_t min, const char *wrong, uint32_t *ret_count)
{
    uint64_t number = 0;
    if (!read_whole_number(reader, min, UINT32_MAX, wrong, &number))
        return false;
    *ret_count = (uint32_t)number;
    return true;
}

/* ---- objects ---- */

static bool read_headers_object(struct wr_api_reader *reader, struct wr_api_request *ask)
{
    if (!take_json_char(reader, '{'))
        return refuse_json(reader, "headers must be an object of strings");
    if (take_json_char(reader, '}'))
        return true;
    do {
        if (ask->header_count == WR_API_HEADERS_MAX)
            return refuse_json(reader, "more than 64 headers");
        struct wr_api_request_header *header = &ask->headers[ask->header_count];
        if (!read_string(reader, &header->name))
            return false;
        if (!take_json_char(reader, ':'))
            return refuse_json(reader, "a member without a colon");
        if (!read_string(reader, &header->value))
            return false;
        ask->header_count++;
    } while (take_json_char(reader, ','));
    return take_json_char(reader, '}') || refuse_json(reader, "an object that does not end");
}

static const char *const names[] = {"method", "target", "host", "client",     "rule",     "key",
                                    "hold",   "cost",   "used", "timeout_ms", "lease_ms", "headers"};
#define MEMBERS (sizeof names / sizeof names[0])

static bool read_member(struct wr_api_reader *reader, size_t member, struct wr_api_request *ask)
{
    struct wr_span *const texts[] = {&ask->method, &ask->target, &ask->host, &ask->client,
                                     &ask->rule,   &ask->key,    &ask->hold};
    switch (1U << member) {
    case WR_API_COST:
        return read_count_member(reader, 1, "cost must be a whole number, 1 ... 4294967295", &ask->cost);
    case WR_API_USED:
        return read_count_member(reader, 0, "used must be a whole number, 0 ... 4294967295", &ask->used);
    case WR_API_TIMEOUT:
        return read_ms(reader, "timeout_ms must be a whole number, 0 ... 86400000", &ask->timeout_ns);
    case WR_API_LEASE:
        return read_ms(reader, "lease_ms must be a whole number, 0 ... 86400000", &ask->lease_ns);
    case WR_API_HEADERS:
        return read_headers_object(reader, ask);
    default:
        return read_string(reader, texts[member]);
    }
}

static size_t find_member(struct wr_span name)
{
    size_t i = 0;
    while (i < MEMBERS && !wr_span_is(name, names[i]))
        i++;
    return i;
}

static bool read_object(struct wr_api_reader *reader, struct wr_api_request *ask)
{
    if (!take_json_char(reader, '{'))
        return refuse_json(reader, "an object is expected here");
    if (take_json_char(reader, '}'))
        return true;
    do {
        struct wr_span name;
        if (!read_string(reader, &name))
            return false;
        size_t member = find_member(name);
        if (member == MEMBERS)
            return refuse_json(reader, "a member that is not known; see contrib/openapi.yaml");
        if ((ask->members & 1U << member) != 0)
            return refuse_json(reader, "a member that is given twice");
        ask->members |= 1U << member;
        if (!take_json_char(reader, ':'))
            return refuse_json(reader, "a member without a colon");
        if (!read_member(reader, member, ask))
            return false;
    } while (take_json_char(reader, ','));
    return take_json_char(reader, '}') || refuse_json(reader, "an object that does not end");
}

/* ---- bodies ---- */

void wr_api_reader_begin(struct wr_api_reader *ret_reader, struct wr_span body)
{
    ret_reader->at = body.data;
    ret_reader->end = body.data + body.bytes;
    ret_reader->wrong = NULL;
    ret_reader->has_begun = ret_reader->is_list = false;
    ret_reader->scratch_bytes = 0;
}

void wr_api_reader_resume(struct wr_api_reader *ret_reader, struct wr_span body, size_t at, bool is_list)
{
    wr_api_reader_begin(ret_reader, body);
    ret_reader->at = body.data + at;
    ret_reader->has_begun = true;
    ret_reader->is_list = is_list;
}

static bool expect_body_end(struct wr_api_reader *reader)
{
    skip_json_blanks(reader);
    if (reader->at < reader->end)
        (void)refuse_json(reader, "data after the end");
    return false;
}

bool wr_api_reader_next(struct wr_api_reader *reader, struct wr_api_request *ret_ask)
{
    bool is_first = !reader->has_begun;
    reader->has_begun = true;
    reader->scratch_bytes = 0;
    if (is_first)
        reader->is_list = take_json_char(reader, '[');
    if (reader->is_list && take_json_char(reader, ']'))
        return expect_body_end(reader);
    if (!is_first && !reader->is_list)
        return expect_body_end(reader);
    if (!is_first && !take_json_char(reader, ','))
        return refuse_json(reader, "a list that does not end");
    memset(ret_ask, 0, offsetof(struct wr_api_request, headers));
    return read_object(reader, ret_ask);
}

const char *wr_api_request_header(void *context, const char *name, size_t index, size_t *ret_bytes)
{
    const struct wr_api_request *ask = context;
    size_t bytes = strlen(name);
    for (uint32_t i = 0; i < ask->header_count; i++) {
        const struct wr_api_request_header *header = &ask->headers[i];
        if (header->name.bytes != bytes || !wr_ascii_same(header->name.data, name, bytes) || index-- > 0)
            continue;
        *ret_bytes = header->value.bytes;
        return header->value.data;
    }
    return NULL;
}
