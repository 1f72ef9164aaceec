/* SPDX-License-Identifier: MIT */
/* matrix.c - runs each pacer against each scenario on several threads. */
#include "cli/simulate/matrix.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "cli/kit/console.h"

#define PATIENCE_NS WEIR_SECOND            /* minimum time of a run before progress is shown */
#define REPEAT_NS (100 * WEIR_MILLISECOND) /* interval between two updates of the progress */

static volatile sig_atomic_t interrupted;

struct matrix_workers {
    const struct wr_matrix *matrix;
    struct wr_matrix_cell *cells;
    size_t count;
    atomic_size_t next; /* index of the next cell to run */
    atomic_size_t done;
    int64_t began_at;
    pthread_mutex_t output_lock; /* protects the field below and the output */
    int64_t shown_at;
};

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

/* Catches the first Ctrl-C only: the second one ends the program at once. */
static void catch_interrupt(struct sigaction *ret_before)
{
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    interrupted = 0;
    sigaction(SIGINT, &action, ret_before);
}

static void run_cell(const struct wr_matrix *matrix, size_t index, struct wr_matrix_cell *cell)
{
    size_t count = wr_catalog_count(matrix->catalog);
    struct wr_scenario room;
    const struct wr_scenario *scenario = wr_catalog_get(matrix->catalog, index % count, &room);
    memcpy(cell->scenario, scenario->name, sizeof cell->scenario);
    cell->seeds = matrix->seeds > 0 ? matrix->seeds : scenario->seeds;
    cell->error = wr_sim_score(scenario, &matrix->pacers[index / count], cell->seeds, matrix->seed, matrix->warm,
                               matrix->allocator, &cell->score);
    cell->done = cell->error == 0;
}

static void show_matrix_progress(struct matrix_workers *crew)
{
    size_t done = atomic_load(&crew->done);
    int64_t now = weir_clock_now(weir_clock_monotonic());
    if (now - crew->began_at < PATIENCE_NS)
        return;
    pthread_mutex_lock(&crew->output_lock);
    if (now - crew->shown_at >= REPEAT_NS) {
        wr_progress("%zu of %zu simulated, %" PRId64 " s", done, crew->count, (now - crew->began_at) / WEIR_SECOND);
        crew->shown_at = now;
    }
    pthread_mutex_unlock(&crew->output_lock);
}

static void *run_matrix_worker(void *context)
{
    struct matrix_workers *crew = context;
    for (;;) {
        size_t index = interrupted ? crew->count : atomic_fetch_add(&crew->next, 1);
        if (index >= crew->count)
            return NULL;
        run_cell(crew->matrix, index, &crew->cells[index]);
        atomic_fetch_add(&crew->done, crew->cells[index].done);
        show_matrix_progress(crew);
    }
}

size_t wr_matrix_run(const struct wr_matrix *matrix, struct wr_matrix_cell *cells)
{
    struct matrix_workers crew = {.matrix = matrix, .cells = cells};
    pthread_t threads[WR_MATRIX_JOBS_MAX];
    struct sigaction before;
    size_t made = 0;

    crew.count = matrix->pacer_count * wr_catalog_count(matrix->catalog);
    crew.began_at = weir_clock_now(weir_clock_monotonic());
    pthread_mutex_init(&crew.output_lock, NULL);
    catch_interrupt(&before);
    /* This thread works, too: it does everything if no other thread can be created. */
    while (made + 1 < matrix->jobs && made + 1 < crew.count && made < WR_MATRIX_JOBS_MAX &&
           pthread_create(&threads[made], NULL, run_matrix_worker, &crew) == 0)
        made++;
    run_matrix_worker(&crew);
    for (size_t i = 0; i < made; i++)
        pthread_join(threads[i], NULL);
    sigaction(SIGINT, &before, NULL);
    pthread_mutex_destroy(&crew.output_lock);
    wr_progress("%s", "");
    return atomic_load(&crew.done);
}
