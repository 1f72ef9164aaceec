/* SPDX-License-Identifier: MIT */
/* fuzz_status.c - fuzzes lists of status classes: an accepted list can be looked up, and a refused
 * one changes nothing. */
#include "core/web/http/status.h"

#include "fuzz/fuzz.h"

#include <stdlib.h>

static void check_classes(const struct wr_statuses *statuses)
{
    for (int status = -1; status <= WR_STATUS_MAX + 1; status++)
        fuzz_check((unsigned)wr_status_class(statuses, status) <= WR_STATUS_PERMANENT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wr_statuses before, statuses;
    char *text = malloc(bytes + 1);

    fuzz_check(text != NULL);
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    wr_statuses_init(&before, WR_STATUSES_JOBS);
    statuses = before;
    if (wr_statuses_parse(&statuses, text) != 0)
        fuzz_check(memcmp(&statuses, &before, sizeof before) == 0);
    check_classes(&statuses);
    free(text);
    return 0;
}
