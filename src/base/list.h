/* SPDX-License-Identifier: MIT */
/* list.h - a queue whose links lie in what waits. Taking out of the middle is as cheap as from the front. */
#ifndef WR_BASE_LIST_H
#define WR_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* All zero: in no list. */
struct wr_list_link {
    struct wr_list_link *next, *prev;
    struct wr_list *list;
};

struct wr_list {
    struct wr_list_link *first, *last;
};

/* What a link lies in. */
#define WR_LINKED(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline bool wr_list_holds(const struct wr_list_link *link)
{
    return link->list != NULL;
}

/* At the end; where it is already, it stays. */
static inline void wr_list_push(struct wr_list *list, struct wr_list_link *link)
{
    if (link->list != NULL) {
        assert(link->list == list);
        return;
    }
    *link = (struct wr_list_link){NULL, list->last, list};
    if (list->last != NULL)
        list->last->next = link;
    else
        list->first = link;
    list->last = link;
}

/* What is in no list is left alone. */
static inline void wr_list_take(struct wr_list_link *link)
{
    struct wr_list *list = link->list;
    if (list == NULL)
        return;
    if (link->prev != NULL)
        link->prev->next = link->next;
    else
        list->first = link->next;
    if (link->next != NULL)
        link->next->prev = link->prev;
    else
        list->last = link->prev;
    *link = (struct wr_list_link){NULL, NULL, NULL};
}

#endif
