/* SPDX-License-Identifier: MIT */
/* strategy.c - Lists the strategies and classifies HTTP statuses for them. */
#include "core/pace/strategy.h"

#include "core/pace/refusal.h"

#include <assert.h>

static const struct wr_strategy *const strategies[WEIR_STRATEGY_NONE + 1] = {
    [WEIR_STRATEGY_TIDE] = &wr_tide,
    [WEIR_STRATEGY_FIXED] = &wr_fixed,
    [WEIR_STRATEGY_AIMD] = &wr_aimd,
    [WEIR_STRATEGY_LEARNED] = &wr_learned,
    [WEIR_STRATEGY_AIMD_LEARNED] = &wr_aimd_learned,
    [WEIR_STRATEGY_GRADIENT] = &wr_gradient,
    [WEIR_STRATEGY_PID] = &wr_pid,
    [WEIR_STRATEGY_NONE] = &wr_none,
};

const struct wr_strategy *wr_strategy_of(weir_strategy strategy)
{
    assert((unsigned)strategy <= WEIR_STRATEGY_NONE);
    return strategies[strategy];
}

enum wr_pace_response_kind wr_pace_response_kind(int status)
{
    if (wr_status_refuses(status) || status == 403 || status == 503)
        return WR_PACE_RESPONSE_REJECTED;
    if (status < 100 || status > 599)
        return WR_PACE_RESPONSE_LOST;
    return status >= 500 ? WR_PACE_RESPONSE_ERROR : WR_PACE_RESPONSE_OK;
}
