#include "deploy/slurm/memory_request.h"

#include <charconv>
#include <string>

#include "base/size_text.h"
#include "protocol/message.h"

namespace spillway::slurm {
namespace {

constexpr int32_t kMostWeight = 10'000;

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string_view TakeWord(std::string_view& text) {
  const size_t end = text.find(',');
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return word;
}

base::Status TakeSetting(std::string_view word, MemoryRequest& request) {
  const size_t equals = word.find('=');
  const std::string_view key = word.substr(0, equals);
  const std::string_view value = equals == word.npos ? "" : word.substr(equals + 1);
  if (key == "min") {
    const base::Result<int64_t> bytes = ParseBytes(value);
    if (!bytes) return bytes.status();
    request.guaranteed_bytes = *bytes;
    return base::Ok();
  }
  if (key != "weight")
    return base::Error{Quoted(word) + " is unknown", "", "there are min=SIZE and weight=N"};
  int32_t weight = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), weight);
  if (error != std::errc() || end != value.data() + value.size() || weight < 1 ||
      weight > kMostWeight)
    return base::Error{Quoted(value) + " is no weight", "", "it is a number from 1 to 10000"};
  request.weight = weight;
  return base::Ok();
}

}  // namespace

base::Result<int64_t> ParseBytes(std::string_view text) {
  const std::optional<base::Size> size = base::ParseSize(text);
  if (!size || size->kind != base::SizeKind::kBytes || size->bytes == 0 ||
      size->bytes > static_cast<uint64_t>(protocol::kMostBytes))
    return base::Error{Quoted(text) + " is no size", "", "sizes are written like 8G or 512MiB"};
  return static_cast<int64_t>(size->bytes);
}

base::Result<MemoryRequest> ParseMemoryRequest(std::string_view text) {
  MemoryRequest request;
  const base::Result<int64_t> limit = ParseBytes(TakeWord(text));
  if (!limit) return limit.status();
  request.limit_bytes = *limit;
  while (!text.empty()) {
    if (base::Status taken = TakeSetting(TakeWord(text), request); !taken.ok()) return taken;
  }
  if (request.guaranteed_bytes.value_or(0) > request.limit_bytes)
    return base::Error{"min= is more than the memory asked for"};
  return request;
}

}  // namespace spillway::slurm
