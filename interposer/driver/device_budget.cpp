#include "interposer/driver/device_budget.h"

#include <stdio.h>

#include "interposer/config/config.h"
#include "interposer/driver/driver_api.h"

namespace spillway::interposer {

base::DeviceBudget BudgetOf(CUdevice device) {
  const Config& config = ProcessConfig();
  if (config.external_limits.empty()) return {config.budget_bytes, ""};
  CUuuid uuid{};
  const bool is_known = driver::Driver().cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS;
  const UuidText text(uuid);
  return BudgetOf(base::DeviceName{device, is_known ? text.text : ""});
}

base::DeviceBudget BudgetOf(const base::DeviceName& device) {
  const Config& config = ProcessConfig();
  return base::BudgetOf(device, config.budget_bytes, config.external_limits);
}

UuidText::UuidText(const CUuuid& uuid) {
  size_t at = static_cast<size_t>(snprintf(text, sizeof text, "GPU-"));
  for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const char* const dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    at += static_cast<size_t>(
        snprintf(text + at, sizeof text - at, "%s%02x", dash,
                 static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i]))));
  }
}

}  // namespace spillway::interposer
