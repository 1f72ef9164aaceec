/* SPDX-License-Identifier: MIT */
/* json.c - prints the scores as JSON, one object per line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/kit/output.h"
#include "cli/simulate/report.h"

void wr_json_quote(const char *text, char *ret_text, size_t text_bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_text, text_bytes);
    wr_append_json_string(&buf, wr_span_of(text));
}

/* Prints a number; null for infinity and NAN. */
static void print_member(const char *name, double number)
{
    if (isfinite(number))
        wr_print(", \"%s\": %.9g", name, number);
    else
        wr_print(", \"%s\": null", name);
}

static void print_cell(const struct wr_matrix *matrix, const struct wr_sim_pacer *pacer, const struct wr_cell *cell)
{
    char name[6 * sizeof pacer->name + 3], scenario[6 * sizeof cell->scenario + 3];
    const struct wr_score *score = &cell->score;
    wr_json_quote(pacer->name, name, sizeof name);
    wr_json_quote(cell->scenario, scenario, sizeof scenario);
    wr_print("{\"pacer\": %s, \"scenario\": %s, \"seeds\": %" PRIu32 ", \"warm\": %s", name, scenario, cell->seeds,
             matrix->warm ? "true" : "false");
    print_member("goodput", score->goodput);
    print_member("rejected", score->rejected);
    print_member("late_goodput", score->late_goodput);
    print_member("late_rejected", score->late_rejected);
    print_member("sent", score->sent);
    print_member("ok", score->ok);
    print_member("rejections", score->rejections);
    print_member("waste", score->waste);
    print_member("oracle", score->oracle);
    print_member("t90_s", score->t90_s);
    print_member("recovery_s", score->recovery_s);
    print_member("latency_inflation", score->latency_inflation);
    print_member("overshoot", score->overshoot);
    print_member("bans", score->bans);
    wr_print("}\n");
}

void wr_report_json(const struct wr_matrix *matrix, const struct wr_cell *cells)
{
    size_t count = wr_catalog_count(matrix->catalog);
    for (size_t i = 0; i < matrix->pacer_count * count; i++)
        if (cells[i].done)
            print_cell(matrix, &matrix->pacers[i / count], &cells[i]);
}
