/* SPDX-License-Identifier: MIT */
/* listed.c - reads the scenarios that reference.csv lists. */
#include "sim/listed.h"

#include "cli/simulate/scenario_file.h"
#include "lib/test.h"

static struct wr_scenario scenarios[LISTED_COUNT];
static size_t count;

static void read_scenario(const char *folder, const char *name)
{
    char path[1024], why[WR_CONFIG_WHY_BYTES];
    assert_true(count < LISTED_COUNT);
    snprintf(path, sizeof path, "%s/%s.yaml", folder, name);
    if (wr_scenario_read(path, weir_allocator_system(), &scenarios[count], why) < 0)
        fail_msg("%s", why);
    assert_string_equal(scenarios[count].name, name);
    count++;
}

/* Reads the scenarios in the rows of `fixed`, the first pacer of reference.csv, which has a row for
 * each. */
static void read_all(void)
{
    const char *folder = getenv("WEIR_SCENARIOS");
    char path[1024], line[512], name[64];
    assert_non_null(folder);
    snprintf(path, sizeof path, "%s/reference.csv", folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "fixed,%63[^,]", name) == 1)
            read_scenario(folder, name);
    fclose(file);
    assert_int_equal(count, LISTED_COUNT);
}

const struct wr_scenario *listed(size_t index)
{
    if (count == 0)
        read_all();
    assert_true(index < LISTED_COUNT);
    return &scenarios[index];
}

const struct wr_scenario *listed_named(const char *name)
{
    for (size_t i = 0; i < LISTED_COUNT; i++)
        if (strcmp(listed(i)->name, name) == 0)
            return listed(i);
    fail_msg("no scenario is named %s", name);
    return NULL;
}
