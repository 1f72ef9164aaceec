/* SPDX-License-Identifier: MIT */
/* head.c - parses heads of responses, and refuses those with ambiguous framing. */
#include "core/web/http/head.h"

#include "base/ascii.h"
#include "base/parse.h"
#include "core/web/http/field.h"

/* Bytes of the text buffer that stay allocated between responses; usual heads have less than
 * 2000. */
#define KEEP_BYTES 8192

enum head_state {
    PLACE_START, /* expects a status line */
    PLACE_FIELDS,
    PLACE_TRAILER, /* after the final head: expects trailer lines */
};

static const char *const texts[] = {
#define X(fault, text) text,
    WR_HEAD_FAULTS(X)
#undef X
};

const char *wr_head_fault_text(enum wr_head_fault fault)
{
    return texts[fault];
}

void wr_head_init(struct wr_head *ret_head, const weir_allocator *allocator, const struct wr_head_limits *limits)
{
    *ret_head = (struct wr_head){.limits = *limits, .length = -1};
    wr_buf_init(&ret_head->text, allocator, limits->bytes_max);
}

void wr_head_clear(struct wr_head *head)
{
    struct wr_buf text = head->text;

    wr_head_init(head, text.allocator, &head->limits);
    if (text.room > KEEP_BYTES) {
        wr_buf_release(&text);
        return;
    }
    wr_buf_clear(&text);
    head->text = text;
}

void wr_head_release(struct wr_head *head)
{
    wr_buf_release(&head->text);
}

bool wr_head_is_whole(const struct wr_head *head)
{
    return head->place == PLACE_TRAILER;
}

bool wr_head_wants_status(const struct wr_head *head)
{
    return head->place == PLACE_START;
}

/* ---- one line -------------------------------------------------------------------------------- */

/* Returns the status of a line such as "HTTP/1.1 200 OK" or "HTTP/2 200", 0 if it is not a status
 * line. */
static int parse_status_line(struct wr_span line)
{
    size_t blank = wr_span_find(line, ' ');
    int status = 0;

    if (line.bytes < 5 || memcmp(line.data, "HTTP/", 5) != 0 || line.bytes < blank + 4)
        return 0;
    for (size_t i = blank + 1; i < blank + 4; i++) {
        if (!wr_ascii_is_digit(line.data[i]))
            return 0;
        status = status * 10 + (line.data[i] - '0');
    }
    struct wr_span rest = wr_span_after(line, blank + 4);
    bool is_ended = rest.bytes == 0 || rest.data[0] == ' ' || rest.data[0] == '\r';
    return is_ended && wr_span_find(rest, '\0') == rest.bytes ? status : 0;
}

static enum wr_head_fault take_status(struct wr_head *head, struct wr_span line)
{
    int status = parse_status_line(line);

    /* LinkedIn and others refuse with 999 */
    bool is_known = (status >= 100 && status <= 599) || status == 999;
    /* 101: weir never asks for an upgrade */
    if (!is_known || status == 101)
        return WR_HEAD_STATUS;
    if (status < 200 && ++head->interims > head->limits.interims_max)
        return WR_HEAD_INTERIMS;
    head->status = status;
    head->place = PLACE_FIELDS;
    head->length = -1;
    head->has_transfer = false;
    head->codings = 0;
    head->last_is_framing = false;
    head->last_is_left_out = true;
    wr_buf_clear(&head->text);
    return WR_HEAD_OK;
}

static enum wr_head_fault take_length(struct wr_head *head, struct wr_span value)
{
    uint64_t length;

    if (!wr_scan_u64(value.data, value.bytes, 0, INT64_MAX, &length))
        return WR_HEAD_LENGTH;
    if (head->length >= 0 && head->length != (int64_t)length)
        return WR_HEAD_LENGTHS;
    head->length = (int64_t)length;
    return head->has_transfer ? WR_HEAD_BOTH : WR_HEAD_OK;
}

/* Weir asks for no other coding (TE), so no other is valid. "identity" is obsolete, but some
 * servers still send it. */
static enum wr_head_fault take_transfer(struct wr_head *head, struct wr_span value)
{
    if (head->has_transfer || !(wr_field_is(value, "chunked") || wr_field_is(value, "identity")))
        return WR_HEAD_TRANSFER;
    head->has_transfer = true;
    return head->length >= 0 ? WR_HEAD_BOTH : WR_HEAD_OK;
}

bool wr_head_is_coding(struct wr_span element)
{
    return element.bytes > 0 && !wr_field_is(element, "identity");
}

static enum wr_head_fault take_codings(struct wr_head *head, struct wr_span value)
{
    for (bool more = true; more;) {
        size_t comma = wr_span_find(value, ',');
        head->codings += wr_head_is_coding(wr_span_trim((struct wr_span){value.data, comma}));
        more = comma < value.bytes;
        value = wr_span_after(value, comma + more);
    }
    return WR_HEAD_OK;
}

/* Parses the fields that libcurl uses for framing. libcurl recognizes them only if the colon
 * follows the name directly. */
static enum wr_head_fault take_framing(struct wr_head *head, struct wr_span line, struct wr_span value, bool is_sound)
{
    struct wr_span name = wr_span_trim((struct wr_span){line.data, wr_span_find(line, ':')});
    enum wr_head_fault (*take)(struct wr_head *, struct wr_span) = NULL;

    if (wr_field_is(name, "Content-Length"))
        take = take_length;
    else if (wr_field_is(name, "Transfer-Encoding"))
        take = take_transfer;
    else if (wr_field_is(name, "Content-Encoding"))
        take = take_codings;
    head->last_is_framing = take != NULL;
    if (take == NULL)
        return WR_HEAD_OK;
    /* the first CR was part of the line's end */
    bool has_second_cr = line.data[line.bytes - 1] == '\r';
    if (!is_sound || has_second_cr || name.data != line.data || line.data[name.bytes] != ':')
        return WR_HEAD_FIELD;
    return take(head, value);
}

static enum wr_head_fault take_field(struct wr_head *head, struct wr_span line)
{
    struct wr_span name = {NULL, 0}, value = {NULL, 0};
    bool is_sound = wr_field_parse(line, &name, &value);
    enum wr_head_fault fault = take_framing(head, line, value, is_sound);

    if (fault != WR_HEAD_OK)
        return fault;
    head->last_is_left_out = !is_sound;
    if (!is_sound)
        return wr_span_find(line, ':') < line.bytes && wr_span_find(line, '\0') == line.bytes ? WR_HEAD_OK
                                                                                              : WR_HEAD_NO_FIELD;
    wr_buf_append_span(&head->text, name);
    wr_buf_append_char(&head->text, '\n');
    wr_buf_append_span(&head->text, value);
    wr_buf_append_char(&head->text, '\n');
    return head->text.error == 0 ? WR_HEAD_OK : WR_HEAD_MEMORY;
}

/* Appends a folded line to the value of the last field. */
static enum wr_head_fault take_fold(struct wr_head *head, struct wr_span more)
{
    if (head->last_is_framing)
        return WR_HEAD_FIELD;
    if (wr_span_find(more, '\0') < more.bytes)
        return WR_HEAD_NO_FIELD;
    if (head->last_is_left_out)
        return WR_HEAD_OK;
    wr_buf_cut(&head->text, head->text.length - 1);
    wr_buf_append_char(&head->text, ' ');
    for (size_t i = 0; i < more.bytes; i++) /* CR and LF inside become blanks */
        wr_buf_append_char(&head->text, strchr("\r\n", more.data[i]) != NULL ? ' ' : more.data[i]);
    wr_buf_append_char(&head->text, '\n');
    return head->text.error == 0 ? WR_HEAD_OK : WR_HEAD_MEMORY;
}

static struct wr_span strip_line_end(struct wr_span line)
{
    line.bytes -= line.bytes > 0 && line.data[line.bytes - 1] == '\n';
    line.bytes -= line.bytes > 0 && line.data[line.bytes - 1] == '\r';
    return line;
}

/* Checks a trailer line. libcurl reads the chunk size 0x10 as 0 and takes the chunk for a trailer;
 * this check detects it. */
static enum wr_head_fault take_trailer(struct wr_span line)
{
    struct wr_span name, value;
    return line.bytes == 0 || wr_field_parse(line, &name, &value) ? WR_HEAD_OK : WR_HEAD_TRAILER;
}

enum wr_head_fault wr_head_line(struct wr_head *head, struct wr_span line)
{
    if (line.bytes > head->limits.bytes_max - head->bytes)
        return WR_HEAD_LARGE;
    head->bytes += (uint32_t)line.bytes;
    line = strip_line_end(line);
    switch ((enum head_state)head->place) {
    case PLACE_START:
        return take_status(head, line);
    case PLACE_FIELDS:
        if (line.bytes == 0) {
            head->place = head->status < 200 ? PLACE_START : PLACE_TRAILER;
            return WR_HEAD_OK;
        }
        if (line.data[0] == ' ' || line.data[0] == '\t')
            return take_fold(head, wr_span_trim(line));
        return take_field(head, line);
    case PLACE_TRAILER:
        break;
    }
    return take_trailer(line);
}

/* ---- accessors ------------------------------------------------------------------------------- */

/* Returns the text up to the next '\n' and moves the cursor behind it. */
static struct wr_span next_stored_text(const struct wr_head *head, size_t *cursor)
{
    struct wr_span rest = wr_buf_from(&head->text, *cursor);
    size_t end = wr_span_find(rest, '\n');

    *cursor += end + 1;
    return (struct wr_span){rest.data, end};
}

bool wr_head_next(const struct wr_head *head, size_t *cursor, struct wr_span *ret_name, struct wr_span *ret_value)
{
    if (head->text.bytes == NULL || *cursor >= head->text.length)
        return false;
    *ret_name = next_stored_text(head, cursor);
    *ret_value = wr_span_trim(next_stored_text(head, cursor));
    return true;
}

bool wr_head_find(const struct wr_head *head, const char *name, struct wr_span *ret_value)
{
    struct wr_span each, value;

    for (size_t cursor = 0; wr_head_next(head, &cursor, &each, &value);)
        if (wr_field_is(each, name)) {
            *ret_value = value;
            return true;
        }
    return false;
}
