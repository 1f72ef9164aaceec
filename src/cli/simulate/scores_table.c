/* SPDX-License-Identifier: MIT */
/* scores_table.c - prints the scores as a table of families by pacers, with means. */
#include <math.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "cli/kit/console.h"
#include "cli/simulate/scores.h"

#define FAMILY_BYTES sizeof((struct wr_scenario *)NULL)->name
#define NAME_COLUMNS 30 /* width of a row's name */
#define CELL_COLUMNS 14 /* width of a cell: "autothrottle-8" fits */

/* A scenario and the row in which it counts. */
struct scenario_row {
    char row[FAMILY_BYTES];
    size_t index; /* index of the scenario */
    bool each;
};

struct score_table {
    const struct wr_matrix *matrix;
    const struct wr_matrix_cell *cells;
    size_t count; /* number of scenarios */
    struct scenario_row *places;
    double *numbers; /* room for the values of a column */
    char line[2048];
    size_t length; /* bytes used in `line` */
};

#define FAMILIES 13

static bool is_family(char letter)
{
    return letter == 'P' || letter == 'R';
}

/* Returns the title of a family such as "P4", or "". */
static const char *family_title(const char *family)
{
    static const char *const titles[2][FAMILIES] = {
        {"token bucket", "bucket, Retry-After", "fixed window", "sliding window, ban", "queue", "capacity that varies",
         "flaky", "no limit, heavy tail", "outage", "concurrency limit", "slow answers", "a crowd, makespan", ""},
        {"counter of all", "counter, tarpit", "counter, silence", "crowd: reset, 500", "ban that is prolonged",
         "short window, block", "Retry-After on 200", "short window, bare", "short window, fields", "fixed Retry-After",
         "slower beyond", "refused, no body", "moving window"},
    };
    char *end;
    unsigned long number = is_family(family[0]) ? strtoul(family + 1, &end, 10) : 0;
    return number >= 1 && number <= FAMILIES && *end == '\0' ? titles[family[0] == 'R'][number - 1] : "";
}

/* Copies the family of a scenario, such as "P1" of "P1a-tb0.2-b5"; the whole name if it has no such
 * family. */
static void copy_family(const char *name, char ret_family[FAMILY_BYTES])
{
    size_t length = 1;
    while (is_family(name[0]) && wr_ascii_is_digit(name[length]))
        length++;
    snprintf(ret_family, FAMILY_BYTES, "%.*s", (int)(length > 1 ? length : FAMILY_BYTES), name);
}

static int compare_places(const void *a, const void *b)
{
    const struct scenario_row *one = a, *other = b;
    int order = strverscmp(one->row, other->row);
    if (order == 0 || one->each)
        return (one->index > other->index) - (one->index < other->index);
    return order;
}

static int compare_numbers(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* Lists and sorts the scenarios with a result. Those that no pacer finished have no name and are
 * left out. Returns their number. */
static size_t find_places(struct score_table *table, bool each)
{
    size_t placed = 0;
    for (size_t i = 0; i < table->count; i++) {
        const char *name = "";
        for (size_t pacer = 0; name[0] == '\0' && pacer < table->matrix->pacer_count; pacer++)
            name = table->cells[pacer * table->count + i].scenario;
        if (name[0] == '\0')
            continue;
        struct scenario_row *place = &table->places[placed++];
        *place = (struct scenario_row){.index = i, .each = each};
        if (each)
            memcpy(place->row, name, sizeof place->row);
        else
            copy_family(name, place->row);
    }
    qsort(table->places, placed, sizeof *table->places, compare_places);
    return placed;
}

/* ---- cells ---- */

__attribute__((format(printf, 2, 3))) static void put_table_text(struct score_table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(table->line + table->length, sizeof table->line - table->length, format, args);
    va_end(args);
    table->length += (size_t)length;
    if (table->length >= sizeof table->line)
        table->length = sizeof table->line - 1;
}

/* Prints the line without trailing blanks. */
static void end_table_line(struct score_table *table)
{
    while (table->length > 0 && table->line[table->length - 1] == ' ')
        table->length--;
    wr_print("%.*s\n", (int)table->length, table->line);
    table->length = 0;
}

/* Prints a cell such as " 96.9 / 0.51": shares in %, the second with two significant digits. The
 * slashes of a column are aligned. */
static void print_score_pair(struct score_table *table, double goodput, double rejected_share)
{
    char text[16];
    int decimals = rejected_share >= 0.0995 ? 0 : rejected_share >= 0.00995 ? 1 : 2;
    snprintf(text, sizeof text, "%.*f", decimals, 100 * rejected_share);
    if (isnan(goodput))
        put_table_text(table, "  %*s", CELL_COLUMNS, "-     ");
    else
        put_table_text(table, "  %*.1f / %-4s", CELL_COLUMNS - 7, 100 * goodput, text);
}

/* Returns the goodput, at most 1: a burst that the oracle did not expect must not compensate for
 * another origin. */
static double clipped_goodput(const struct wr_score *score)
{
    return score->goodput > 1 ? 1 : score->goodput;
}

static double score_rejected(const struct wr_score *score)
{
    return score->rejected;
}

typedef double measure(const struct wr_score *score);

static struct wr_score judged_score(const struct wr_matrix *matrix, const struct wr_score *score)
{
    struct wr_score judged = *score;
    if (matrix->late) {
        judged.goodput = score->late_goodput;
        judged.rejected = score->late_rejected;
    }
    return judged;
}

/* Collects the values of a pacer over some rows in `numbers`. Returns their number. */
static size_t collect_values(const struct score_table *table, size_t pacer, size_t from, size_t to, measure *of)
{
    size_t found = 0;
    for (size_t i = from; i < to; i++) {
        const struct wr_matrix_cell *cell = &table->cells[pacer * table->count + table->places[i].index];
        struct wr_score score = judged_score(table->matrix, &cell->score);
        if (cell->done)
            table->numbers[found++] = of(&score);
    }
    return found;
}

static double column_mean(const struct score_table *table, size_t pacer, size_t from, size_t to, measure *of)
{
    double sum = 0;
    size_t found = collect_values(table, pacer, from, to, of);
    for (size_t i = 0; i < found; i++)
        sum += table->numbers[i];
    return found > 0 ? sum / (double)found : (double)NAN;
}

static double column_quantile(const struct score_table *table, size_t pacer, size_t to, measure *of, double share)
{
    size_t found = collect_values(table, pacer, 0, to, of);
    if (found == 0)
        return (double)NAN;
    qsort(table->numbers, found, sizeof *table->numbers, compare_numbers);
    double at = share * (double)(found - 1);
    size_t below = (size_t)at;
    double above = table->numbers[below + 1 < found ? below + 1 : below];
    return table->numbers[below] + (at - (double)below) * (above - table->numbers[below]);
}

/* Returns 1 if a pacer passes a scenario. A few rejections always pass: at low rates learning costs
 * some, so their share says little. */
static double score_passes(const struct wr_score *score)
{
    return score->goodput >= 0.95 && (score->rejected <= 0.005 || score->rejections <= 6);
}

/* ---- rows ---- */

static void print_row_name(struct score_table *table, const char *name, const char *title)
{
    char text[FAMILY_BYTES + 64];
    snprintf(text, sizeof text, title[0] != '\0' ? "%-4s %s" : "%s%s", name, title);
    put_table_text(table, "%-*s", NAME_COLUMNS, text);
}

static void print_mean(struct score_table *table, const char *name, size_t from, size_t to)
{
    print_row_name(table, name, family_title(name));
    for (size_t pacer = 0; pacer < table->matrix->pacer_count; pacer++)
        print_score_pair(table, column_mean(table, pacer, from, to, clipped_goodput),
                         column_mean(table, pacer, from, to, score_rejected));
    end_table_line(table);
}

/* Prints the quantile of goodput from below and of rejections from above, the results of the worst
 * runs. */
static void print_quantile(struct score_table *table, const char *name, size_t placed, double share)
{
    print_row_name(table, name, "");
    for (size_t pacer = 0; pacer < table->matrix->pacer_count; pacer++)
        print_score_pair(table, column_quantile(table, pacer, placed, clipped_goodput, share),
                         column_quantile(table, pacer, placed, score_rejected, 1 - share));
    end_table_line(table);
}

static void print_passes(struct score_table *table, size_t placed)
{
    print_row_name(table, "pass", "");
    for (size_t pacer = 0; pacer < table->matrix->pacer_count; pacer++) {
        char text[32];
        snprintf(text, sizeof text, "%.1f %%     ", 100 * column_mean(table, pacer, 0, placed, score_passes));
        put_table_text(table, "  %*s", CELL_COLUMNS, text);
    }
    end_table_line(table);
}

static size_t print_table_rows(struct score_table *table, size_t placed)
{
    size_t rows = 0, to;
    for (size_t from = 0; from < placed; from = to, rows++) {
        bool each = table->places[from].each;
        for (to = from + 1; !each && to < placed && strcmp(table->places[to].row, table->places[from].row) == 0;)
            to++;
        print_mean(table, table->places[from].row, from, to);
    }
    return rows;
}

/* Writes the label of a pacer. If its name is too long for a column, the label has its number, and
 * the name is printed below the table. */
static void pacer_label(const struct wr_matrix *matrix, size_t pacer, char *ret_label, size_t label_bytes)
{
    const char *name = matrix->pacers[pacer].name;
    size_t length = strcspn(name, ":");
    if (name[length] == '\0' && length <= CELL_COLUMNS)
        snprintf(ret_label, label_bytes, "%.*s", CELL_COLUMNS, name);
    else
        snprintf(ret_label, label_bytes, "%.*s [%zu]", (int)(length < 8 ? length : 8), name, pacer + 1);
}

static void print_table_head(struct score_table *table, size_t placed)
{
    const struct wr_matrix *matrix = table->matrix;
    char label[32];
    wr_print("%zu scenario%s, %s%s. Goodput in %% of the oracle / rejected in %% of sent.\n\n", placed,
             placed == 1 ? "" : "s", matrix->warm ? "warm" : "cold", matrix->late ? ", second half" : "");
    put_table_text(table, "%-*s", NAME_COLUMNS, "");
    for (size_t pacer = 0; pacer < matrix->pacer_count; pacer++) {
        pacer_label(matrix, pacer, label, sizeof label);
        put_table_text(table, "  %*s", CELL_COLUMNS, label);
    }
    end_table_line(table);
}

static void print_table_foot(const struct wr_matrix *matrix)
{
    char label[32];
    const char *before = "\n";
    for (size_t pacer = 0; pacer < matrix->pacer_count; pacer++) {
        pacer_label(matrix, pacer, label, sizeof label);
        if (strcmp(label, matrix->pacers[pacer].name) == 0)
            continue;
        wr_print("%s%s is %s\n", before, label, matrix->pacers[pacer].name);
        before = "";
    }
}

static bool is_one_family(const struct score_table *table, size_t placed)
{
    return placed > 0 && strcmp(table->places[0].row, table->places[placed - 1].row) == 0;
}

static void print_score_table(struct score_table *table, bool each)
{
    size_t placed = find_places(table, each);
    if (!each && is_one_family(table, placed))
        placed = find_places(table, true);
    print_table_head(table, placed);
    if (print_table_rows(table, placed) > 1)
        print_mean(table, "mean", 0, placed);
    if (table->matrix->catalog->drawn + table->matrix->catalog->drawn_real > 0) {
        print_quantile(table, "median", placed, 0.5);
        print_quantile(table, "p10", placed, 0.1);
        print_passes(table, placed);
    }
    print_table_foot(table->matrix);
}

bool wr_scores_print_table(const struct wr_matrix *matrix, const struct wr_matrix_cell *cells, bool each)
{
    const weir_allocator *allocator = matrix->allocator;
    struct score_table table = {.matrix = matrix, .cells = cells, .count = wr_catalog_count(matrix->catalog)};
    table.places = wr_alloc_array(allocator, table.count, sizeof *table.places, alignof(struct scenario_row));
    table.numbers = wr_alloc_array(allocator, table.count, sizeof *table.numbers, alignof(double));
    bool taken = table.places != NULL && table.numbers != NULL;
    if (taken)
        print_score_table(&table, each);
    wr_free(allocator, table.places, table.count * sizeof *table.places, alignof(struct scenario_row));
    wr_free(allocator, table.numbers, table.count * sizeof *table.numbers, alignof(double));
    return taken;
}
