#include "simulator/dnn/graph/plan.h"

#include <charconv>
#include <cstring>
#include <type_traits>

namespace spillway::simulator::dnn::graph {
namespace {

constexpr std::uint32_t kTextVersion = 1;
constexpr std::string_view kDataKey = "\"data\":\"";

struct Header {
  std::uint32_t version;
  std::uint32_t buffer_count;
  std::uint64_t checksum;  // of what follows
};

struct Fixed {
  EngineModel engine;
  Family family;
  std::int32_t has_chain;
  std::uint64_t identity;
};

template <typename T>
void Append(std::string* bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes->append(reinterpret_cast<const char*>(&value), sizeof(T));
}

template <typename T>
bool Take(std::string_view* bytes, T* value) {
  if (bytes->size() < sizeof(T)) return false;
  std::memcpy(static_cast<void*>(value), bytes->data(), sizeof(T));
  bytes->remove_prefix(sizeof(T));
  return true;
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

std::optional<std::string> FromHex(std::string_view hex) {
  std::string bytes;
  if (hex.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    unsigned byte = 0;
    const char* const end = hex.data() + i + 2;
    if (std::from_chars(hex.data() + i, end, byte, 16).ptr != end) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::optional<std::string> DataOf(std::string_view text) {
  const std::size_t key = text.find(kDataKey);
  if (key == std::string_view::npos) return std::nullopt;
  text.remove_prefix(key + kDataKey.size());
  return FromHex(text.substr(0, text.find('"')));
}

bool TakeBody(std::string_view bytes, std::uint32_t buffer_count, Plan* plan) {
  Fixed fixed;
  if (buffer_count > Plan::kMostBuffers || !Take(&bytes, &fixed)) return false;
  plan->engine = fixed.engine;
  plan->family = fixed.family;
  plan->identity = fixed.identity;
  plan->buffers.resize(buffer_count);
  for (Buffer& buffer : plan->buffers) {
    if (!Take(&bytes, &buffer)) return false;
  }
  return !fixed.has_chain || Take(&bytes, &plan->chain.emplace());
}

}  // namespace

Plan Plan::Of(const Engine& engine) {
  const OperationGraph& graph = *engine.graph;
  const std::uint64_t words[] = {graph.identity, static_cast<std::uint64_t>(engine.model.index)};
  return {engine.model, graph.family, HashOf(words, sizeof(words)), graph.buffers, graph.chain};
}

std::string Plan::ToText() const {
  std::string body;
  Fixed fixed;
  std::memset(static_cast<void*>(&fixed), 0, sizeof(fixed));
  fixed.engine = engine;
  fixed.family = family;
  fixed.has_chain = chain.has_value();
  fixed.identity = identity;
  Append(&body, fixed);
  for (const Buffer& buffer : buffers) Append(&body, buffer);
  if (chain) Append(&body, *chain);
  std::string bytes;
  Append(&bytes, Header{kTextVersion, static_cast<std::uint32_t>(buffers.size()),
                        HashOf(body.data(), body.size())});
  return "{\"simulated\":true,\"engine\":" + std::to_string(engine.index) +
         ",\"workspace_bytes\":" + std::to_string(engine.workspace_bytes) + "," +
         std::string(kDataKey) + ToHex(bytes + body) + "\"}";
}

std::optional<Plan> Plan::FromText(std::string_view text) {
  const std::optional<std::string> data = DataOf(text);
  if (!data) return std::nullopt;
  std::string_view bytes = *data;
  Header header;
  if (!Take(&bytes, &header) || header.version != kTextVersion ||
      header.checksum != HashOf(bytes.data(), bytes.size()))
    return std::nullopt;
  Plan plan = {};
  if (!TakeBody(bytes, header.buffer_count, &plan)) return std::nullopt;
  return plan;
}

}  // namespace spillway::simulator::dnn::graph
