/* SPDX-License-Identifier: MIT */
/* program_metrics.c - writes the version of the program and figures of its process, under the names
 * that Prometheus uses. */
#include "base/parse.h"
#include "watch/metrics/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <weir/time.h>
#include <weir/version.h>

static double seconds_of_timeval(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* Returns the resident memory. The second number of /proc/self/statm ("12345 678 ...") is in
 * pages. */
static uint64_t resident_bytes(void)
{
    char text[128];
    uint64_t pages = 0;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (got <= 0)
        return 0;
    struct wr_span rest = {text, (size_t)got};
    size_t first = wr_span_find(rest, ' ');
    rest = wr_span_after(rest, first < rest.bytes ? first + 1 : rest.bytes);
    (void)wr_parse_u64(rest.data, wr_span_find(rest, ' '), 0, UINT64_MAX / 65536, &pages);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns the number of open descriptors; 0 if it is unknown. */
static uint64_t open_files(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        count += entry->d_name[0] != '.';
    if (folder != NULL)
        (void)closedir(folder);
    return count > 0 ? count - 1 : 0; /* minus the descriptor of the folder itself */
}

void wr_metrics_program(struct wr_metrics *metrics)
{
    struct rusage used;
    struct rlimit files;
    wr_metrics_family(metrics, "weir_build_info", WR_METRIC_GAUGE, "Version of weir.");
    wr_metrics_count(metrics, WR_METRIC_LABEL("version", wr_span_of(WEIR_VERSION)), 1);
    if (getrusage(RUSAGE_SELF, &used) == 0) {
        wr_metrics_family(metrics, "process_cpu_seconds_total", WR_METRIC_COUNTER, "Processor time used.");
        wr_metrics_number(metrics, NULL, seconds_of_timeval(used.ru_utime) + seconds_of_timeval(used.ru_stime));
    }
    wr_metrics_gauge(metrics, "process_resident_memory_bytes", "Memory in use.", (double)resident_bytes());
    wr_metrics_gauge(metrics, "process_open_fds", "Open descriptors.", (double)open_files());
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        wr_metrics_gauge(metrics, "process_max_fds", "Maximum of open descriptors.", (double)files.rlim_cur);
}
