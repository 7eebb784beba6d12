#include "agent/report/live_pages.h"

#include <nlohmann/json.hpp>

#include "agent/report/node_json.h"

namespace spillway::agent {
namespace {

using nlohmann::ordered_json;

const char* NameOfCause(size_t cause) {
  return cause < protocol::kStallCauseNames.size() ? protocol::kStallCauseNames[cause] : "unknown";
}

struct Amount {
  const char* name;
  int64_t HistorySample::*place;
};
constexpr Amount kAmounts[] = {
    {"budget_bytes", &HistorySample::budget_bytes},
    {"wanted_bytes", &HistorySample::wanted_bytes},
    {"resident_bytes", &HistorySample::resident_bytes},
    {"host_bytes", &HistorySample::host_bytes},
    {"to_host_bytes_per_second", &HistorySample::to_host_bytes},
    {"to_device_bytes_per_second", &HistorySample::to_device_bytes},
};

ordered_json RatesOf(const HistorySample& sample) {
  ordered_json stalls;
  for (size_t i = 0; i < kHistoryCauses; ++i) stalls[NameOfCause(i)] = sample.stall_permille[i];
  ordered_json json;
  for (const Amount& amount : kAmounts) json[amount.name] = sample.*(amount.place);
  json["stall_permille"] = std::move(stalls);
  return json;
}

void AddRates(const HistorySample* sample, ordered_json& to) {
  if (sample != nullptr) to["now"] = RatesOf(*sample);
}

std::string OneLine(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json ValuesOf(const HistorySeries& series, const auto& value_of) {
  ordered_json values = ordered_json::array();
  for (const HistorySample& sample : series.samples) values.push_back(value_of(sample));
  return values;
}

ordered_json JsonOf(uint32_t device, const HistorySeries& series, const NodeHistory& history) {
  const uint64_t first_tick = history.tick() + 1 - history.at_ms().size();
  ordered_json json = {{"device", device}, {"first", series.first_tick - first_tick}};
  for (const Amount& amount : kAmounts)
    json[amount.name] =
        ValuesOf(series, [&](const HistorySample& one) { return one.*(amount.place); });
  ordered_json stalls;
  for (size_t i = 0; i < kHistoryCauses; ++i)
    stalls[NameOfCause(i)] =
        ValuesOf(series, [&](const HistorySample& one) { return one.stall_permille[i]; });
  json["stall_permille"] = std::move(stalls);
  return json;
}

ordered_json HeadOf(const NodeReport& report, const NodeHistory& history) {
  return {{"schema", 1},
          {"agent_instance", report.instance},
          {"tick", history.tick()},
          {"at_ms", history.at_ms()},
          {"series", ordered_json::array()}};
}

}  // namespace

std::string LiveState(const NodeReport& report, const NodeHistory& history) {
  ordered_json json = JsonOfNode(report, kMostEventJobs);
  json["tick"] = history.tick();
  json["at_ms"] = history.at_ms().empty() ? 0 : history.at_ms().back();
  json["jobs_left_out"] = report.jobs.size() - json["jobs"].size();
  for (ordered_json& device : json["devices"])
    AddRates(history.NewestOf(device["device"].get<uint32_t>()), device);
  for (ordered_json& job : json["jobs"]) {
    for (ordered_json& device : job["devices"])
      AddRates(history.NewestOf({job["job"].get<std::string>(), device["device"].get<uint32_t>()}),
               device);
  }
  return OneLine(json);
}

std::string EventOf(const NodeReport& report, const NodeHistory& history) {
  return "event: state\nid: " + std::to_string(report.instance) + "-" +
         std::to_string(history.tick()) + "\ndata: " + LiveState(report, history) + "\n\n";
}

std::string DeviceHistory(const NodeReport& report, const NodeHistory& history) {
  ordered_json json = HeadOf(report, history);
  for (const auto& [device, series] : history.devices())
    json["series"].push_back(JsonOf(device, series, history));
  return OneLine(json) + "\n";
}

std::string JobHistory(const std::string& job, const NodeReport& report,
                       const NodeHistory& history) {
  ordered_json json = HeadOf(report, history);
  for (auto found = history.jobs().lower_bound({job, 0});
       found != history.jobs().end() && found->first.first == job; ++found)
    json["series"].push_back(JsonOf(found->first.second, found->second, history));
  return OneLine(json) + "\n";
}

}  // namespace spillway::agent
