/* SPDX-License-Identifier: MIT */
/* fuzz_request.c - fuzzes requests to the daemon: they are the same in one piece and in several.
 * Each byte of an accepted head belongs to a part, and no part can be read in another way. */
#include "base/rng.h"
#include "core/web/request/http_request.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

/* Result of reading a text. */
struct tally {
    enum wr_request_step step;
    size_t taken, body; /* bytes */
    uint64_t sum;       /* checksum of the body, which depends on the order */
};

/* Size in bytes from which pieces are copied. Smaller pieces are not: there would be too many freed
 * blocks in the sanitizer's quarantine. */
#define COPIED_FROM 64

/* Returns a block that ends with the text, so that the sanitizer reports a read beyond it. */
static char *copy(const uint8_t *data, size_t bytes)
{
    char *block = malloc(bytes > 0 ? bytes : 1);

    fuzz_check(block != NULL);
    if (bytes > 0)
        memcpy(block, data, bytes);
    return block;
}

static void read_body(struct wr_request *request, const uint8_t *data, size_t come, struct tally *tally)
{
    struct wr_span rest = {(const char *)data + tally->taken, come - tally->taken}, piece;

    while ((tally->step = wr_request_body(request, &rest, &piece)) == WR_REQUEST_BODY) {
        fuzz_check(piece.bytes > 0);
        for (size_t i = 0; i < piece.bytes; i++)
            tally->sum = tally->sum * 31 + (uint8_t)piece.data[i];
        tally->body += piece.bytes;
    }
    fuzz_check(tally->step != WR_REQUEST_MORE || rest.bytes == 0);
    tally->taken = come - rest.bytes;
}

/* Reads the input in pieces of 0 to `most` - 1 bytes. */
static struct tally read_by(const uint8_t *data, size_t bytes, size_t most, struct wr_request *ret_request)
{
    struct tally tally = {.step = WR_REQUEST_MORE};
    struct wr_rng rng;
    bool has_head = false;

    wr_rng_init(&rng, bytes);
    wr_request_init(ret_request);
    for (size_t come = 0, last = 0; tally.step == WR_REQUEST_MORE && !last; last = come == bytes) {
        size_t piece = most > bytes ? bytes : (size_t)wr_rng_below(&rng, most);
        come = bytes - come < piece ? bytes : come + piece;
        if (!has_head) {
            char *block = most < COPIED_FROM ? NULL : copy(data, come);
            const char *text = block != NULL ? block : (const char *)data;
            tally.step = wr_request_head(ret_request, (struct wr_span){text, come});
            tally.taken = ret_request->head_bytes;
            fuzz_check(tally.taken <= come);
            ret_request->data = (const char *)data;
            free(block);
        }
        has_head = has_head || tally.step == WR_REQUEST_HEAD;
        if (has_head)
            read_body(ret_request, data, come, &tally);
    }
    return tally;
}

static const char *skip(const char *at, const char *word)
{
    fuzz_check(memcmp(at, word, strlen(word)) == 0);
    return at + strlen(word);
}

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t')
        at++;
    return at;
}

/* Walks through the head as if it wrote it: every part is where the head has it, and no byte is
 * left over. */
static void check_head(const struct wr_request *request)
{
    const char *at = request->data + (request->has_blank_line ? 2 : 0);

    at = skip(skip(at, wr_request_method_name((enum wr_request_method)request->method)), " ");
    fuzz_check(at == wr_request_target(request).data && *at == '/');
    at = skip(at + request->target.bytes, request->minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
    for (uint32_t i = 0; i < request->field_count; i++) {
        struct wr_span name = wr_request_span(request, request->fields[i].name);
        struct wr_span value = wr_request_span(request, request->fields[i].value);
        fuzz_check(at == name.data && name.bytes > 0 && wr_span_find(name, ':') == name.bytes);
        at = skip_blanks(skip(at + name.bytes, ":"));
        fuzz_check(at == value.data || value.bytes == 0);
        for (size_t j = 0; j < value.bytes; j++)
            fuzz_check((uint8_t)value.data[j] >= ' ' || value.data[j] == '\t');
        at = skip(skip_blanks(at + value.bytes), "\r\n");
    }
    fuzz_check(skip(at, "\r\n") == request->data + request->head_bytes);
}

/* Returns the number of fields with this name. */
static int count(const struct wr_request *request, const char *name)
{
    struct wr_span value;
    uint32_t cursor = 0;
    int found = 0;

    while (wr_request_find(request, name, &cursor, &value))
        found++;
    return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct wr_request whole, pieces;
    static const size_t sizes[] = {2, 5, 64};
    struct tally first = read_by(data, bytes, SIZE_MAX, &whole);

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct tally again = read_by(data, bytes, sizes[i], &pieces);
        fuzz_check(again.step == first.step && pieces.fault == whole.fault);
        fuzz_check(pieces.field_count == whole.field_count);
        fuzz_check(memcmp(pieces.fields, whole.fields, whole.field_count * sizeof whole.fields[0]) == 0);
        if (first.step != WR_REQUEST_REFUSED)
            fuzz_check(again.taken == first.taken && again.body == first.body && again.sum == first.sum);
    }
    fuzz_check((first.step == WR_REQUEST_REFUSED) == (wr_request_fault_status((enum wr_request_fault)whole.fault) > 0));
    fuzz_check(first.taken <= bytes && first.body <= WR_REQUEST_BODY_MAX);
    if (first.step != WR_REQUEST_END)
        return 0;
    check_head(&whole);
    fuzz_check(count(&whole, "Host") <= 1 && count(&whole, "Host") >= whole.minor);
    fuzz_check(count(&whole, "Content-Length") + count(&whole, "Transfer-Encoding") <= 1);
    fuzz_check(whole.is_chunked || first.taken == whole.head_bytes + first.body);
    return 0;
}
