#include "cli/planner/profile_json.h"

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>

namespace spillway::cli {
namespace {

using Json = nlohmann::ordered_json;
using namespace scheduler;

constexpr const char* kKinds[] = {"other", "input", "weight", "opt",      "wgrad",
                                  "act",   "aux",   "grad",   "workspace"};
constexpr const char* kTypes[] = {"other",     "conv",  "fc",      "pool",    "activation",
                                  "norm",      "lrn",   "dropout", "softmax", "join",
                                  "attention", "embed", "update"};
constexpr const char* kPhases[] = {"F", "B", "U"};

template <class Enum, size_t N>
Enum FromName(const std::string& name, const char* const (&names)[N]) {
  for (size_t i = 0; i < N; ++i) {
    if (name == names[i]) return static_cast<Enum>(i);
  }
  return static_cast<Enum>(0);
}

std::vector<int32_t> Numbers(const std::vector<BufferId>& ids) {
  std::vector<int32_t> numbers;
  for (BufferId id : ids) numbers.push_back(id.index);
  return numbers;
}

std::vector<BufferId> Ids(const Json& numbers) {
  std::vector<BufferId> ids;
  for (const Json& number : numbers) ids.push_back({number.get<int32_t>()});
  return ids;
}

Json ToJson(const Buffer& buffer) {
  return {{"name", buffer.name},
          {"kind", kKinds[static_cast<size_t>(buffer.kind)]},
          {"size_bytes", buffer.size_bytes},
          {"born", buffer.born.index},
          {"dies", buffer.dies.index},
          {"persistent", buffer.persistent},
          {"movable", buffer.movable}};
}

Json ToJson(const Operation& operation) {
  Json json = {{"name", operation.name},
               {"type", kTypes[static_cast<size_t>(operation.type)]},
               {"phase", kPhases[static_cast<size_t>(operation.phase)]},
               {"replayable", operation.replayable},
               {"reads", Numbers(operation.reads)},
               {"writes", Numbers(operation.writes)},
               {"duration_ns", operation.duration_ns}};
  for (const WorkspaceChoice& choice : operation.workspaces)
    json["workspaces"].push_back({{"name", choice.name},
                                  {"size_bytes", choice.size_bytes},
                                  {"duration_ns", choice.duration_ns}});
  return json;
}

Buffer BufferFrom(const Json& json) {
  Buffer buffer;
  buffer.name = json.at("name");
  buffer.kind = FromName<BufferKind>(json.value("kind", "other"), kKinds);
  buffer.size_bytes = json.at("size_bytes");
  buffer.persistent = json.value("persistent", false);
  buffer.movable = json.value("movable", true);
  buffer.born = {json.value("born", -1)};
  buffer.dies = {json.value("dies", -1)};
  return buffer;
}

Operation OperationFrom(const Json& json) {
  Operation operation;
  operation.name = json.at("name");
  operation.type = FromName<OperationType>(json.value("type", "other"), kTypes);
  operation.phase = FromName<Phase>(json.value("phase", "F"), kPhases);
  operation.replayable = json.value("replayable", false);
  operation.reads = Ids(json.at("reads"));
  operation.writes = Ids(json.at("writes"));
  operation.duration_ns = json.at("duration_ns");
  for (const Json& choice : json.value("workspaces", Json::array()))
    operation.workspaces.push_back(
        {choice.at("name"), choice.at("size_bytes"), choice.at("duration_ns")});
  return operation;
}

IterationProfile OwnForm(const Json& json) {
  IterationProfile profile;
  profile.name = json.value("name", "");
  profile.batch_size = json.value("batch_size", int64_t{0});
  bool has_lifetimes = true;
  for (const Json& buffer : json.at("buffers")) {
    profile.buffers.push_back(BufferFrom(buffer));
    has_lifetimes = has_lifetimes && (buffer.contains("born") || profile.buffers.back().persistent);
  }
  for (const Json& operation : json.at("operations"))
    profile.operations.push_back(OperationFrom(operation));
  if (!has_lifetimes) SetLifetimesToTouches(profile);
  return profile;
}

// Generators append the direction: "conv_dgrad".
OperationType TypeOf(std::string name) {
  name = name.substr(0, name.find('_'));
  if (name == "bn" || name == "ln") return OperationType::kNormalization;
  if (name == "relu" || name == "gelu") return OperationType::kActivation;
  if (name == "add" || name == "concat") return OperationType::kJoin;
  if (name == "sgd") return OperationType::kUpdate;
  if (name == "softmaxloss") return OperationType::kSoftmax;
  if (name == "bmm" || name == "attnsoftmax" || name == "flashattn")
    return OperationType::kAttention;
  return FromName<OperationType>(name, kTypes);
}

IterationProfile GeneratorsForm(const Json& json, const networks::ComputeRates& rates) {
  networks::TrainingStep step;
  std::deque<std::string> names;  // a deque, as algorithms keep pointers
  step.profile.name = json.value("name", "");
  step.profile.batch_size = json.value("batch", int64_t{0});
  for (const Json& tensor : json.at("tensors")) {
    Buffer buffer;
    buffer.name = tensor.at("name");
    buffer.kind = FromName<BufferKind>(tensor.at("kind"), kKinds);
    buffer.size_bytes = tensor.at("bytes");
    buffer.persistent = buffer.kind == BufferKind::kInput ||
                        buffer.kind == BufferKind::kParameter ||
                        buffer.kind == BufferKind::kOptimizerState;
    step.profile.buffers.push_back(std::move(buffer));
  }
  for (const Json& op : json.at("ops")) {
    Operation operation;
    operation.name = op.at("name");
    operation.type = TypeOf(op.at("type"));
    operation.phase = FromName<Phase>(op.at("phase"), kPhases);
    operation.replayable = operation.phase == Phase::kForward;
    operation.reads = Ids(op.at("reads"));
    operation.writes = Ids(op.at("writes"));
    step.profile.operations.push_back(std::move(operation));
    networks::OperationWork work{op.at("flops"), op.at("bytes"), {}};
    for (const Json& choice : op.value("ws", Json::array())) {
      names.push_back(choice.at(0));
      const double speed = choice.at(2);
      work.algorithms.push_back(
          {names.back().c_str(), choice.at(1), static_cast<int32_t>(speed * 100 + 0.5)});
    }
    step.work.push_back(std::move(work));
  }
  networks::SetDurations(step, rates);
  SetLifetimesToTouches(step.profile);
  return std::move(step.profile);
}

}  // namespace

std::string ProfileToJson(const IterationProfile& profile) {
  Json json = {{"name", profile.name}, {"batch_size", profile.batch_size}};
  json["buffers"] = json["operations"] = Json::array();
  for (const Buffer& buffer : profile.buffers) json["buffers"].push_back(ToJson(buffer));
  for (const Operation& operation : profile.operations)
    json["operations"].push_back(ToJson(operation));
  return json.dump(1) + "\n";
}

std::string TraceToJson(const EventTrace& trace) {
  constexpr const char* kEvents[] = {"allocate", "free", "operation", "synchronize"};
  Json json = {{"name", trace.name}, {"identities", trace.identities}, {"events", Json::array()}};
  for (const Event& event : trace.events) {
    Json entry = {{"kind", kEvents[static_cast<size_t>(event.kind)]}, {"start_ns", event.start_ns}};
    if (event.thread != 0) entry["thread"] = event.thread;
    if (event.allocation >= 0) entry["allocation"] = event.allocation;
    if (event.kind == EventKind::kAllocate) entry["size_bytes"] = event.size_bytes;
    if (event.kind == EventKind::kOperation) {
      entry["identity"] = event.identity;
      entry["stream"] = event.stream;
      entry["duration_ns"] = event.duration_ns;
    }
    for (const TraceTouch& touch : event.touches)
      entry["touches"].push_back(
          {touch.allocation, std::string(touch.reads ? "r" : "") + (touch.writes ? "w" : "")});
    json["events"].push_back(std::move(entry));
  }
  return json.dump(1) + "\n";
}

base::Result<IterationProfile> ProfileFromJson(const std::string& text,
                                               const networks::ComputeRates& rates,
                                               bool& modelled) {
  try {
    const Json json = Json::parse(text);
    modelled = json.contains("tensors");
    return modelled ? GeneratorsForm(json, rates) : OwnForm(json);
  } catch (const nlohmann::json::exception& error) {
    return base::Error{std::string("this is no profile in JSON: ") + error.what()};
  }
}

}  // namespace spillway::cli
