/* SPDX-License-Identifier: MIT */
/* book.c - creates, reloads and frees a rulebook. */
#include "shell/rulebook/book.h"

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "shell/clock/clock.h"
#include "shell/memory/memory.h"

#include <string.h>

/* ---- error messages -------------------------------------------------------------------------- */

/* Writes the message of `error` to `ret_why`, and returns `error`. */
static int tell_why(int error, char *ret_why, size_t why_bytes)
{
    struct wr_buf why;

    wr_buf_init_fixed(&why, ret_why, why_bytes);
    wr_buf_append_string(&why, wr_error_words(error));
    return error;
}

/* ---- create and free ------------------------------------------------------------------------- */

static int choose_secret(struct wr_rulebook *book, const struct wr_rulebook_settings *settings)
{
    uint8_t random[32];
    struct wr_buf secret;

    if (settings->secret[0] != '\0') {
        memcpy(book->secret, settings->secret, sizeof book->secret);
        return 0;
    }
    int error = wr_random(random, sizeof random);
    wr_buf_init_fixed(&secret, book->secret, sizeof book->secret);
    for (size_t i = 0; i < sizeof random && error == 0; i++)
        wr_buf_append_hex(&secret, random[i], 2, WR_HEX_SMALL);
    return error;
}

static void free_book(struct wr_rulebook *book)
{
    wr_holds_release(book);
    wr_edition_drop(atomic_load(&book->edition));
    wr_agency_free(book->agency);
    while (book->shelves != NULL) {
        struct wr_shelf *shelf = book->shelves;
        book->shelves = shelf->next;
        wr_give(book->allocator, shelf, sizeof *shelf, _Alignof(struct wr_shelf));
    }
    (void)pthread_mutex_destroy(&book->changing);
    (void)pthread_mutex_destroy(&book->saving);
    wr_give(book->allocator, book, sizeof *book, _Alignof(struct wr_rulebook));
}

/* Connects to the store of shared limits, if a rule is shared. */
static int start(struct wr_rulebook *book)
{
    return book->agency != NULL ? wr_agency_start(book->agency) : 0;
}

static int fill(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, uint32_t origins)
{
    struct wr_edition *edition;
    int error = choose_secret(book, settings);

    if (error == 0)
        error = wr_holds_init(&book->holds, settings->holds_max, origins, book->allocator);
    if (error == 0)
        error = wr_edition_new(book, settings, NULL, &edition);
    if (error == 0)
        atomic_store(&book->edition, edition);
    return error;
}

static int make(const struct wr_rulebook_settings *settings, const struct wr_rulebook_options *options, bool starts,
                struct wr_rulebook **ret_book, char *ret_why, size_t why_bytes)
{
    const weir_allocator *allocator = wr_allocator_or_system(options != NULL ? options->allocator : NULL);
    struct wr_rulebook *book = wr_take(allocator, sizeof *book, _Alignof(struct wr_rulebook));

    if (book == NULL)
        return tell_why(WEIR_E_NOMEM, ret_why, why_bytes);
    book->allocator = allocator;
    book->clock = wr_clock_or_fast(options != NULL ? options->clock : NULL);
    book->moment_now = options != NULL && options->moment_now != NULL ? options->moment_now : wr_moment_now;
    (void)pthread_mutex_init(&book->changing, NULL); /* default attributes: cannot fail */
    (void)pthread_mutex_init(&book->saving, NULL);
    int error = fill(book, settings, options != NULL ? options->origins : 1);
    if (error == 0 && starts)
        error = start(book);
    if (error < 0) {
        (void)tell_why(error, ret_why, why_bytes);
        free_book(book);
        return error;
    }
    *ret_book = book;
    return 0;
}

int wr_rulebook_new(const struct wr_rulebook_settings *settings, const struct wr_rulebook_options *options,
                    struct wr_rulebook **ret_book, char *ret_why, size_t why_bytes)
{
    return make(settings, options, true, ret_book, ret_why, why_bytes);
}

void wr_rulebook_free(struct wr_rulebook *book)
{
    if (book != NULL)
        free_book(book);
}

int wr_rulebook_check(const struct wr_rulebook_settings *settings, char *ret_why, size_t why_bytes)
{
    struct wr_rulebook *book;
    int error = make(settings, NULL, false, &book, ret_why, why_bytes);

    if (error == 0)
        wr_rulebook_free(book);
    return error;
}

/* ---- reload ---------------------------------------------------------------------------------- */

static int replace(struct wr_rulebook *book, const struct wr_rulebook_settings *settings)
{
    struct wr_edition *old = atomic_load(&book->edition);
    struct wr_edition *edition;
    int error = wr_edition_new(book, settings, old, &edition);

    if (error < 0)
        return error;
    error = start(book);
    if (error == 0)
        error = wr_edition_enforce(edition);
    if (error < 0) {
        wr_edition_drop(edition);
        return error;
    }
    atomic_store(&book->edition, edition);
    wr_grace_wait(&book->grace);
    wr_edition_drop(old);
    return 0;
}

int wr_rulebook_reload(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, char *ret_why,
                       size_t why_bytes)
{
    (void)pthread_mutex_lock(&book->changing);
    int error = replace(book, settings);
    (void)pthread_mutex_unlock(&book->changing);
    atomic_fetch_add(error == 0 ? &book->reloads : &book->reloads_failed, 1);
    return error < 0 ? tell_why(error, ret_why, why_bytes) : 0;
}

const char *wr_rulebook_secret(const struct wr_rulebook *book)
{
    return book->secret;
}

int wr_rulebook_take_secret(struct wr_rulebook *book, const struct wr_rulebook_settings *settings, const char *secret)
{
    size_t bytes = strlen(secret);

    if (settings->secret[0] != '\0' || bytes == 0 || bytes >= sizeof book->secret)
        return 0;
    (void)pthread_mutex_lock(&book->changing);
    memcpy(book->secret, secret, bytes + 1);
    int error = replace(book, settings); /* listed token: keys are digests under the secret */
    (void)pthread_mutex_unlock(&book->changing);
    return error;
}

void wr_rulebook_unread(struct wr_rulebook *book)
{
    atomic_fetch_add(&book->reloads_failed, 1);
}
