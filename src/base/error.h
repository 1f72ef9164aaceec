/* SPDX-License-Identifier: MIT */
/* error.h - how the library says what is wrong with an argument.
 *
 *     if (capacity == 0)
 *         return wr_invalid("capacity is 0; it must be 1 ... 4294967295");
 *
 * These functions return WEIR_E_INVAL and set what weir_error_detail() says on this thread. Say what is wrong and what
 * would be right, in ASCII: the text may end in a log or on any terminal.
 */
#ifndef WR_BASE_ERROR_H
#define WR_BASE_ERROR_H

#include <stddef.h>
#include <weir/error.h>

#define WR_NOWHERE ((size_t)-1) /* an offset: the text as a whole is wrong */

/* What went wrong: the detail, or, for want of memory, of which nobody makes words, what the code says. */
const char *wr_error_words(int code);

/* Sets the detail of an error that may be another than WEIR_E_INVAL. `why` is kept, not copied: it must be a literal.
 */
void wr_error_note(const char *why);

/* Inline, so that compilers and analyzers see that it is never 0. */
static inline int wr_invalid(const char *why)
{
    wr_error_note(why);
    return WEIR_E_INVAL;
}

/* Of a negative code that says all there is to say: sets the detail to its text, so that an older one is not taken for
 * this one's. WEIR_E_INVAL has set it already. Returns `code`. */
static inline int wr_failed(int code)
{
    if (code < 0 && code != WEIR_E_INVAL)
        wr_error_note(weir_error_text(code));
    return code;
}

/* Sets the detail to
 *     what "text" why
 * with the text quoted as wr_invalid_text does. Keeps nothing. */
void wr_error_note_text(const char *what, const char *text, size_t text_bytes, const char *why);
/* With a colon before what the system says. */
void wr_error_note_cause(const char *what, const char *text, const char *cause);

/* Puts `where` and a colon before the detail, and returns WEIR_E_INVAL: for one that knows what was parsed. */
int wr_invalid_in(const char *where);

/* The detail without the text that it quotes, for a text that may be a secret: "unknown unit at character 2; use ns".
 */
const char *wr_error_plain(void);

/* For text that does not parse. Formats
 *     duration "5 parsecs": unknown unit at character 2; use ns, us, ms, s, m, h or d
 * from `what`, the text, `wrong`, the byte offset `at` (from 0, or WR_NOWHERE) and `right`. Quotes only the first bytes
 * of a long text, and as printable ASCII: it may come from anybody. NULL is quoted like an empty text. */
int wr_invalid_text(const char *what, const char *text, size_t text_bytes, const char *wrong, size_t at,
                    const char *right);

#endif
