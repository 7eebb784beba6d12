// What the planner must know of the device and its link before anything was measured.
//
// Called once per job's memory. Pure.
#pragma once

#include <string>

#include "scheduler/plan/problem.h"

namespace spillway::interposer {

// From the device's name, where it is one whose figures we have (scheduler/networks/devices.h); else those of a link of
// 3.0 x16, which most have at least.
scheduler::DeviceModel DeviceModelFor(const std::string& device_name);

}  // namespace spillway::interposer
