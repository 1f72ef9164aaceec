/* SPDX-License-Identifier: MIT */
/* janitor.c - a thread that sweeps a table at intervals. */
#include "limiter/table/table.h"

static void *sweep_periodically(void *context)
{
    weir_table *table = context;
    struct wr_janitor *janitor = &table->janitor;
    while (!atomic_load(&janitor->stop)) {
        wr_park(&janitor->parker, table->clock, wr_clock_now(table->clock) + table->sweep_every_ns);
        if (!atomic_load(&janitor->stop))
            (void)weir_table_sweep(table);
    }
    return NULL;
}

int wr_janitor_start(weir_table *table)
{
    struct wr_janitor *janitor = &table->janitor;
    if (table->sweep_every_ns == 0)
        return 0;
    if (wr_parker_init(&janitor->parker) != 0)
        return WEIR_E_SYSTEM;
    if (pthread_create(&janitor->thread, NULL, sweep_periodically, table) != 0) {
        wr_parker_release(&janitor->parker);
        return WEIR_E_SYSTEM;
    }
    janitor->running = true;
    return 0;
}

void wr_janitor_stop(weir_table *table)
{
    struct wr_janitor *janitor = &table->janitor;
    /* two threads may close the table at the same time */
    (void)pthread_mutex_lock(&table->changing);
    if (janitor->running) {
        atomic_store(&janitor->stop, true);
        wr_unpark(&janitor->parker);
        (void)pthread_join(janitor->thread, NULL);
        wr_parker_release(&janitor->parker);
        janitor->running = false;
    }
    (void)pthread_mutex_unlock(&table->changing);
}
