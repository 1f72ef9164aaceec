/* SPDX-License-Identifier: MIT */
/* warm_page.c - collects the pages to warm, each once. */
#include <stdlib.h>

#include "cli/warm/warm_state.h"

void wr_warm_queue_put(struct wr_warm_queue *queue, struct wr_warm_page *page)
{
    page->next = NULL;
    if (queue->last != NULL)
        queue->last->next = page;
    else
        queue->first = page;
    queue->last = page;
    queue->count++;
}

struct wr_warm_page *wr_warm_queue_take(struct wr_warm_queue *queue)
{
    struct wr_warm_page *page = queue->first;
    if (page == NULL)
        return NULL;
    queue->first = page->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->count--;
    return page;
}

/* Creates a page. It stores the URL as written, without fragment, because a cache knows the page by
 * that, and the canonical URL, by which duplicates are found. */
static struct wr_warm_page *make_warm_page(const struct wr_url *url, struct wr_span key)
{
    struct wr_warm_page *page = calloc(1, sizeof *page + url->fragment_at + 1 + key.bytes + 1);
    if (page == NULL)
        return NULL;
    char *text = page->url + url->fragment_at + 1;
    memcpy(page->url, url->text, url->fragment_at);
    memcpy(text, key.data, key.bytes);
    page->key = text;
    return page;
}

static bool store_warm_page(struct wr_warm *warm, struct wr_warm_page *page)
{
    if (warm->pages_count == warm->pages_room) {
        size_t room = warm->pages_room > 0 ? warm->pages_room * 2 : 1024;
        struct wr_warm_page **larger = realloc(warm->pages, room * sizeof(struct wr_warm_page *));
        if (larger == NULL)
            return false;
        warm->pages = larger;
        warm->pages_room = room;
    }
    if (wr_map_put(&warm->pages_known, page->key, strlen(page->key), page, NULL) != 0)
        return false;
    warm->pages[warm->pages_count++] = page;
    return true;
}

bool wr_warm_page_add(struct wr_warm *warm, struct wr_warm_site *site, const struct wr_url *url)
{
    char memory[WR_URL_ROOM];
    struct wr_url key;
    if (wr_url_canonical(url, memory, sizeof memory, &key) != WR_URL_OK) {
        warm->left_out++;
        return true;
    }
    if (wr_map_get(&warm->pages_known, key.text, key.bytes) != NULL)
        return true;
    warm->is_full = warm->pages_count >= warm->settings->max_pages;
    if (warm->is_full)
        return false;
    struct wr_warm_page *page = make_warm_page(url, (struct wr_span){key.text, key.bytes});
    if (page == NULL || !store_warm_page(warm, page)) {
        free(page);
        warm->no_memory = true;
        return false;
    }
    page->site = site;
    page->is_at_home = wr_url_same_origin(&site->home, url);
    wr_warm_queue_put(&site->pages, page);
    return true;
}

void wr_warm_pages_free(struct wr_warm *warm)
{
    for (size_t i = 0; i < warm->pages_count; i++) {
        free(warm->pages[i]->detail);
        free(warm->pages[i]->final_url);
        free(warm->pages[i]);
    }
    free((void *)warm->pages);
    wr_map_release(&warm->pages_known);
}
