#include "deploy/kubernetes/slice_publisher.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "deploy/kubernetes/claim.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

constexpr char kSlices[] = "/apis/resource.k8s.io/v1/resourceslices";
constexpr int kConflict = 409, kGone = 410;
constexpr int kFirstPauseMs = 100, kMostPauseMs = 30'000, kMostDoublings = 10;
constexpr int64_t kCalmNs = 60'000'000'000;  // writes further apart are no quarrel

constexpr int64_t kShortWatchNs = 1'000'000'000;

// A conflict is nobody's fault: it is tried again, soon, and without a warning.
constexpr int kConflictCode = EAGAIN;

std::string OwnSlices(const std::string& node) {
  return std::string(kSlices) + "?fieldSelector=spec.driver%3D" + kDriver + "%2Cspec.nodeName%3D" +
         node;
}

bool IsSuccess(int status) { return status >= 200 && status < 300; }

// For comparison: the generation is the publisher's own.
json SpecOf(const json& slice) {
  json spec = slice.value("spec", json::object());
  if (spec.contains("pool")) spec["pool"].erase("generation");
  return spec;
}

int64_t GenerationOf(const json& slice) {
  const json generation = slice.value(json::json_pointer("/spec/pool/generation"), json(0));
  return generation.is_number_integer() ? generation.get<int64_t>() : 0;
}

int64_t PauseMs(int times) {
  return std::min(kFirstPauseMs << std::min(times, kMostDoublings), kMostPauseMs);
}

}  // namespace

SlicePublisher::SlicePublisher(ApiClient* api, std::string node, Warn warn)
    : api_(*api), node_(std::move(node)), warn_(std::move(warn)) {}

void SlicePublisher::Offer(Offered offered) {
  {
    const std::lock_guard lock(mutex_);
    if (offered_ != offered) {
      offered_ = std::move(offered);
      ++offers_;
    }
    if (taken_ == offers_) return;
  }
  changed_.notify_all();
  api_.Interrupt();
}

void SlicePublisher::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  api_.Interrupt();
}

void SlicePublisher::Run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_stopped_ || offered_; });
      if (is_stopped_) return;
      begun_ = offers_;
    }
    WaitAfter(Round());
  }
}

void SlicePublisher::WaitAfter(const base::Result<Then>& done) {
  if (done) {
    failures_ = 0;
    last_warning_.clear();
    if (*done == Then::kAgain && repeats_ > 0) WaitMs(PauseMs(repeats_));
    if (*done == Then::kWatch && short_watches_ > 1) WaitMs(PauseMs(short_watches_ - 2));
    return;
  }
  const bool is_conflict = done.error().code == kConflictCode;
  if (!is_conflict && done.text() != last_warning_) warn_(last_warning_ = done.text());
  WaitMs(PauseMs(failures_++));
}

// A new offer is worth a try at once.
void SlicePublisher::WaitMs(int64_t pause_ms) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::milliseconds(pause_ms),
                    [&] { return is_stopped_ || offers_ != begun_; });
}

base::Result<std::string> SlicePublisher::Wanted() {
  const base::Result<ApiAnswer> node = api_.Get("/api/v1/nodes/" + node_);
  if (!node) return node.status();
  if (node->status != 200) return ErrorOf(*node, "node " + node_);
  const json document = json::parse(node->body, nullptr, false);
  const json uid =
      document.is_object() ? document.value(json::json_pointer("/metadata/uid"), json()) : json();
  if (!uid.is_string()) return base::Error{"the API server's node has no uid"};
  const std::lock_guard lock(mutex_);
  taken_ = offers_;
  return ResourceSlice({node_, uid.get<std::string>()}, offered_->gpus, offered_->taints);
}

base::Result<SlicePublisher::Then> SlicePublisher::Round() {
  const base::Result<std::string> wanted = Wanted();
  if (!wanted) return wanted.status();
  const base::Result<ApiAnswer> list = api_.Get(OwnSlices(node_));
  if (!list) return list.status();
  if (list->status != 200) return ErrorOf(*list, "the list of ResourceSlices");
  const json document = json::parse(list->body, nullptr, false);
  if (!document.is_object()) return base::Error{"the list of ResourceSlices is no JSON object"};
  base::Result<Then> then = Reconcile(list->body, *wanted);
  if (!then || *then == Then::kAgain) return then;
  const json version = document.value(json::json_pointer("/metadata/resourceVersion"), json(""));
  const int64_t began_ns = base::NowNs(CLOCK_MONOTONIC);
  base::Status watched = WatchFrom(version.is_string() ? version.get<std::string>() : "");
  const bool is_short = base::NowNs(CLOCK_MONOTONIC) - began_ns < kShortWatchNs;
  short_watches_ = is_short ? short_watches_ + 1 : 0;
  if (!watched.ok()) return watched;
  return Then::kWatch;
}

base::Result<SlicePublisher::Then> SlicePublisher::Reconcile(const std::string& list,
                                                             const std::string& wanted_text) {
  json wanted = json::parse(wanted_text);
  const json items = json::parse(list).value("items", json::array());
  const std::string name = wanted["metadata"]["name"];
  std::optional<json> current;
  for (const json& item : items) {
    const std::string item_name = item["metadata"]["name"];
    if (item_name == name) {
      current = item;
      continue;
    }
    const base::Result<ApiAnswer> deleted = api_.Delete(std::string(kSlices) + "/" + item_name);
    if (!deleted) return deleted.status();
    if (!IsSuccess(deleted->status) && deleted->status != 404)
      return ErrorOf(*deleted, "deleting an older ResourceSlice");
  }
  const std::string spec = SpecOf(wanted).dump();
  if (!current) return Write(api_.Post(kSlices, wanted.dump()), spec, "creating the ResourceSlice");
  const std::string current_spec = SpecOf(*current).dump();
  if (current_spec == spec || (spec == sent_ && current_spec == stored_)) return Then::kWatch;
  wanted["metadata"]["resourceVersion"] = (*current)["metadata"]["resourceVersion"];
  wanted["spec"]["pool"]["generation"] = GenerationOf(*current) + 1;
  return Write(api_.Put(std::string(kSlices) + "/" + name, wanted.dump()), spec,
               "updating the ResourceSlice");
}

base::Result<SlicePublisher::Then> SlicePublisher::Write(const base::Result<ApiAnswer>& answer,
                                                         const std::string& spec,
                                                         const char* what) {
  if (!answer) return answer.status();
  if (answer->status == kConflict)
    return base::Error{what, "somebody else was faster", "", kConflictCode};
  if (!IsSuccess(answer->status)) return ErrorOf(*answer, what);
  const json stored = json::parse(answer->body, nullptr, false);
  const int64_t now_ns = base::NowNs(CLOCK_MONOTONIC);
  const bool is_repeated = spec == sent_ && now_ns - last_write_ns_ < kCalmNs;
  repeats_ = is_repeated ? repeats_ + 1 : 0;
  last_write_ns_ = now_ns;
  sent_ = spec;
  stored_ = stored.is_object() ? SpecOf(stored).dump() : "";
  const bool is_whole = stored_.find("allowMultipleAllocations") != std::string::npos;
  if (is_whole_ && !is_whole)
    warn_(
        "the API server knows no consumable capacity (DRAConsumableCapacity, on by default since "
        "Kubernetes 1.36): each GPU goes to one claim, whole");
  is_whole_ = is_whole;
  return Then::kAgain;
}

base::Status SlicePublisher::WatchFrom(const std::string& version) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopped_ || taken_ != offers_) return base::Ok();
  }
  base::Status status;
  const base::Result<ApiAnswer> answer = api_.Watch(
      OwnSlices(node_) +
          "&watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=" + version,
      [&](const std::string& line) {
        const json event = json::parse(line, nullptr, false);
        const std::string type = event.is_object() ? event.value("type", "") : "";
        if (type == "BOOKMARK") return true;
        const json code =
            event.is_object() ? event.value(json::json_pointer("/object/code"), json(0)) : json(0);
        if (type == "ERROR" && code != kGone)
          status = base::Error{"the watch for ResourceSlices fails", line};
        return false;  // list again
      });
  if (!answer) return answer.status();
  if (answer->status == kGone) return base::Ok();
  if (answer->status != 200) return ErrorOf(*answer, "the watch for ResourceSlices");
  return status;
}

}  // namespace spillway::kubernetes
