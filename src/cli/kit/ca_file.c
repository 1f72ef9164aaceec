/* SPDX-License-Identifier: MIT */
/* ca_file.c - checks that the file of --ca-file has a certificate. */
#include "cli/kit/ca_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kit/console.h"

static bool has_certificate(FILE *file)
{
    char line[256];
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "-----BEGIN ", 11) == 0 && strstr(line, "CERTIFICATE-----") != NULL)
            return true;
    return false;
}

/* Returns why the file cannot be used and what to do about it; NULL if it can. */
static const char *ca_file_obstacle(int fd)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return strerror(errno);
    if (S_ISDIR(status.st_mode))
        return "is a folder; name a file of certificates (PEM)";
    if (!S_ISREG(status.st_mode))
        return "is not a regular file; name a file of certificates (PEM)";
    int copy = dup(fd); /* fclose closes it */
    FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
    if (file == NULL)
        return strerror(errno);
    bool is_sound = has_certificate(file);
    (void)fclose(file);
    return is_sound ? NULL : "has no certificate in PEM; name a file with a line -----BEGIN CERTIFICATE-----";
}

bool wr_ca_file_ok(const char *path)
{
    if (path == NULL)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        wr_complain_read_failed("--ca-file", path, errno);
        return false;
    }
    const char *trouble = ca_file_obstacle(fd);
    if (trouble != NULL)
        wr_complain("--ca-file: %s %s", path, trouble);
    (void)close(fd);
    return trouble == NULL;
}
