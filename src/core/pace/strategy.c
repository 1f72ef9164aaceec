/* SPDX-License-Identifier: MIT */
/* strategy.c - the strategies by name. */
#include "core/pace/strategy.h"

static const struct wr_strategy *const strategies[WEIR_STRATEGY_NONE + 1] = {
    [WEIR_STRATEGY_TIDE] = &wr_tide,       [WEIR_STRATEGY_FIXED] = &wr_fixed, [WEIR_STRATEGY_AIMD] = &wr_aimd,
    [WEIR_STRATEGY_LEARNED] = &wr_learned, [WEIR_STRATEGY_BOTH] = &wr_both,   [WEIR_STRATEGY_GRADIENT] = &wr_gradient,
    [WEIR_STRATEGY_PID] = &wr_pid,         [WEIR_STRATEGY_NONE] = &wr_none,
};

const struct wr_strategy *wr_strategy_of(weir_strategy strategy)
{
    return (unsigned)strategy <= WEIR_STRATEGY_NONE ? strategies[strategy] : NULL;
}
