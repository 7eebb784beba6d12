// Makes the slow pages from the newest report and the history. Called on the page makers' threads.
//
// Invariants
//  1. Scrape and Make are called on one thread each. NVML, which may hang, is asked by Scrape
//  alone.
//  2. Only Make touches the history.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "agent/device/used_memory.h"
#include "agent/http/http_answer.h"
#include "agent/http/latest_report.h"
#include "agent/report/history.h"

namespace spillway::agent {

using PlanPage = std::function<std::string(const std::string& job)>;

class PageSource {
 public:
  // Both outlive it; `used` may be null. `plans` makes the page of a job's plans; it may be empty.
  PageSource(const LatestReport* latest, UsedMemory* used, PlanPage plans)
      : latest_(*latest), used_(used), plans_(std::move(plans)) {}

  HttpAnswer Scrape() const;
  // Of the path /api/v1/events: takes a sample of the newest report. The body is the event, or
  // empty while nobody watches.
  HttpAnswer Make(const std::string& path);
  HttpAnswer Plan(const std::string& path) const;

  void SetWatched(bool is_watched) { is_watched_ = is_watched; }

 private:
  HttpAnswer Sample(const NodeReport& report);

  const LatestReport& latest_;
  UsedMemory* const used_;
  const PlanPage plans_;
  std::atomic<bool> is_watched_ = false;
  NodeHistory history_;
};

}  // namespace spillway::agent
