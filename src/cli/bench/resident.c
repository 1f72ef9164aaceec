/* SPDX-License-Identifier: MIT */
/* resident.c - reads the resident memory of the process. */
#include "cli/bench/resident.h"

#include <stdio.h>
#include <unistd.h>

size_t wr_resident_bytes(void)
{
    size_t all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%zu %zu", &all, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}
