/* SPDX-License-Identifier: MIT */
/* error.h - error codes and their texts.
 *
 * Functions that can fail return 0 or one of the negative WEIR_E_ codes below. "Not now" is not an
 * error: it is a decision (see limit.h). After WEIR_E_INVAL, weir_error_detail() says which
 * argument was wrong and what would be right; a call that returns WEIR_E_INVAL has changed nothing.
 *
 *     if (weir_limit_token_bucket(&limit, 0, 10, WEIR_SECOND) < 0)
 *         fprintf(stderr, "%s\n", weir_error_detail());
 */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

#include <weir/version.h>

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, text */
#define WEIR_ERRORS(X)                                                                \
    X(WEIR_E_INVAL, -1, "invalid argument")                                           \
    X(WEIR_E_NOMEM, -2, "out of memory")                                              \
    X(WEIR_E_TIMEOUT, -3, "the deadline passed before the request could be admitted") \
    X(WEIR_E_CANCELLED, -4, "cancelled while waiting")                                \
    X(WEIR_E_CLOSED, -5, "the object has been closed")                                \
    X(WEIR_E_FULL, -6, "there is no room for more")                                   \
    X(WEIR_E_NEVER, -7, "more permits than the limit can ever grant at once")         \
    X(WEIR_E_ABSENT, -8, "no such key")                                               \
    X(WEIR_E_SPACE, -9, "the buffer is too small")                                    \
    X(WEIR_E_SYSTEM, -10, "a system call failed")                                     \
    X(WEIR_E_CIRCUIT, -11, "the host's circuit breaker is open")                      \
    X(WEIR_E_WITHDRAWN, -12, "the permit was withdrawn before the request was sent")

enum weir_error_code {
    WEIR_OK = 0,
#define X(code, value, text) code = value,
    WEIR_ERRORS(X)
#undef X
};

/* Returns the text of a code; "unknown error" for an unknown code. Never NULL. */
WEIR_API const char *weir_error_text(int code);

/* Returns the name of a code, such as "WEIR_E_INVAL"; "WEIR_OK" for 0; "unknown error" for an
 * unknown code. Never NULL. */
WEIR_API const char *weir_error_name(int code);

/* Returns which argument was wrong in the last call on this thread that returned WEIR_E_INVAL, and
 * what would be right. The text does not change until the next such call. Only WEIR_E_INVAL sets
 * it, except in pace.h, where every failure does. Never NULL. */
WEIR_API const char *weir_error_detail(void);

#ifdef __cplusplus
}
#endif
#endif
