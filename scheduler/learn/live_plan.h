// Moved: scheduler/plan/live_plan.h.
#pragma once

#include "scheduler/plan/live_plan.h"  // IWYU pragma: export
