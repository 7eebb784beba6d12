// AutoSwap (Zhang et al., 2019): swaps chosen by a priority score until the load fits, scores
// weighted by Bayesian optimisation.
//
// Candidates are large idle intervals that cross the highest load. Scores: duration of absence
// (DOA: idle time less both copies), area of absence (AOA: that times the size, or divided by it
// when negative), weighted duration (WDOA: the load above which the absence lies, integrated), and
// the same re-evaluated after each choice (SWDOA). Sections 4.1 to 4.3.
#pragma once

#include "scheduler/plan/strategies/workbench.h"

namespace spillway::scheduler {

const ChoosingStrategy& AutoSwapDoa();
const ChoosingStrategy& AutoSwapAoa();
const ChoosingStrategy& AutoSwapWdoa();
const ChoosingStrategy& AutoSwapSwdoa();
const ChoosingStrategy&
AutoSwap();  // the four scores' weights by Bayesian optimisation, seeded by the problem

}  // namespace spillway::scheduler
