#include "agent/arbiter/amounts.h"

#include <cstdio>

#include "base/units.h"

namespace spillway::agent {

std::string InBytes(int64_t bytes) {
  char text[32];
  if (bytes >= base::kGibibyte) {
    std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / base::kGibibyte);
  } else if (bytes >= base::kMebibyte) {
    std::snprintf(text, sizeof text, "%.0f MiB", static_cast<double>(bytes) / base::kMebibyte);
  } else {
    std::snprintf(text, sizeof text, "%lld B", static_cast<long long>(bytes));
  }
  return text;
}

}  // namespace spillway::agent
