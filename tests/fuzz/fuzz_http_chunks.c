/* SPDX-License-Identifier: MIT */
/* fuzz_http_chunks.c - fuzzes chunked bodies: body and end are the same in one piece and byte by
 * byte. */
#include "core/web/http/chunks.h"

#include <string.h>

#include "fuzz/fuzz.h"

struct tally {
    enum wr_chunks_step step;
    size_t read, body; /* bytes */
    uint64_t sum;      /* checksum of the body, which depends on the order */
};

static struct tally read_by(const uint8_t *data, size_t bytes, size_t each)
{
    struct tally tally = {.step = WR_CHUNKS_MORE};
    struct wr_chunks chunks;

    wr_chunks_init(&chunks);
    while (tally.read < bytes && tally.step == WR_CHUNKS_MORE) {
        size_t now = bytes - tally.read < each ? bytes - tally.read : each;
        struct wr_span rest = {(const char *)data + tally.read, now}, piece;
        while ((tally.step = wr_chunks_next(&chunks, &rest, &piece)) == WR_CHUNKS_BODY) {
            fuzz_check(piece.bytes > 0);
            for (size_t i = 0; i < piece.bytes; i++)
                tally.sum = tally.sum * 31 + (uint8_t)piece.data[i];
            tally.body += piece.bytes;
        }
        fuzz_check(tally.step != WR_CHUNKS_MORE || rest.bytes == 0);
        tally.read += now - rest.bytes;
    }
    return tally;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct tally whole = read_by(data, bytes, bytes + 1), single = read_by(data, bytes, 1),
                 some = read_by(data, bytes, 3);

    fuzz_check(whole.step == single.step && whole.step == some.step);
    fuzz_check(whole.read == single.read && whole.read == some.read && whole.read <= bytes);
    fuzz_check(whole.body == single.body && whole.body <= whole.read);
    fuzz_check(whole.sum == single.sum && whole.sum == some.sum);
    return 0;
}
