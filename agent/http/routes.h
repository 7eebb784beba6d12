// Which page a path means. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::agent {

enum class Page : uint8_t {
  kNone,
  kAsset,  // a file of the live page, or what else has a fixed content
  kHealth,
  kReadiness,
  kMetrics,
  kStatus,
  kHistory,
  kJob,
  kJobHistory,
  kJobPlan,
  kEvents,
};

struct Route {
  Page page = Page::kNone;
  std::string job = {};  // of kJob...; decoded

  bool operator==(const Route&) const = default;
};

// Whether the path may be an asset's, is the caller's to find out: any unknown path is a kAsset.
Route RouteOf(std::string_view path);

// Shown to everybody: assets, health and readiness. They tell nothing of jobs.
bool IsPublic(Page page);

}  // namespace spillway::agent
