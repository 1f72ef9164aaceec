/* SPDX-License-Identifier: MIT */
/* limiter.c - one stream of requests: five at once, then one a minute.
 *
 *     cc limiter.c $(pkg-config --cflags --libs weir)
 */
#include <stdio.h>
#include <weir/limit.h>

int main(void)
{
    weir_limit limit;
    weir_limiter *limiter;
    weir_decision decision;
    int granted = 0;

    /* A rule is a plain value. If a number is invalid, the error says what would be right. */
    if (weir_limit_token_bucket(&limit, 0, 1, WEIR_MINUTE) == 0)
        return 1;
    printf("refused: %s\n", weir_error_detail());

    if (weir_limit_token_bucket(&limit, 5, 1, WEIR_MINUTE) < 0 || weir_limiter_new(&limit, 1, NULL, &limiter) < 0) {
        fprintf(stderr, "%s\n", weir_error_detail());
        return 1;
    }

    /* "Not now" is not an error but a decision, with the time after which to try again. */
    for (int request = 1; request <= 8; request++) {
        if (weir_limiter_try(limiter, 1, &decision) < 0)
            return 1;
        if (decision.verdict == WEIR_GO)
            granted++;
    }
    printf("granted %d of 8\n", granted);
    if (decision.wait_ns == WEIR_UNTIL_RELEASE) /* only with concurrency rules */
        printf("held by %s, ask again when a request has ended\n", weir_reason_name(decision.reason));
    else
        printf("held by %s, ask again in %lld s\n", weir_reason_name(decision.reason),
               (long long)((decision.wait_ns - 1) / WEIR_SECOND + 1));

    weir_limiter_free(limiter);
    return granted == 5 ? 0 : 1;
}
