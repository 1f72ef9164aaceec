/* SPDX-License-Identifier: MIT */
/* admission_result.c - derives the result of an admission from its rulings: the decisive ruling,
 * the HTTP status and Retry-After. */
#include "core/admit/admission_result.h"

int64_t wr_seconds_up(int64_t ns)
{
    return ns <= 0 ? 0 : (ns - 1) / WEIR_SECOND + 1;
}

int64_t wr_ruling_until_ns(const weir_ruling *ruling)
{
    if (ruling->outcome != WEIR_OUTCOME_REFUSED)
        return ruling->quota.period_ns == 0 ? WR_NO_TIME : ruling->quota.reset_ns;
    if (ruling->decision.verdict == WEIR_DENY || ruling->decision.wait_ns == WEIR_UNTIL_RELEASE)
        return WR_NO_TIME;
    return ruling->decision.wait_ns;
}

int64_t wr_retry_after_s(const weir_ruling *ruling)
{
    if (ruling->outcome == WEIR_OUTCOME_FAILED)
        return 1; /* the failure is likely temporary, but its end is unknown */
    if (ruling->outcome != WEIR_OUTCOME_REFUSED || ruling->decision.verdict == WEIR_DENY)
        return 0;
    int64_t seconds = wr_seconds_up(wr_ruling_until_ns(ruling));
    return seconds < 1 ? 1 : seconds;
}

bool wr_ruling_is_shown(const weir_ruling *ruling)
{
    return !ruling->shadow && ruling->quota.limit > 0;
}

const weir_ruling *weir_admission_result_decisive(const weir_admission_result *admission)
{
    const weir_ruling *least = NULL;

    if (admission == NULL)
        return NULL;
    if (!admission->allowed)
        return admission->count == 0 ? NULL : &admission->rulings[admission->count - 1];
    for (uint32_t i = 0; i < admission->count; i++) {
        const weir_ruling *ruling = &admission->rulings[i];
        if (!wr_ruling_is_shown(ruling))
            continue;
        if (least == NULL || (uint64_t)ruling->quota.remaining * least->quota.limit <
                                 (uint64_t)least->quota.remaining * ruling->quota.limit)
            least = ruling;
    }
    return least;
}

int weir_admission_result_status(const weir_admission_result *admission)
{
    const weir_ruling *ruling = weir_admission_result_decisive(admission);

    if (admission == NULL || (!admission->allowed && ruling == NULL))
        return 503;
    if (admission->allowed)
        return 200;
    return ruling->outcome == WEIR_OUTCOME_MALFORMED ? 400 : ruling->outcome == WEIR_OUTCOME_FAILED ? 503 : 429;
}
