/* SPDX-License-Identifier: MIT */
/* diff.c - writes the differences between a recrawl and the earlier job. */
#include "cli/crawl/diff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "cli/kit/console.h"

#define LINE_ROOM (8 * WR_URL_MAX)

static struct wr_span null_if_empty_span(struct wr_span text)
{
    return text.bytes > 0 ? text : (struct wr_span){NULL, 0};
}

static void write_change(void *context, enum wr_recrawl_change change, const struct wr_store_task *task)
{
    FILE *out = context;
    char memory[LINE_ROOM];
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, memory, sizeof memory);
    wr_append_json_text(&buf, "{\"change\": ", wr_span_of(wr_recrawl_change_name(change)));
    wr_append_json_text(&buf, ", \"url\": ", task->url);
    wr_append_json_count(&buf, ", \"status\": ", (uint64_t)task->status);
    wr_append_json_text(&buf, ", \"digest\": ", null_if_empty_span(task->visit.digest));
    wr_append_json_text(&buf, ", \"earlier_digest\": ",
                        null_if_empty_span(task->has_earlier ? task->earlier.digest : (struct wr_span){NULL, 0}));
    wr_buf_append_string(&buf, "}\n");
    (void)fwrite(buf.bytes, 1, buf.length, out);
}

bool wr_crawl_diff_write(struct wr_engine *engine, const char *path)
{
    FILE *out = strcmp(path, "-") == 0 ? stdout : wr_file_create(path);
    int error = out != NULL ? wr_engine_diff(engine, write_change, out) : 0;
    bool well = out != NULL && fflush(out) == 0 && ferror(out) == 0;
    int trouble = errno;
    if (out != NULL && out != stdout && fclose(out) != 0 && well) {
        trouble = errno;
        well = false;
    }
    if (error != 0)
        wr_complain("--diff: %s", wr_error_message(error));
    else if (!well)
        wr_complain_write_failed("--diff", path, trouble);
    return well && error == 0;
}
