// Metric families for a scrape, each filled with series.
#pragma once

#include <prometheus/metric_family.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/node_report.h"

namespace spillway::agent {

using Labels = std::vector<prometheus::ClientMetric::Label>;

inline Labels With(Labels labels, const char* name, std::string value) {
  labels.push_back({name, std::move(value)});
  return labels;
}

class Families {
 public:
  void BeginGauge(const char* name, const char* help) {
    Begin(name, prometheus::MetricType::Gauge, help);
  }
  void BeginCounter(const char* name, const char* help) {
    Begin(name, prometheus::MetricType::Counter, help);
  }
  void BeginHistogram(const char* name, const char* help) {
    Begin(name, prometheus::MetricType::Histogram, help);
  }
  void Add(Labels labels, double value) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    const bool is_counter = families_.back().type == prometheus::MetricType::Counter;
    (is_counter ? metric.counter.value : metric.gauge.value) = value;
    families_.back().metric.push_back(std::move(metric));
  }
  void Add(Labels labels, int64_t value) { Add(std::move(labels), static_cast<double>(value)); }
  // `counts[i]`: samples above bounds[i - 1] up to bounds[i]; the last: above all bounds.
  template <size_t N>
  void Add(Labels labels, const std::array<double, N>& bounds,
           const std::array<int64_t, N + 1>& counts, int64_t sum_ns) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    uint64_t count = 0;
    for (size_t i = 0; i <= N; ++i) {
      count += static_cast<uint64_t>(counts[i]);
      metric.histogram.bucket.push_back(
          {count, i < N ? bounds[i] : std::numeric_limits<double>::infinity()});
    }
    metric.histogram.sample_count = count;
    metric.histogram.sample_sum = static_cast<double>(sum_ns) / 1e9;
    families_.back().metric.push_back(std::move(metric));
  }
  void Gauge(const char* name, const char* help, double value) {
    BeginGauge(name, help);
    Add({}, value);
  }
  void Counter(const char* name, const char* help, int64_t value) {
    BeginCounter(name, help);
    Add({}, value);
  }
  // Drops families without series.
  std::vector<prometheus::MetricFamily> Take() {
    std::erase_if(families_,
                  [](const prometheus::MetricFamily& family) { return family.metric.empty(); });
    return std::move(families_);
  }

 private:
  void Begin(const char* name, prometheus::MetricType type, const char* help) {
    families_.push_back({name, help, type, {}});
  }

  std::vector<prometheus::MetricFamily> families_;
};

void AddProcess(Families& out);
// `used_bytes`: by device UUID.
void AddNode(const NodeReport& report, const std::map<std::string, int64_t>& used_bytes,
             Families& out);
void AddOwners(const NodeReport& report, Families& out);
void AddJobs(const NodeReport& report, Families& out);

}  // namespace spillway::agent
