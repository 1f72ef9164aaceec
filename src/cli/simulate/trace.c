/* SPDX-License-Identifier: MIT */
/* trace.c - runs each pacer once against one scenario, for --trace and --plot. */
#include "cli/simulate/trace.h"

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "cli/kit/console.h"
#include "cli/simulate/plot.h"

bool wr_trace_file_open(const char *path, FILE **ret_file)
{
    if (path == NULL)
        return true;
    FILE *file = fopen(path, "we");
    if (file == NULL)
        wr_complain_write_failed(NULL, path, errno);
    else
        *ret_file = file;
    return file != NULL;
}

bool wr_trace_file_close(const char *path, FILE *file)
{
    if (file == NULL)
        return true;
    bool lost = ferror(file) != 0;
    bool closed = fclose(file) == 0;
    if (!closed || lost)
        wr_complain_write_failed(NULL, path, closed ? EIO : errno);
    return closed && !lost;
}

static int trace_pacers(const struct wr_matrix *matrix, const struct wr_scenario *scenario, FILE *trace, FILE *plot)
{
    size_t count = matrix->pacer_count;
    struct wr_track *tracks = wr_alloc_array(matrix->allocator, count, sizeof *tracks, alignof(struct wr_track));
    int error = tracks == NULL ? WEIR_E_NOMEM : 0;
    for (size_t i = 0; error == 0 && i < count; i++) {
        wr_track_init(&tracks[i], &matrix->pacers[i], scenario, trace);
        error = wr_sim_watch(scenario, &matrix->pacers[i], matrix->seed, matrix->warm, matrix->allocator,
                             wr_track_on_event, &tracks[i], &tracks[i].score);
    }
    if (error == 0 && plot != NULL)
        wr_plot_write(plot, scenario, tracks, count);
    wr_free(matrix->allocator, tracks, count * sizeof *tracks, alignof(struct wr_track));
    return error;
}

static int check_one_host(const struct wr_matrix *matrix, const struct wr_scenario *scenario)
{
    if (wr_catalog_count(matrix->catalog) == 1 && scenario->crowd.hosts == 0)
        return WR_EXIT_OK;
    if (wr_catalog_count(matrix->catalog) == 1)
        wr_complain("--plot and --trace show one host; %s is a crowd of them", scenario->name);
    else
        wr_complain("--plot and --trace show one scenario, not %zu; choose it with --scenario",
                    wr_catalog_count(matrix->catalog));
    return WR_EXIT_USAGE;
}

int wr_trace_run(const struct wr_matrix *matrix, const char *trace_path, const char *plot_path)
{
    struct wr_scenario room;
    const struct wr_scenario *scenario = wr_catalog_get(matrix->catalog, 0, &room);
    FILE *trace = NULL, *plot = NULL;
    int status = check_one_host(matrix, scenario);
    if (status != WR_EXIT_OK)
        return status;
    if (!wr_trace_file_open(trace_path, &trace) || !wr_trace_file_open(plot_path, &plot)) {
        status = WR_EXIT_FAILED;
    } else {
        int error = trace_pacers(matrix, scenario, trace, plot);
        if (error != 0) {
            wr_complain("%s", weir_error_text(error));
            status = WR_EXIT_FAILED;
        }
    }
    bool written = wr_trace_file_close(trace_path, trace);
    written = wr_trace_file_close(plot_path, plot) && written;
    return written ? status : WR_EXIT_FAILED;
}
