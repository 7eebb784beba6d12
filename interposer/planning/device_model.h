// What the planner must know of the device and its link before anything was measured.
//
// Called once per job's memory. Pure.
#pragma once

#include <string>

#include "scheduler/plan/problem.h"

namespace spillway::interposer {

struct KnownDevice {
  scheduler::DeviceModel model;
  bool is_known = false;  // by its name; else it has the link that most have at least, 3.0 x16
};

// Those that we have figures of: scheduler/networks/devices.h.
KnownDevice DeviceModelFor(const std::string& device_name);

}  // namespace spillway::interposer
