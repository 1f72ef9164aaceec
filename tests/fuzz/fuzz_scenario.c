/* SPDX-License-Identifier: MIT */
/* fuzz_scenario.c - fuzzes scenario files: an accepted one is a valid scenario, and a refusal names
 * line and column. */
#include "cli/simulate/scenario_file.h"

#include "fuzz/fuzz.h"

#include <stdio.h>
#include <string.h>
#include <weir/error.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct wr_scenario scenario;
    char why[WR_CONFIG_WHY_BYTES], text[200];
    unsigned line = 0, column = 0;

    if (bytes > WR_CONFIG_BYTES_MAX)
        return 0;
    int error = wr_scenario_parse("x", (const char *)data, bytes, weir_allocator_system(), &scenario, why);
    if (error == 0) {
        fuzz_check(wr_scenario_wrong(&scenario) == NULL);
        wr_scenario_describe(&scenario, text, sizeof text);
        fuzz_check(memchr(text, '\0', sizeof text) != NULL);
        return 0;
    }
    fuzz_check(error == WEIR_E_INVAL && sscanf(why, "x:%u:%u: ", &line, &column) == 2 && line >= 1 && column >= 1);
    return 0;
}
