#include "cli/planner/profile_source.h"

#include <cerrno>
#include <charconv>

#include "base/file.h"
#include "cli/failure.h"
#include "cli/planner/profile_json.h"
#include "scheduler/networks/catalog.h"
#include "scheduler/trace/event_text.h"
#include "scheduler/trace/file/trace_file.h"

namespace spillway::cli {
namespace {

using namespace scheduler;

// Assumed per cent of peak figures that training kernels reach; printed as "modelled".
constexpr int32_t kFlopsPercent = 60, kMemoryPercent = 80;

networks::ComputeRates RatesOf(const networks::Device& device) {
  return networks::EffectiveRates(device, kFlopsPercent, kMemoryPercent);
}

std::string ListOf(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// "resnet50:64" from "network:resnet50:64".
IterationProfile MakeNetworkProfile(const std::string& written, const networks::Device& device) {
  const size_t colon = written.find(':');
  int64_t batch_size = 0;
  if (colon != std::string::npos) {
    const char* end = written.data() + written.size();
    const auto [stop, error] = std::from_chars(written.data() + colon + 1, end, batch_size);
    if (error != std::errc() || stop != end || batch_size < 1 || batch_size > 1'000'000)
      throw Failure(kExitUsage, "no batch size '" + written.substr(colon + 1) + "'",
                    "it is a number from 1 to 1000000", "for example: network:resnet50:64");
  }
  const auto graph = networks::MakeNetwork(written.substr(0, colon), batch_size);
  if (!graph)
    throw Failure(kExitUsage, "no network '" + written.substr(0, colon) + "'",
                  "there are " + ListOf(networks::NetworkNames()) + ", and resnetN for any depth",
                  "choose one of these");
  networks::TrainingStep step =
      networks::MakeTrainingStep(*graph, networks::UpdatePlace::kAfterGradient);
  networks::SetDurations(step, RatesOf(device));
  return std::move(step.profile);
}

template <class T>
T Unwrap(base::Result<T> read, const std::string& path) {
  if (!read)
    throw Failure(kExitUsage, "cannot use " + path, read.text(), "see docs/trace_format.md");
  return *std::move(read);
}

std::string_view TextOf(const std::vector<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

EventTrace TraceIn(const std::vector<uint8_t>& bytes, const std::string& path) {
  const bool is_text = TextOf(bytes).starts_with(kEventTextHead);
  return Unwrap(is_text ? ReadEventText(TextOf(bytes)) : ReadTrace(bytes), path);
}

}  // namespace

bool IsTrace(const std::vector<uint8_t>& bytes) {
  return KindOfFile(bytes) == TraceFileKind::kTrace || TextOf(bytes).starts_with(kEventTextHead);
}

EventTrace LoadTrace(const std::string& source) { return TraceIn(ReadBytes(source), source); }

networks::Device LoadDevice(const std::string& name) {
  if (const auto device = networks::FindDevice(name)) return *device;
  throw Failure(kExitUsage, "no device '" + name + "'",
                "there are " + ListOf(networks::DeviceNames()), "choose one of these");
}

std::vector<uint8_t> ReadBytes(const std::string& path) {
  const base::Result<std::string> bytes = base::ReadFile(path);
  if (bytes) return {bytes->begin(), bytes->end()};
  base::Error error = bytes.error();
  error.remedy = error.code == EISDIR ? "it is a folder: name a file" : "check the path";
  throw Failure(kExitUsage, error);
}

void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  WriteText(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void WriteText(const std::string& path, std::string_view text) {
  const base::Status written = base::WriteFile(path, text);
  if (written.ok()) return;
  base::Error error = written.error();
  error.remedy = "check the path and the free space";
  throw Failure(kExitUsage, error);
}

LoadedProfile LoadProfile(const std::string& source, const networks::Device& device) {
  constexpr std::string_view kNetwork = "network:";
  if (source.starts_with(kNetwork))
    return {MakeNetworkProfile(source.substr(kNetwork.size()), device), true};
  const std::vector<uint8_t> bytes = ReadBytes(source);
  LoadedProfile loaded;
  if (IsTrace(bytes)) {
    loaded.profile = ProfileFromTrace(TraceIn(bytes, source));
  } else if (KindOfFile(bytes) == TraceFileKind::kProfile) {
    loaded.profile = Unwrap(ReadProfile(bytes), source);
  } else {
    const std::string text(TextOf(bytes));
    loaded.profile = Unwrap(ProfileFromJson(text, RatesOf(device), loaded.modelled), source);
  }
  if (const base::Status checked = CheckProfile(loaded.profile); !checked.ok())
    throw Failure(kExitUsage, "cannot use " + source, checked.text(), "see docs/trace_format.md");
  if (loaded.profile.operations.empty())
    throw Failure(kExitUsage, "cannot use " + source, "it has no operations",
                  "record an iteration of the job");
  return loaded;
}

}  // namespace spillway::cli
