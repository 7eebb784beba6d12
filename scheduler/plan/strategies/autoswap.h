// AutoSwap (Zhang et al., 2019): swaps by a priority score until the load fits.
//
// Candidates are large idle intervals across the highest load. Scores (sections 4.1 to 4.3):
// duration of absence (DOA: idle time less both copies); area of absence (AOA: DOA times the size,
// or divided by it if negative); weighted duration (WDOA: the integral of the load above the
// absence); and the same re-evaluated after each choice (SWDOA).
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& AutoSwapDoa();
const ChoosingStrategy& AutoSwapAoa();
const ChoosingStrategy& AutoSwapWdoa();
const ChoosingStrategy& AutoSwapSwdoa();
const ChoosingStrategy& AutoSwap();  // by weights for all four, from Bayesian optimisation

}  // namespace spillway::scheduler
