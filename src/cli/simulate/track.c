/* SPDX-License-Identifier: MIT */
/* track.c - records the events of one run. */
#include "cli/simulate/track.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/simulate/scores.h"

void wr_track_init(struct wr_track *ret_track, const struct wr_sim_pacer *pacer, const struct wr_scenario *scenario,
                   FILE *trace)
{
    memset(ret_track, 0, sizeof *ret_track);
    ret_track->pacer = pacer;
    ret_track->trace = trace;
    ret_track->bin_s = (double)scenario->duration_ns * 1e-9 / WR_TRACK_BINS;
    for (size_t i = 0; i < WR_TRACK_BINS; i++) {
        ret_track->bins[i].limit = (double)NAN;
        ret_track->bins[i].mode = -1;
    }
}

static int mode_index(struct wr_track *track, const char *mode)
{
    int i = 0;
    while (i < track->mode_count && strncmp(track->modes[i], mode, WR_TRACK_MODE_BYTES - 1) != 0)
        i++;
    if (i == WR_TRACK_MODES)
        return WR_TRACK_MODES - 1;
    if (i == track->mode_count)
        snprintf(track->modes[track->mode_count++], WR_TRACK_MODE_BYTES, "%s", mode);
    return i;
}

static void add_event_to_bin(struct wr_track *track, const struct wr_sim_event *event)
{
    size_t index = (size_t)((double)event->at * 1e-9 / track->bin_s);
    struct wr_track_bin *bin = &track->bins[index < WR_TRACK_BINS ? index : WR_TRACK_BINS - 1];
    bin->limit = event->limit;
    bin->mode = mode_index(track, event->mode);
    if (event->kind == WR_SIM_SENT)
        bin->sent++;
    else if (event->status < 400)
        bin->ok++;
    else if (event->status == 429 || event->status == 403 || event->status == 503)
        bin->rejected++;
}

static void write_trace_number(FILE *file, const char *name, double number)
{
    if (isfinite(number))
        fprintf(file, ", \"%s\": %.6g", name, number);
    else
        fprintf(file, ", \"%s\": null", name);
}

/* Writes an event as a JSON line. Write errors are checked when the file is closed. */
static void write_trace_line(const struct wr_track *track, const struct wr_sim_event *event)
{
    char pacer[6 * sizeof track->pacer->name + 3], mode[128];
    bool answered = event->kind == WR_SIM_ANSWERED;
    wr_json_quote(track->pacer->name, pacer, sizeof pacer);
    wr_json_quote(event->mode, mode, sizeof mode);
    fprintf(track->trace, "{\"pacer\": %s, \"time_s\": %" PRId64 ".%09" PRId64 ", \"kind\": \"%s\"", pacer,
            event->at / WEIR_SECOND, event->at % WEIR_SECOND, answered ? "answered" : "sent");
    if (answered)
        fprintf(track->trace, ", \"status\": %d, \"latency_s\": %.6f", event->status, (double)event->latency_ns * 1e-9);
    else
        fprintf(track->trace, ", \"status\": null, \"latency_s\": null");
    fprintf(track->trace, ", \"in_flight\": %" PRIu32, event->in_flight);
    write_trace_number(track->trace, "rate", event->rate);
    write_trace_number(track->trace, "limit", event->limit);
    fprintf(track->trace, ", \"mode\": %s}\n", mode);
}

void wr_track_on_event(void *context, const struct wr_sim_event *event)
{
    struct wr_track *track = context;
    add_event_to_bin(track, event);
    if (track->trace != NULL)
        write_trace_line(track, event);
}
