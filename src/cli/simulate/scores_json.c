/* SPDX-License-Identifier: MIT */
/* scores_json.c - prints the scores as JSON, one object per line. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/kit/console.h"
#include "cli/simulate/scores.h"

void wr_json_quote(const char *text, char *ret_text, size_t text_bytes)
{
    struct wr_buf buf;
    wr_buf_init_fixed(&buf, ret_text, text_bytes);
    wr_append_json_string(&buf, wr_span_of(text));
}

/* Prints a number; null for infinity and NAN. */
static void print_score_member(const char *name, double number)
{
    if (isfinite(number))
        wr_print(", \"%s\": %.9g", name, number);
    else
        wr_print(", \"%s\": null", name);
}

static void print_score_json(const struct wr_matrix *matrix, const struct wr_sim_pacer *pacer,
                             const struct wr_matrix_cell *cell)
{
    char name[6 * sizeof pacer->name + 3], scenario[6 * sizeof cell->scenario + 3];
    const struct wr_score *score = &cell->score;
    wr_json_quote(pacer->name, name, sizeof name);
    wr_json_quote(cell->scenario, scenario, sizeof scenario);
    wr_print("{\"pacer\": %s, \"scenario\": %s, \"seeds\": %" PRIu32 ", \"warm\": %s", name, scenario, cell->seeds,
             matrix->warm ? "true" : "false");
    print_score_member("goodput", score->goodput);
    print_score_member("rejected", score->rejected);
    print_score_member("late_goodput", score->late_goodput);
    print_score_member("late_rejected", score->late_rejected);
    print_score_member("sent", score->sent);
    print_score_member("ok", score->ok);
    print_score_member("rejections", score->rejections);
    print_score_member("waste", score->waste);
    print_score_member("oracle", score->oracle);
    print_score_member("t90_s", score->t90_s);
    print_score_member("recovery_s", score->recovery_s);
    print_score_member("latency_inflation", score->latency_inflation);
    print_score_member("overshoot", score->overshoot);
    print_score_member("bans", score->bans);
    wr_print("}\n");
}

void wr_scores_print_json(const struct wr_matrix *matrix, const struct wr_matrix_cell *cells)
{
    size_t count = wr_catalog_count(matrix->catalog);
    for (size_t i = 0; i < matrix->pacer_count * count; i++)
        if (cells[i].done)
            print_score_json(matrix, &matrix->pacers[i / count], &cells[i]);
}
