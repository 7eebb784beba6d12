// What the planner knows about a device and its link before anything is measured.
#pragma once

#include <string>

#include "scheduler/plan/problem.h"

namespace spillway::interposer {

struct KnownDevice {
  scheduler::DeviceModel model;
  bool is_known = false;  // by its name; otherwise PCIe 3.0 x16 is assumed
};

KnownDevice DeviceModelFor(const std::string& device_name);

}  // namespace spillway::interposer
