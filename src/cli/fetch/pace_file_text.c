/* SPDX-License-Identifier: MIT */
/* pace_file_text.c - converts hosts to and from the text of a state file. */
#include "cli/fetch/pace_file_text.h"

#include "base/ascii.h"
#include "base/parse.h"

#define TITLE "weir state "
#define VERSION "1"
#define WHOLES 9 /* integers per host, besides the rate */
#define RATE_MAX 1e12

static uint64_t text_checksum(struct wr_span text)
{
    /* FNV-1a: detects accidental damage, not manipulation. */
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; text.data != NULL && i < text.bytes; i++)
        sum = (sum ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static void append_checksum(struct wr_buf *buf, uint64_t sum)
{
    wr_buf_append_hex(buf, (uint32_t)(sum >> 32), 8, WR_HEX_SMALL);
    wr_buf_append_hex(buf, (uint32_t)sum, 8, WR_HEX_SMALL);
}

bool wr_pace_file_key_ok(const char *key, size_t key_bytes)
{
    for (size_t i = 0; i < key_bytes; i++)
        if (!wr_ascii_is_printable(key[i]) || key[i] == ' ')
            return false;
    return key_bytes > 0 && key_bytes <= WEIR_PACE_KEY_MAX;
}

/* ---- writing ---- */

void wr_pace_file_begin_text(struct wr_buf *buf)
{
    wr_buf_append_string(buf, TITLE VERSION "\n");
}

void wr_pace_file_append_host(struct wr_buf *buf, const struct wr_pace_file_host *host)
{
    const weir_pace_memory *memory = &host->memory;
    const int64_t wholes[WHOLES] = {
        memory->delay_ns, memory->floor_ns, memory->robots_delay_ns, memory->retry_wall_at, memory->saved_wall_at,
        memory->block_ns, memory->cap,      memory->traits,          memory->breaker_open,
    };
    wr_buf_append(buf, host->key, host->key_bytes);
    for (size_t i = 0; i < WHOLES; i++) {
        wr_buf_append_char(buf, '\t');
        wr_buf_append_u64(buf, wholes[i] > 0 ? (uint64_t)wholes[i] : 0);
    }
    wr_buf_append_char(buf, '\t');
    wr_buf_append_number(buf, memory->rate > 0 && memory->rate < RATE_MAX ? memory->rate : 0);
    wr_buf_append_char(buf, '\n');
}

void wr_pace_file_end_text(struct wr_buf *buf, size_t hosts)
{
    uint64_t sum = text_checksum(wr_buf_from(buf, 0));
    wr_buf_append_string(buf, "end ");
    wr_buf_append_u64(buf, hosts);
    wr_buf_append_char(buf, ' ');
    append_checksum(buf, sum);
    wr_buf_append_char(buf, '\n');
}

/* ---- reading ---- */

static struct wr_span take_cell_until(struct wr_span *text, char byte)
{
    size_t end = wr_span_find(*text, byte);
    struct wr_span part = {text->data, end};
    *text = wr_span_after(*text, end < text->bytes ? end + 1 : end);
    return part;
}

static bool read_host_line(struct wr_span line, struct wr_span *ret_key, weir_pace_memory *ret_memory)
{
    uint64_t wholes[WHOLES];
    double rate;
    *ret_key = take_cell_until(&line, '\t');
    for (size_t i = 0; i < WHOLES; i++) {
        struct wr_span number = take_cell_until(&line, '\t');
        uint64_t most = i < 6 ? INT64_MAX : i < 8 ? UINT32_MAX : 1;
        if (!wr_scan_u64(number.data, number.bytes, 0, most, &wholes[i]))
            return false;
    }
    if (wr_parse_number(line.data, line.bytes, 0, RATE_MAX, &rate) != 0)
        return false;
    *ret_memory = (weir_pace_memory){
        .delay_ns = (int64_t)wholes[0],
        .floor_ns = (int64_t)wholes[1],
        .robots_delay_ns = (int64_t)wholes[2],
        .retry_wall_at = (int64_t)wholes[3],
        .saved_wall_at = (int64_t)wholes[4],
        .block_ns = (int64_t)wholes[5],
        .cap = (uint32_t)wholes[6],
        .traits = (uint32_t)wholes[7],
        .breaker_open = wholes[8] != 0,
        .rate = rate,
    };
    return wr_pace_file_key_ok(ret_key->data, ret_key->bytes);
}

/* Checks the last line, which counts and sums up the lines above it. Sets *ret_end to its
 * position. */
static bool is_complete_text(struct wr_span text, size_t *ret_end)
{
    char memory[64];
    struct wr_buf expected;
    size_t end = text.bytes, hosts = 0;
    if (text.bytes == 0 || text.data[text.bytes - 1] != '\n')
        return false;
    for (end--; end > 0 && text.data[end - 1] != '\n';)
        end--;
    for (size_t i = 0; i < end; i++)
        hosts += text.data[i] == '\n';
    wr_buf_init_fixed(&expected, memory, sizeof memory);
    wr_buf_append_string(&expected, "end ");
    wr_buf_append_u64(&expected, hosts > 0 ? hosts - 1 : 0);
    wr_buf_append_char(&expected, ' ');
    append_checksum(&expected, text_checksum((struct wr_span){text.data, end}));
    wr_buf_append_char(&expected, '\n');
    *ret_end = end;
    return text.bytes - end == expected.length && memcmp(text.data + end, memory, expected.length) == 0;
}

const char *wr_pace_file_read(struct wr_span text,
                              bool (*take)(void *context, struct wr_span key, const weir_pace_memory *memory),
                              void *context, size_t *ret_line)
{
    weir_pace_memory memory;
    struct wr_span rest = text, key, title = take_cell_until(&rest, '\n');
    size_t end, line = 1;
    *ret_line = 0;
    if (title.bytes < sizeof TITLE - 1 || memcmp(title.data, TITLE, sizeof TITLE - 1) != 0)
        return "it is not a state file of weir";
    if (!wr_span_is(wr_span_after(title, sizeof TITLE - 1), VERSION))
        return "it is of another version of weir";
    if (!is_complete_text(text, &end))
        return "it is damaged: its content is not what was written";
    while (rest.data < text.data + end) {
        *ret_line = ++line;
        if (!read_host_line(take_cell_until(&rest, '\n'), &key, &memory))
            return "not a host and its pace";
        if (!take(context, key, &memory))
            return "out of memory";
    }
    return NULL;
}
