#include "scheduler/plan/plan_codec.h"

#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace spillway::scheduler {

using base::Error;
using base::Result;
using base::Status;

namespace {

using Magic = std::array<char, 8>;
constexpr Magic kMagic = {'S', 'P', 'I', 'L', 'L', 'P', 'L', 'N'};
constexpr Magic kOrderMagic = {'S', 'P', 'I', 'L', 'L', 'O', 'R', 'D'};
constexpr std::size_t kHeaderBytes = sizeof kMagic + 4 + 4 + 8 + 8;
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are kept as they lie in memory");

std::uint64_t HashOf(std::span<const std::byte> bytes) {
  std::uint64_t hash = bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = MixToken(hash, word);
  }
  return hash;
}

// Describe(archive, object) passes each member to a Writer or a Reader: one layout for both.
class Writer {
 public:
  template <class Value>
  void Number(const Value& value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), bytes, bytes + sizeof value);
  }
  void Text(const std::string& text) {
    Number(static_cast<std::uint64_t>(text.size()));
    const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
    out_.insert(out_.end(), bytes, bytes + text.size());
  }
  template <class Item>
  void List(const std::vector<Item>& items) {
    Number(static_cast<std::uint64_t>(items.size()));
    for (const Item& item : items) Describe(*this, item);
  }
  std::vector<std::byte>& out() { return out_; }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
  void Number(Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const std::byte* const from = Take(sizeof value);
    if (from) std::memcpy(&value, from, sizeof value);
  }
  // Rejects bytes other than 0 and 1.
  void Number(bool& value) {
    std::uint8_t byte = 0;
    Number(byte);
    ok_ = ok_ && byte <= 1;
    value = byte == 1;
  }
  void Text(std::string& text) {
    const std::size_t size = Count();
    const std::byte* const from = Take(size);
    if (from) text.assign(reinterpret_cast<const char*>(from), size);
  }
  // A forged count fails at the end of the bytes, before memory is taken for it.
  template <class Item>
  void List(std::vector<Item>& items) {
    const std::size_t count = Count();
    for (std::size_t i = 0; ok_ && i < count; ++i) {
      Item item{};
      Describe(*this, item);
      items.push_back(std::move(item));
    }
  }
  bool AtEnd() const { return ok_ && bytes_.empty(); }

 private:
  std::size_t Count() {
    std::uint64_t count = 0;
    Number(count);
    ok_ = ok_ && count <= bytes_.size();
    return ok_ ? count : 0;
  }
  const std::byte* Take(std::size_t size) {
    ok_ = ok_ && size <= bytes_.size();
    if (!ok_) return nullptr;
    const std::byte* const taken = bytes_.data();
    bytes_ = bytes_.subspan(size);
    return taken;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

template <class T, class U>
concept Is = std::is_same_v<std::remove_const_t<T>, U>;

template <class Archive, Is<scheduler::PatternEvent> Event>
void Describe(Archive& archive, Event& event) {
  archive.Number(event.kind);
  archive.Number(event.token);
  archive.Number(event.buffer);
  archive.Number(event.operation);
  archive.Number(event.first_touch);
  archive.Number(event.touch_count);
}

template <class Archive, Is<scheduler::PatternTouch> Touch>
void Describe(Archive& archive, Touch& touch) {
  archive.Number(touch.buffer);
  archive.Number(touch.writes);
  archive.Number(touch.reads);
  archive.Number(touch.presumed);
}

template <class Archive, Is<scheduler::PatternBuffer> Buffer>
void Describe(Archive& archive, Buffer& buffer) {
  archive.Number(buffer.size_bytes);
  archive.Number(buffer.persistent);
  archive.Number(buffer.born_event);
  archive.Number(buffer.dies_event);
  archive.Number(buffer.becomes);
}

template <class Archive, Is<scheduler::BufferId> Id>
void Describe(Archive& archive, Id& id) {
  archive.Number(id.index);
}

template <class Archive, Is<scheduler::Buffer> Buffer>
void Describe(Archive& archive, Buffer& buffer) {
  archive.Text(buffer.name);
  archive.Number(buffer.kind);
  archive.Number(buffer.size_bytes);
  archive.Number(buffer.born.index);
  archive.Number(buffer.dies.index);
  archive.Number(buffer.persistent);
  archive.Number(buffer.movable);
  archive.Number(buffer.handed_on);
}

// Learned operations have no workspace choices.
template <class Archive, Is<scheduler::Operation> Operation>
void Describe(Archive& archive, Operation& operation) {
  archive.Text(operation.name);
  archive.Number(operation.type);
  archive.Number(operation.phase);
  archive.Number(operation.replayable);
  archive.List(operation.reads);
  archive.List(operation.writes);
  archive.List(operation.presumed_reads);
  archive.Number(operation.duration_ns);
}

template <class Archive, Is<scheduler::Step> Step>
void Describe(Archive& archive, Step& step) {
  archive.Number(step.operation.index);
  archive.Number(step.recomputes);
  archive.Number(step.workspace);
}

template <class Archive, Is<scheduler::Action> Action>
void Describe(Archive& archive, Action& action) {
  archive.Number(action.kind);
  archive.Number(action.buffer.index);
  archive.Number(action.step);
  archive.Number(action.reason);
}

template <class Archive, Is<StoredPlan> Stored>
void Describe(Archive& archive, Stored& stored) {
  archive.Number(stored.budget_bytes);
  archive.Number(stored.job_budget_bytes);
  archive.Number(stored.without_ns);
  archive.Number(stored.is_no_better);
  auto& pattern = stored.pattern;
  archive.List(pattern.events);
  archive.List(pattern.touches);
  archive.List(pattern.buffers);
  archive.Number(pattern.fingerprint);
  archive.Text(pattern.profile.name);
  archive.Number(pattern.profile.batch_size);
  archive.List(pattern.profile.buffers);
  archive.List(pattern.profile.operations);
  archive.Text(stored.plan.strategy);
  archive.List(stored.plan.steps);
  archive.List(stored.plan.actions);
}

template <class Archive, Is<DeviceModel> Device>
void Describe(Archive& archive, Device& device) {
  static_assert(sizeof(DeviceModel) == 12 * sizeof(std::int64_t) + 2 * sizeof(std::int32_t),
                "every member is named here");
  archive.Number(device.to_host_bytes_per_second);
  archive.Number(device.to_device_bytes_per_second);
  archive.Number(device.to_host_both_bytes_per_second);
  archive.Number(device.to_device_both_bytes_per_second);
  archive.Number(device.copy_latency_ns);
  archive.Number(device.launch_ns);
  archive.Number(device.chunk_bytes);
  archive.Number(device.slab_unit_bytes);
  archive.Number(device.link_share_permille);
  archive.Number(device.mapping.map_ns);
  archive.Number(device.mapping.set_access_ns);
  archive.Number(device.mapping.unmap_ns);
  archive.Number(device.mapping.piece_bytes);
}

template <class Archive, Is<PlanOrder> Order>
void Describe(Archive& archive, Order& order) {
  Describe(archive, order.device);
  Describe(archive, order.job);
}

bool IsIndex(std::int32_t index, std::size_t size) {
  return index >= 0 && static_cast<std::size_t>(index) < size;
}
bool IsIndexOrNone(std::int32_t index, std::size_t size) {
  return index == -1 || IsIndex(index, size);
}

bool EventIsSound(const PatternEvent& event, const IterationPattern& pattern,
                  std::int32_t* next_operation) {
  const bool touches_lie_within = event.first_touch >= 0 && event.touch_count >= 0 &&
                                  std::size_t{static_cast<std::uint32_t>(event.first_touch)} +
                                          static_cast<std::uint32_t>(event.touch_count) <=
                                      pattern.touches.size();
  if (event.kind == JobEventKind::kAllocate)
    return touches_lie_within && event.operation == -1 &&
           IsIndex(event.buffer, pattern.buffers.size());
  return touches_lie_within && event.kind == JobEventKind::kOperation &&
         event.operation == (*next_operation)++;
}

bool EventsAreSound(const IterationPattern& pattern) {
  std::int32_t operations = 0;
  for (const PatternEvent& event : pattern.events) {
    if (!EventIsSound(event, pattern, &operations)) return false;
  }
  return static_cast<std::size_t>(operations) == pattern.profile.operations.size();
}

bool BuffersAreSound(const IterationPattern& pattern) {
  for (const PatternTouch& touch : pattern.touches) {
    if (!IsIndex(touch.buffer, pattern.buffers.size())) return false;
  }
  for (const PatternBuffer& buffer : pattern.buffers) {
    if (!IsIndexOrNone(buffer.born_event, pattern.events.size()) ||
        !IsIndexOrNone(buffer.dies_event, pattern.events.size()) ||
        !IsIndexOrNone(buffer.becomes, pattern.buffers.size()))
      return false;
  }
  return pattern.buffers.size() == pattern.profile.buffers.size();
}

bool EnumsAreSound(const StoredPlan& stored) {
  for (const Buffer& buffer : stored.pattern.profile.buffers) {
    if (buffer.kind > BufferKind::kWorkspace) return false;
  }
  for (const Operation& operation : stored.pattern.profile.operations) {
    if (operation.type > OperationType::kUpdate || operation.phase > Phase::kUpdate) return false;
  }
  for (const Action& action : stored.plan.actions) {
    if (action.kind > ActionKind::kDrop || action.reason > Reason::kChainTemporary) return false;
  }
  return true;
}

Status CheckStored(const StoredPlan& stored) {
  if (!EnumsAreSound(stored) || !EventsAreSound(stored.pattern) || !BuffersAreSound(stored.pattern))
    return Error{"it names what is not there"};
  if (Status checked = CheckProfile(stored.pattern.profile); !checked.ok()) return checked;
  if (FingerprintOf(stored.pattern) != stored.pattern.fingerprint)
    return Error{"its fingerprint is not its own"};
  if (stored.budget_bytes <= 0) return Error{"it has no budget"};
  return base::Ok();
}

bool IsPossible(const DeviceModel& device) {
  constexpr std::int64_t kMostRate = std::int64_t{1} << 50, kMostNs = 1'000'000'000,
                         kMostChunk = std::int64_t{1} << 40;
  const auto is_rate = [](std::int64_t rate) { return rate > 0 && rate <= kMostRate; };
  const auto is_time = [](std::int64_t time_ns) { return time_ns >= 0 && time_ns <= kMostNs; };
  const auto is_chunk = [](std::int64_t bytes) { return bytes > 0 && bytes <= kMostChunk; };
  return is_rate(device.to_host_bytes_per_second) && is_rate(device.to_device_bytes_per_second) &&
         is_rate(device.to_host_both_bytes_per_second) &&
         is_rate(device.to_device_both_bytes_per_second) &&
         device.to_host_both_bytes_per_second <= device.to_host_bytes_per_second &&
         device.to_device_both_bytes_per_second <= device.to_device_bytes_per_second &&
         is_time(device.copy_latency_ns) && is_time(device.launch_ns) &&
         is_chunk(device.chunk_bytes) && is_chunk(device.slab_unit_bytes) &&
         is_time(device.mapping.map_ns) && is_time(device.mapping.set_access_ns) &&
         is_time(device.mapping.unmap_ns) && device.mapping.piece_bytes >= 0 &&
         device.mapping.piece_bytes <= kMostChunk && device.link_share_permille > 0 &&
         device.link_share_permille <= 1000;
}

template <class Object>
std::vector<std::byte> WithHeader(const Magic& magic, const Object& object) {
  Writer payload;
  Describe(payload, object);
  Writer file;
  file.Number(magic);
  file.Number(kPlanFileVersion);
  file.Number(std::uint32_t{0});
  file.Number(static_cast<std::uint64_t>(payload.out().size()));
  file.Number(HashOf(payload.out()));
  file.out().insert(file.out().end(), payload.out().begin(), payload.out().end());
  return std::move(file.out());
}

Result<std::span<const std::byte>> PayloadOf(const Magic& magic, std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return Error{"it is no plan"};
  std::uint32_t version = 0, reserved = 0;
  std::uint64_t size = 0, hash = 0;
  Reader header(bytes.subspan(magic.size(), kHeaderBytes - magic.size()));
  header.Number(version);
  header.Number(reserved);
  header.Number(size);
  header.Number(hash);
  if (version != kPlanFileVersion) return Error{"it is of version " + std::to_string(version)};
  const std::span<const std::byte> payload = bytes.subspan(kHeaderBytes);
  if (reserved != 0 || payload.size() != size || HashOf(payload) != hash)
    return Error{"it is damaged"};
  return payload;
}

template <class Object>
Result<Object> Parse(const Magic& magic, std::span<const std::byte> bytes) {
  const Result<std::span<const std::byte>> payload = PayloadOf(magic, bytes);
  if (!payload) return payload.error();
  Object object;
  Reader reader(*payload);
  Describe(reader, object);
  if (!reader.AtEnd()) return Error{"it is damaged"};
  return object;
}

}  // namespace

std::vector<std::byte> Encode(const StoredPlan& stored) { return WithHeader(kMagic, stored); }

Status CheckUndamaged(std::span<const std::byte> bytes) {
  return PayloadOf(kMagic, bytes).status();
}

Result<StoredPlan> Decode(std::span<const std::byte> bytes) {
  Result<StoredPlan> stored = Parse<StoredPlan>(kMagic, bytes);
  if (!stored) return stored;
  if (Status checked = CheckStored(*stored); !checked.ok()) return checked;
  return stored;
}

std::vector<std::byte> EncodeOrder(const PlanOrder& order) {
  return WithHeader(kOrderMagic, order);
}

Result<PlanOrder> DecodeOrder(std::span<const std::byte> bytes) {
  Result<PlanOrder> order = Parse<PlanOrder>(kOrderMagic, bytes);
  if (!order) return order;
  if (Status checked = CheckStored(order->job); !checked.ok()) return checked;
  if (!IsPossible(order->device)) return Error{"there is no such device"};
  return order;
}

}  // namespace spillway::scheduler
