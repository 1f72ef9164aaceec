/* SPDX-License-Identifier: MIT */
/* strategy.c - the strategies by name. */
#include "core/pace/strategy.h"

static const struct wr_strategy *const strategies[] = {
    [WEIR_STRATEGY_NONE] = &wr_none,
};

const struct wr_strategy *wr_strategy_of(weir_strategy strategy)
{
    size_t count = sizeof strategies / sizeof *strategies;
    return (size_t)strategy < count ? strategies[strategy] : NULL;
}
