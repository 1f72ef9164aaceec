/* SPDX-License-Identifier: MIT */
/* fuzz_settings.c - fuzzes settings files with the tables of all commands: each is valid, or
 * refused in one line that names the place. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <weir/error.h>

#include "cli/kit/sources.h"
#include "fuzz/fuzz.h"

static int check(const uint8_t *data, size_t bytes, char *ret_why, size_t why_bytes)
{
    char path[32];
    int fd = memfd_create("settings", MFD_CLOEXEC);
    fuzz_check(fd >= 0 && (bytes == 0 || write(fd, data, bytes) == (ssize_t)bytes));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int error = wr_sources_check(path, ret_why, why_bytes);
    fuzz_check(error == 0 || strncmp(ret_why, path, strlen(path)) == 0);
    close(fd);
    return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char why[WR_CONFIG_WHY_BYTES] = "";
    int error = check(data, bytes, why, sizeof why);
    fuzz_check(error == 0 || error == WEIR_E_INVAL);
    fuzz_check(error == 0 || strchr(why, ':') != NULL);
    fuzz_check(strchr(why, '\n') == NULL && strchr(why, '\x1b') == NULL);
    return 0;
}
