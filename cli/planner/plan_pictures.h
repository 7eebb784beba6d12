// Draws a plan's last iteration as SVG and as a Chrome/Perfetto trace.
#pragma once

#include <string>

#include "scheduler/plan/cost_model.h"
#include "scheduler/plan/plan.h"
#include "scheduler/plan/problem.h"

namespace spillway::cli {

std::string PlanToSvg(const scheduler::Problem& problem, const scheduler::Plan& plan,
                      const scheduler::Timeline& timeline);

// For chrome://tracing and ui.perfetto.dev.
std::string PlanToPerfetto(const scheduler::Problem& problem, const scheduler::Plan& plan,
                           const scheduler::Timeline& timeline);

}  // namespace spillway::cli
