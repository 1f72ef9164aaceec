/* SPDX-License-Identifier: MIT */
/* error.h - how the library reports what is wrong with an argument.
 *
 *     if (capacity == 0)
 *         return wr_invalid("capacity is 0; it must be 1 ... 4294967295");
 *
 * These functions return WEIR_E_INVAL and set the text that weir_error_detail() returns on this
 * thread. A text says what is wrong and what would be right, in ASCII, because it may end up in a
 * log or on any terminal.
 */
#ifndef WR_BASE_ERROR_H
#define WR_BASE_ERROR_H

#include "base/seam.h"

#include <stddef.h>
#include <weir/error.h>

#define WR_NOWHERE ((size_t)-1) /* an offset: the error concerns the whole text */

/* Returns the text of an error: the detail, or the text of the code if there is no detail or the
 * code is WEIR_E_NOMEM, which sets none. */
const char *wr_error_message(int code);

/* Sets the error detail without returning a code, also for codes other than WEIR_E_INVAL. `why` is
 * not copied: it must be a literal. */
WR_SEAM void wr_error_set(const char *why);

/* Sets the error detail to the literal `why` and returns WEIR_E_INVAL. Inline, so that compilers
 * and analyzers see that the result is never 0. */
static inline int wr_invalid(const char *why)
{
    wr_error_set(why);
    return WEIR_E_INVAL;
}

/* Sets the error detail to the text of a negative `code`, so that an older detail is not mistaken
 * for this error. Leaves the detail alone for WEIR_E_INVAL, which has set it already. Returns
 * `code`. */
static inline int wr_failed(int code)
{
    if (code < 0 && code != WEIR_E_INVAL)
        wr_error_set(weir_error_text(code));
    return code;
}

/* Sets the error detail to
 *     what "text" why
 * with the text quoted as wr_invalid_text does. Copies all arguments.
 */
WR_SEAM void wr_error_set_text(const char *what, const char *text, size_t text_bytes, const char *why);
/* Sets the error detail to `what "text": cause`. `cause` is the error text of the operating
 * system. */
void wr_error_set_cause(const char *what, const char *text, const char *cause);

/* Puts `where` and ": " before the error detail and returns WEIR_E_INVAL. For callers that know
 * which input was parsed. */
int wr_invalid_in(const char *where);

/* Returns the end of the error detail without the quoted text, which may be a secret: "unknown unit
 * at character 2; use ns". */
const char *wr_error_unquoted(void);

/* Reports text that does not parse: sets the error detail to
 *     duration "5 parsecs": unknown unit at character 2; use ns, us, ms, s, m, h or d
 * from `what`, the text, `wrong`, the byte offset `at` (from 0, or WR_NOWHERE) and `right`. Quotes
 * only the start of a long text, as printable ASCII, because the text is untrusted. A NULL text is
 * quoted like an empty one. Returns WEIR_E_INVAL.
 */
WR_SEAM int wr_invalid_text(const char *what, const char *text, size_t text_bytes, const char *wrong, size_t at,
                            const char *right);

#endif
