/* SPDX-License-Identifier: MIT */
/* list.h - a queue whose links are embedded in the queued structs, so that removing from the middle
 * is as cheap as from the front. */
#ifndef WR_BASE_LIST_H
#define WR_BASE_LIST_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* A zeroed link is in no list. */
struct wr_list_link {
    struct wr_list_link *next, *prev;
    struct wr_list *list;
};

struct wr_list {
    struct wr_list_link *first, *last;
};

/* Returns the struct that contains the link. */
#define WR_LINKED(link, type, member) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline bool wr_list_is_linked(const struct wr_list_link *link)
{
    return link->list != NULL;
}

/* Appends the link to the list. Does nothing if it is in this list already. */
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

/* Removes the link from its list. Does nothing if it is in no list. */
static inline void wr_list_remove(struct wr_list_link *link)
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
