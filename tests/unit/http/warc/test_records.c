/* SPDX-License-Identifier: MIT */
/* test_records.c - tests of the bytes of archive records. tests/archive reads them with the reader
 * of another project. */
#include "http/warc/warc.h"
#include "lib/alloc.h"
#include "lib/test.h"

#include <weir/limit.h>
#include <zlib.h>

#define URL "http://a.example/"
#define REQUEST "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
#define TEXT_MAX 65536
#define WHEN (INT64_C(1700000000250) * WEIR_MILLISECOND) /* 2023-11-14T22:13:20.250Z */

struct archive_fixture {
    test_allocator memory;
    struct wr_warc *warc;
    struct wr_buf buf;
};

static void set_up(struct archive_fixture *rig)
{
    test_allocator_init(&rig->memory);
    wr_buf_init(&rig->buf, &rig->memory.allocator, (size_t)1 << 24);
    assert_int_equal(wr_warc_new(&rig->memory.allocator, &rig->warc), 0);
}

static void tear_down(struct archive_fixture *rig)
{
    wr_warc_free(rig->warc);
    wr_buf_release(&rig->buf);
    assert_int_equal(rig->memory.live, 0);
}

/* Unpacks the gzip member at `at`. Returns the offset of the next one. */
static size_t unpack(const struct wr_buf *buf, size_t at, char ret_text[TEXT_MAX])
{
    z_stream stream = {.next_in = (unsigned char *)buf->bytes + at,
                       .avail_in = (uInt)(buf->length - at),
                       .next_out = (unsigned char *)ret_text,
                       .avail_out = TEXT_MAX - 1};
    assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    ret_text[stream.total_out] = '\0';
    at += stream.total_in;
    (void)inflateEnd(&stream);
    return at;
}

static struct wr_warc_exchange exchange_of(struct archive_fixture *rig, const char *head, struct wr_span body)
{
    static uint8_t digest[WR_WARC_DIGEST];
    wr_warc_payload_digest(rig->warc, body, digest);
    return (struct wr_warc_exchange){.url = wr_span_of(URL),
                                     .wall_at = WHEN,
                                     .request = wr_span_of(REQUEST),
                                     .head = wr_span_of(head),
                                     .body = body,
                                     .digest = digest};
}

/* Returns the value of a field in the head of a text, or NULL. It is valid until the fourth call
 * after it. */
static const char *field(const char *text, const char *name)
{
    static char values[4][256];
    static int turn;
    char *value = values[turn++ % 4], wanted[64];
    (void)snprintf(wanted, sizeof wanted, "\r\n%s: ", name);
    const char *end = strstr(text, "\r\n\r\n"), *at = strstr(text, wanted);
    if (at == NULL || at > end)
        return NULL;
    at += strlen(wanted);
    (void)snprintf(value, sizeof values[0], "%.*s", (int)(strstr(at, "\r\n") - at), at);
    return value;
}

static const char *block(const char *text)
{
    return strstr(text, "\r\n\r\n") + 4;
}

/* Returns the block of a response with this head and body, without the end of the record. */
static const char *block_of(const char *head, const char *body)
{
    static char text[TEXT_MAX];
    struct archive_fixture rig;
    set_up(&rig);
    struct wr_warc_exchange exchange = exchange_of(&rig, head, wr_span_of(body));
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    (void)unpack(&rig.buf, 0, text);
    tear_down(&rig);
    size_t bytes = strlen(text);
    assert_string_equal(text + bytes - 4, "\r\n\r\n");
    text[bytes - 4] = '\0';
    assert_int_equal(strtoul(field(text, "Content-Length"), NULL, 10), strlen(block(text)));
    return block(text);
}

static void exchange_is_a_response_and_its_request(void **state)
{
    static char text[TEXT_MAX];
    struct wr_address address;
    struct archive_fixture rig;
    (void)state;
    set_up(&rig);
    struct wr_warc_exchange exchange =
        exchange_of(&rig, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", wr_span_of("hello"));
    assert_true(wr_address_parse(wr_span_of("192.0.2.1"), &address));
    exchange.address = &address;
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    size_t next = unpack(&rig.buf, 0, text);
    char response[256];
    (void)snprintf(response, sizeof response, "%s", field(text, "WARC-Record-ID"));
    assert_int_equal(strncmp(text, "WARC/1.1\r\n", 10), 0);
    assert_string_equal(field(text, "WARC-Type"), "response");
    assert_string_equal(field(text, "WARC-Target-URI"), URL);
    assert_string_equal(field(text, "WARC-Date"), "2023-11-14T22:13:20.250Z");
    assert_string_equal(field(text, "WARC-IP-Address"), "192.0.2.1");
    /* The digest is: printf hello | sha1sum | xxd -r -p | base32 */
    assert_string_equal(field(text, "WARC-Payload-Digest"), "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N");
    assert_string_equal(field(text, "Content-Type"), "application/http;msgtype=response");
    assert_null(field(text, "WARC-Truncated"));
    assert_string_equal(block(text), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n");
    assert_int_equal(unpack(&rig.buf, next, text), rig.buf.length);
    assert_string_equal(field(text, "WARC-Type"), "request");
    assert_string_equal(field(text, "WARC-Concurrent-To"), response);
    assert_string_not_equal(field(text, "WARC-Record-ID"), response);
    assert_string_equal(block(text), REQUEST "\r\n\r\n");
    tear_down(&rig);
}

/* The archived body is decoded, so its head is changed to match. */
static void archived_head_matches_the_archived_body(void **state)
{
    static const struct {
        const char *came, *kept;
    } heads[] = {
        {"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n\r\n"},
        {"HTTP/1.1 200\nA: b\n\n", "HTTP/1.1 200\r\nA: b\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\nA: b\r\nContent-Length: 99\r\n\r\n",
         "HTTP/1.1 200 OK\r\nX-Archive-Orig-content-encoding: br\r\nA: b\r\nX-Archive-Orig-Content-Length: 99\r\n"
         "Content-Length: 4\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Content-Length: 1\r\n\r\n",
         "HTTP/1.1 200 OK\r\nX-Archive-Orig-Transfer-Encoding: chunked\r\nX-Content-Length: 1\r\n"
         "Content-Length: 4\r\n\r\n"},
        {"HTTP/2 404 \r\nserver: x\r\n\r\n", "HTTP/1.1 404 \r\nserver: x\r\n\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        char whole[512];
        (void)snprintf(whole, sizeof whole, "%sbody", heads[i].kept);
        assert_string_equal(block_of(heads[i].came, "body"), whole);
    }
}

static void revisit_record_refers_to_the_payload_and_has_none(void **state)
{
    static char text[TEXT_MAX];
    const struct wr_warc_original original = {wr_span_of("http://b.example/"), WHEN - WEIR_SECOND};
    struct archive_fixture rig;
    (void)state;
    set_up(&rig);
    struct wr_warc_exchange exchange =
        exchange_of(&rig, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", wr_span_of("hello"));
    exchange.original = &original;
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    (void)unpack(&rig.buf, 0, text);
    assert_string_equal(field(text, "WARC-Type"), "revisit");
    assert_string_equal(field(text, "WARC-Profile"),
                        "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest");
    assert_string_equal(field(text, "WARC-Refers-To-Target-URI"), "http://b.example/");
    assert_string_equal(field(text, "WARC-Refers-To-Date"), "2023-11-14T22:13:19.250Z");
    assert_string_equal(field(text, "WARC-Payload-Digest"), "sha1:VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N");
    assert_string_equal(block(text), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\r\n\r\n");
    tear_down(&rig);
}

static void response_304_is_a_revisit_record_of_the_earlier_one(void **state)
{
    static char text[TEXT_MAX];
    struct archive_fixture rig;
    (void)state;
    set_up(&rig);
    struct wr_warc_exchange exchange =
        exchange_of(&rig, "HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n", (struct wr_span){NULL, 0});
    exchange.is_unchanged = true;
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    (void)unpack(&rig.buf, 0, text);
    assert_string_equal(field(text, "WARC-Type"), "revisit");
    assert_string_equal(field(text, "WARC-Profile"), "http://netpreserve.org/warc/1.1/revisit/server-not-modified");
    assert_string_equal(field(text, "WARC-Refers-To-Target-URI"), URL);
    assert_null(field(text, "WARC-Payload-Digest"));
    assert_null(strstr(block(text), "\r\nContent-Length"));
    tear_down(&rig);
}

static void truncated_record_is_marked(void **state)
{
    static char text[TEXT_MAX];
    struct archive_fixture rig;
    (void)state;
    set_up(&rig);
    struct wr_warc_exchange exchange = exchange_of(&rig, "HTTP/1.1 200 OK\r\n\r\n", wr_span_of("he"));
    exchange.truncated = "length";
    exchange.request.bytes = 0;
    exchange.is_http2 = true;
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    assert_int_equal(unpack(&rig.buf, 0, text), rig.buf.length);
    assert_string_equal(field(text, "WARC-Truncated"), "length");
    assert_string_equal(field(text, "WARC-Protocol"), "h2");
    tear_down(&rig);
}

static void warcinfo_record_names_the_software_and_the_agent(void **state)
{
    static char text[TEXT_MAX];
    const struct wr_warc_info info = {.name = wr_span_of("a-00000.warc.gz"),
                                      .wall_at = WHEN,
                                      .software = wr_span_of("weir/1"),
                                      .agent = wr_span_of("me (+x)"),
                                      .part_of = wr_span_of("job 3"),
                                      .obeys_robots = true};
    struct archive_fixture rig;
    (void)state;
    set_up(&rig);
    assert_int_equal(wr_warc_append_info(rig.warc, &info, &rig.buf), 0);
    assert_int_equal(unpack(&rig.buf, 0, text), rig.buf.length);
    assert_string_equal(field(text, "WARC-Type"), "warcinfo");
    assert_string_equal(field(text, "WARC-Filename"), "a-00000.warc.gz");
    assert_non_null(strstr(block(text), "software: weir/1\r\n"));
    assert_non_null(strstr(block(text), "robots: obey\r\nhttp-header-user-agent: me (+x)\r\n"));
    tear_down(&rig);
}

static void large_and_odd_bodies_are_archived_unchanged(void **state)
{
    struct archive_fixture rig;
    size_t bytes = 3000001;
    char *body = malloc(bytes);
    uint32_t x = 1;
    (void)state;
    for (size_t i = 0; i < bytes; i++)
        body[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
    set_up(&rig);
    struct wr_warc_exchange exchange = exchange_of(&rig, "HTTP/1.1 200 OK\r\n\r\n", (struct wr_span){body, bytes});
    assert_int_equal(wr_warc_append_exchange(rig.warc, &exchange, &rig.buf), 0);
    unsigned char *text = malloc(bytes + 4096);
    uLongf text_bytes = bytes + 4096;
    z_stream stream = {.next_in = (unsigned char *)rig.buf.bytes,
                       .avail_in = (uInt)rig.buf.length,
                       .next_out = text,
                       .avail_out = (uInt)text_bytes};
    assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_memory_equal(text + stream.total_out - 4 - bytes, body, bytes);
    (void)inflateEnd(&stream);
    free(text);
    free(body);
    tear_down(&rig);
}

static void archive_allocation_failure_is_an_error(void **state)
{
    struct archive_fixture rig;
    (void)state;
    for (int failing = 1; failing < 6; failing++) {
        test_allocator_init(&rig.memory);
        wr_buf_init(&rig.buf, &rig.memory.allocator, (size_t)1 << 24);
        rig.memory.fail_at = failing;
        int error = wr_warc_new(&rig.memory.allocator, &rig.warc);
        if (error == 0) {
            struct wr_warc_exchange exchange = exchange_of(&rig, "HTTP/1.1 200 OK\r\n\r\n", wr_span_of("x"));
            error = wr_warc_append_exchange(rig.warc, &exchange, &rig.buf);
            wr_warc_free(rig.warc);
        }
        assert_true(error == WEIR_E_NOMEM || rig.memory.fail_at > 0);
        wr_buf_release(&rig.buf);
        assert_int_equal(rig.memory.live, 0);
    }
}

/* ---- payloads that were seen ---- */

static struct wr_payload_key key_of(uint64_t number)
{
    return (struct wr_payload_key){.digest = {(uint8_t)number}, .keyed = number, .bytes = 1000};
}

static void seen_payload_is_found_by_its_whole_key(void **state)
{
    test_allocator memory;
    struct wr_payload_table *seen;
    struct wr_warc_original found;
    const struct wr_warc_original original = {wr_span_of(URL), WHEN};
    struct wr_payload_key key = key_of(7), other = key;
    (void)state;
    test_allocator_init(&memory);
    assert_int_equal(wr_payload_table_new(&memory.allocator, &seen), 0);
    assert_false(wr_payload_table_find(seen, &key, &found));
    wr_payload_table_put(seen, &key, &original);
    assert_true(wr_payload_table_find(seen, &key, &found));
    assert_true(wr_span_is(found.url, URL) && found.wall_at == WHEN);
    other.keyed += WR_PAYLOAD_TABLE_SLOTS; /* the same SHA-1 and the same slot */
    assert_false(wr_payload_table_find(seen, &other, &found));
    other = key;
    other.bytes++;
    assert_false(wr_payload_table_find(seen, &other, &found));
    other = key;
    other.digest[19] = 1;
    assert_false(wr_payload_table_find(seen, &other, &found));
    wr_payload_table_put(seen, &other, &original); /* replaces the payload of the slot */
    assert_false(wr_payload_table_find(seen, &key, &found));
    wr_payload_table_free(seen);
    assert_int_equal(memory.live, 0);
}

static void seen_payloads_take_bounded_memory(void **state)
{
    static char text[WR_PAYLOAD_URL_MAX + 1];
    test_allocator memory;
    struct wr_payload_table *seen;
    (void)state;
    test_allocator_init(&memory);
    assert_int_equal(wr_payload_table_new(&memory.allocator, &seen), 0);
    memset(text, 'a', sizeof text);
    for (uint64_t i = 0; i < 3 * WR_PAYLOAD_TABLE_SLOTS; i++) {
        struct wr_payload_key key = key_of(i);
        wr_payload_table_put(seen, &key, &(struct wr_warc_original){{text, 30}, WHEN});
    }
    assert_true(memory.live_bytes < 10 << 20);
    long before = memory.takes;
    struct wr_payload_key key = key_of(1);
    /* URL too long */
    wr_payload_table_put(seen, &key, &(struct wr_warc_original){{text, sizeof text}, WHEN});
    key.bytes = WR_PAYLOAD_BYTES_MIN - 1;
    wr_payload_table_put(seen, &key, &(struct wr_warc_original){{text, 30}, WHEN}); /* payload too small */
    assert_int_equal(memory.takes, before);
    wr_payload_table_free(seen);
    assert_int_equal(memory.live, 0);
}

WEIR_TESTS(test(exchange_is_a_response_and_its_request), test(archived_head_matches_the_archived_body),
           test(revisit_record_refers_to_the_payload_and_has_none),
           test(response_304_is_a_revisit_record_of_the_earlier_one), test(truncated_record_is_marked),
           test(warcinfo_record_names_the_software_and_the_agent), test(large_and_odd_bodies_are_archived_unchanged),
           test(archive_allocation_failure_is_an_error), test(seen_payload_is_found_by_its_whole_key),
           test(seen_payloads_take_bounded_memory))
