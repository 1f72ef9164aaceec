/* SPDX-License-Identifier: MIT */
/* keyed.c - a limit for each user: three requests a minute, for at most 10 000 users at a time.
 *
 *     cc keyed.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <string.h>
#include <weir/table.h>

static weir_table *table;

/* Asks for one request of this user. The table creates the user on the first request. */
static int ask(const char *user)
{
    weir_decision decision;
    if (weir_table_try(table, user, strlen(user), 1, &decision) < 0)
        return -1;
    printf("%s: %s\n", user, decision.verdict == WEIR_GO ? "go" : "wait");
    return decision.verdict == WEIR_GO;
}

/* Prints the user with the most refusals. */
static int print_worst(void)
{
    weir_table_entry *entries;
    size_t count;
    if (weir_table_top(table, WEIR_TOP_DENIED, 1, &entries, &count) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        printf("refused most: %.*s, %u times, %u left\n", (int)entries[i].key_bytes, entries[i].key, entries[i].denied,
               entries[i].quota.remaining);
    weir_table_top_free(table, entries);
    return 0;
}

int main(void)
{
    weir_limit limit;
    weir_table_options options;
    int granted = 0;

    weir_table_options_init(&options);
    options.max_keys = 10000;
    if (weir_limit_fixed_window(&limit, 3, WEIR_MINUTE) < 0 || weir_table_new(&limit, 1, &options, &table) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    for (int request = 0; request < 5; request++)
        granted += ask("alice");
    granted += ask("bob"); /* bob has a limit of his own */
    if (print_worst() < 0)
        return 1;

    /* Many users in one call: one reading of the clock, and their memory is fetched together. */
    weir_table_item items[] = {{.key = "carol", .key_bytes = 5, .permits = 2},
                               {.key = "bob", .key_bytes = 3, .permits = 1}};
    if (weir_table_try_many(table, items, 2) < 0)
        return 1;
    for (size_t i = 0; i < 2; i++)
        granted += items[i].decision.verdict == WEIR_GO;

    printf("granted %d\n", granted);
    weir_table_free(table);
    return granted == 6 ? 0 : 1;
}
