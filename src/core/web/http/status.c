/* SPDX-License-Identifier: MIT */
/* status.c - classifies HTTP statuses for retries. */
#include "core/web/http/status.h"

#include "base/error.h"
#include "base/parse.h"
#include "core/pace/refusal.h"

static const char *const names[] = {
#define X(class, name) name,
    WR_STATUS_CLASSES(X)
#undef X
};

void wr_statuses_init(struct wr_statuses *ret_statuses, enum wr_statuses_preset preset)
{
    static const uint16_t transient[] = {0, 408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524};
    enum wr_status_class refused = preset == WR_STATUSES_JOBS ? WR_STATUS_BLOCKING : WR_STATUS_TRANSIENT;

    for (size_t status = 0; status <= WR_STATUS_MAX; status++)
        ret_statuses->of[status] = status >= 100 && status < 400 ? WR_STATUS_DONE : WR_STATUS_PERMANENT;
    for (size_t i = 0; i < sizeof transient / sizeof transient[0]; i++)
        ret_statuses->of[transient[i]] = WR_STATUS_TRANSIENT;
    for (int status = 400; status <= WR_STATUS_MAX; status++)
        if (wr_status_refuses(status) || status == 503 || (status == 403 && preset == WR_STATUSES_JOBS))
            ret_statuses->of[status] = (uint8_t)refused;
}

enum wr_status_class wr_status_class(const struct wr_statuses *statuses, int status)
{
    if (status < 0 || status > WR_STATUS_MAX)
        return WR_STATUS_PERMANENT;
    return (enum wr_status_class)statuses->of[status];
}

/* Parses one entry: "403=permanent", or "api" for that preset. */
static bool parse_status_entry(struct wr_span entry, struct wr_statuses *statuses)
{
    size_t equals = wr_span_find(entry, '=');
    uint64_t status;

    if (wr_span_is(wr_span_trim(entry), "api")) {
        wr_statuses_init(statuses, WR_STATUSES_API);
        return true;
    }
    if (equals == entry.bytes)
        return false;
    struct wr_span number = wr_span_trim((struct wr_span){entry.data, equals});
    struct wr_span word = wr_span_trim(wr_span_after(entry, equals + 1));
    if (!wr_scan_u64(number.data, number.bytes, 0, WR_STATUS_MAX, &status) || (status > 0 && status < 100) ||
        (status > 599 && !wr_status_refuses((int)status)))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (wr_span_is(word, names[i])) {
            statuses->of[status] = (uint8_t)i;
            return true;
        }
    return false;
}

int wr_statuses_parse(struct wr_statuses *statuses, const char *text)
{
    struct wr_statuses changed = *statuses;
    struct wr_span rest = wr_span_of(text);

    for (bool more = true; more;) {
        size_t comma = wr_span_find(rest, ',');
        if (!parse_status_entry((struct wr_span){rest.data, comma}, &changed))
            return wr_invalid_text("statuses", text, strlen(text), "not STATUS=CLASS", (size_t)(rest.data - text),
                                   "use for example 403=permanent, 500=transient, or api; a class is done, transient, "
                                   "blocking or permanent, a status 0 (no answer) or 100 ... 599, 999");
        more = comma < rest.bytes;
        rest = wr_span_after(rest, comma + more);
    }
    *statuses = changed;
    return 0;
}
