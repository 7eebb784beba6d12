#include "protocol/codec.h"

#include <concepts>
#include <type_traits>
#include <utility>

namespace spillway::protocol {
namespace {

constexpr uint8_t kMagic[4] = {'S', 'P', 'W', 'Y'};
constexpr int64_t kMost = INT64_MAX;

class Writer {
 public:
  explicit Writer(Frame* frame) : frame_(frame) {}

  template <class T>
  void Number(T value, T /*least*/, T /*most*/) {
    Raw(static_cast<uint64_t>(value), sizeof(T));
  }
  template <class E>
  void OneOf(E value, E /*last*/) {
    Raw(static_cast<uint64_t>(value), sizeof(E));
  }
  void Flag(bool value) { Raw(value ? 1 : 0, 1); }
  template <size_t N>
  void Line(const Text<N>& text) {
    for (char c : text.bytes) Raw(static_cast<uint8_t>(c), 1);
  }
  void Bytes(const DeviceUuid& bytes) {
    for (uint8_t byte : bytes) Raw(byte, 1);
  }
  void Name(SlabName name, bool is_used) {
    Raw(is_used ? static_cast<uint64_t>(name) : 0, sizeof name);
  }
  void Raw(uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; ++i) (*frame_)[at_++] = static_cast<uint8_t>(bits >> (8 * i));
  }

 private:
  Frame* frame_;
  size_t at_ = 0;
};

class Reader {
 public:
  Reader(const uint8_t* bytes, size_t at) : bytes_(bytes), at_(at) {}

  template <class T>
  void Number(T& value, T least, T most) {
    value = static_cast<T>(Raw(sizeof(T)));
    valid_ = valid_ && value >= least && value <= most;
  }
  // Enumerations count from 1.
  template <class E>
  void OneOf(E& value, E last) {
    const uint64_t bits = Raw(sizeof(E));
    valid_ = valid_ && bits >= 1 && bits <= static_cast<uint64_t>(last);
    value = static_cast<E>(bits);
  }
  void Flag(bool& value) {
    const uint64_t bits = Raw(1);
    valid_ = valid_ && bits <= 1;
    value = bits == 1;
  }
  template <size_t N>
  void Line(Text<N>& text) {
    bool ended = false;
    for (char& c : text.bytes) {
      c = static_cast<char>(Raw(1));
      const bool printable = c >= 0x20 && c <= 0x7e;
      valid_ = valid_ && (c == 0 || (printable && !ended));
      ended = ended || c == 0;
    }
    valid_ = valid_ && ended;
  }
  void Bytes(DeviceUuid& bytes) {
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Raw(1));
  }
  void Name(SlabName& name, bool is_used) {
    name = SlabName{Raw(sizeof name)};
    valid_ = valid_ && (is_used || name == SlabName{});
  }
  uint64_t Raw(size_t size) {
    uint64_t bits = 0;
    for (size_t i = 0; i < size; ++i) bits |= uint64_t{bytes_[at_++]} << (8 * i);
    return bits;
  }
  bool RestIsZero() const {
    for (size_t i = at_; i < kFrameBytes; ++i) {
      if (bytes_[i] != 0) return false;
    }
    return true;
  }
  bool valid() const { return valid_; }

 private:
  const uint8_t* bytes_;
  size_t at_;
  bool valid_ = true;
};

// Each message's fields, for writing (C is Writer, the message const) and reading (Reader).
template <class M, class Expected>
concept Is = std::same_as<std::remove_const_t<M>, Expected>;

template <class C>
void Size(C& coder, auto& bytes) {
  coder.Number(bytes, int64_t{0}, kMostBytes);
}
template <class C>
void Count(C& coder, auto& count) {
  coder.Number(count, int64_t{0}, kMost);
}
template <class C>
void Change(C& coder, auto& bytes) {
  coder.Number(bytes, kUnchanged, kMostBytes);
}
template <class C>
void Device(C& coder, auto& device) {
  coder.Number(device, uint32_t{0}, kMostDevices - 1);
}
template <class C>
void AnyOf64(C& coder, auto& number) {
  coder.Number(number, uint64_t{0}, UINT64_MAX);
}

void Fields(auto& c, Is<Hello> auto& m) {
  c.Number(m.oldest_version, uint16_t{1}, uint16_t{UINT16_MAX});
  c.Number(m.newest_version, uint16_t{1}, uint16_t{UINT16_MAX});
  c.OneOf(m.role, Role::kOperator);
  c.Number(m.leader_pid, 0, INT32_MAX);
  c.Line(m.software);
}
void Fields(auto& c, Is<Welcome> auto& m) {
  c.Number(m.version, kOldestVersion, kNewestVersion);
  AnyOf64(c, m.agent_instance);
  AnyOf64(c, m.session);
  c.Number(m.usage_interval_ms, uint32_t{1}, uint32_t{3'600'000});
  c.Line(m.job);
}
void Fields(auto& c, Is<Register> auto& m) {
  Device(c, m.device);
  c.Bytes(m.uuid);
  Size(c, m.memory_bytes);
  Size(c, m.wanted_bytes);
  Size(c, m.own_limit_bytes);
  Size(c, m.own_host_limit_bytes);
  Size(c, m.held_bytes);
  Size(c, m.held_host_bytes);
}
void Fields(auto& c, Is<Admission> auto& m) {
  Device(c, m.device);
  c.OneOf(m.state, AdmissionState::kRejected);
  c.Number(m.position, uint32_t{0}, uint32_t{1'000'000});
  c.Line(m.reason);
}
void Fields(auto& c, Is<Grant> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.serial);
  Size(c, m.budget_bytes);
  Size(c, m.host_bytes);
  c.Number(m.link_permille, 0, kMostPermille);
  c.Number(m.deadline_ms, uint32_t{0}, uint32_t{3'600'000});
  c.OneOf(m.reason, GrantReason::kKept);
}
void Fields(auto& c, Is<Obeyed> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.serial);
  Size(c, m.held_bytes);
  Size(c, m.host_bytes);
}
void Fields(auto& c, Is<Usage> auto& m) {
  Device(c, m.device);
  c.Flag(m.active);
  c.OneOf(m.phase, Phase::kPassThrough);
  Size(c, m.wanted_bytes);
  Size(c, m.resident_bytes);
  Size(c, m.unmovable_bytes);
  Size(c, m.host_bytes);
  Count(c, m.to_host_bytes);
  Count(c, m.to_device_bytes);
  Count(c, m.stall_ns);
  Count(c, m.iterations);
  Count(c, m.demand_fetches);
  Count(c, m.refused_allocations);
}
void Fields(auto& c, Is<Goodbye> auto& m) { c.Number(m.exit_code, INT32_MIN, INT32_MAX); }
void Fields(auto& c, Is<Error> auto& m) {
  c.OneOf(m.code, ErrorCode::kTooManyDevices);
  c.Number(m.oldest_version, uint16_t{1}, uint16_t{UINT16_MAX});
  c.Number(m.newest_version, uint16_t{1}, uint16_t{UINT16_MAX});
  c.Line(m.reason);
}
void Fields(auto& c, Is<Ask> auto& m) {
  c.OneOf(m.question, Question::kConfig);
  c.OneOf(m.form, Form::kJson);
  c.Number(m.columns, uint16_t{0}, uint16_t{1000});
  c.Line(m.job);
}
void Fields(auto& c, Is<Document> auto& m) {
  c.Number(m.schema, uint32_t{1}, uint32_t{1000});
  c.Number(m.size_bytes, uint64_t{0}, uint64_t{1} << 30);
}
void Fields(auto& c, Is<SetBudget> auto& m) {
  c.Line(m.job);
  c.Number(m.device, -1, static_cast<int32_t>(kMostDevices) - 1);
  c.Flag(m.dry_run);
  Change(c, m.guaranteed_bytes);
  Change(c, m.limit_bytes);
  Change(c, m.host_bytes);
  c.Number(m.link_permille, -1, kMostPermille);
  c.Number(m.weight, -1, 10'000);
  c.Number(m.priority_plus_one, 0, 1001);
}
void Fields(auto& c, Is<Control> auto& m) {
  c.OneOf(m.action, Action::kLogLevel);
  c.Line(m.value);
}
void Fields(auto& c, Is<Done> auto& m) {
  c.OneOf(m.outcome, Outcome::kUnknownJob);
  c.Line(m.text);
}
void Names(auto& c, auto& slabs, uint32_t least) {
  c.Number(slabs.count, least, static_cast<uint32_t>(kMostSlabsAtOnce));
  for (size_t i = 0; i < kMostSlabsAtOnce; ++i) c.Name(slabs.names[i], i < slabs.count);
}
void Fields(auto& c, Is<AskSlabs> auto& m) {
  Device(c, m.device);
  Size(c, m.size_bytes);
}
void Fields(auto& c, Is<Slabs> auto& m) {
  Device(c, m.device);
  Size(c, m.slab_bytes);
  Size(c, m.page_bytes);
  Names(c, m.slabs, 1);
}
void Fields(auto& c, Is<DriverSlabs> auto& m) {
  Device(c, m.device);
  Size(c, m.slab_bytes);
  Names(c, m.slabs, 1);
}
void Fields(auto& c, Is<ReturnSlabs> auto& m) { Names(c, m.slabs, 1); }
void Fields(auto& c, Is<HeldSlabs> auto& m) {
  c.Flag(m.last);
  Names(c, m.slabs, 0);
}
void Fields(auto& c, Is<LinkPlace> auto& m) {
  Device(c, m.device);
  c.Number(m.layout, uint32_t{0}, uint32_t{UINT32_MAX});
  c.Number(m.slot, uint32_t{0}, uint32_t{UINT32_MAX});
}
void Fields(auto& c, Is<Leaving> auto& m) { c.Number(m.exit_code, INT32_MIN, INT32_MAX); }
void Fields(auto& c, Is<AskPlan> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.ticket);
  AnyOf64(c, m.key.program);
  AnyOf64(c, m.key.fingerprint);
  AnyOf64(c, m.key.device);
  Size(c, m.key.budget_bytes);
  c.Number(m.patience_ms, uint32_t{0}, uint32_t{3'600'000});
  c.Number(m.size_bytes, uint64_t{1}, kMostPlanBytes);
}
void Fields(auto& c, Is<PlanReply> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.ticket);
  c.OneOf(m.outcome, PlanOutcome::kNotHere);
  c.Number(m.size_bytes, uint64_t{0}, kMostPlanBytes);
  Count(c, m.planning_ns);
  c.Line(m.reason);
}
void Fields(auto& c, Is<RecallPlans> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.program);
}
void Fields(auto& c, Is<RecalledPlans> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.program);
  c.Number(m.count, uint32_t{0}, static_cast<uint32_t>(kMostRecalled));
  for (size_t i = 0; i < kMostRecalled; ++i)
    c.Number(m.sizes_bytes[i], uint64_t{i < m.count ? 1u : 0u}, i < m.count ? kMostPlanBytes : 0);
}
void Fields(auto& c, Is<HostNeed> auto& m) {
  Device(c, m.device);
  Size(c, m.size_bytes);
}
void Fields(auto& c, Is<Account> auto& m) {
  Device(c, m.device);
  Size(c, m.ordinary_bytes);
  Count(c, m.planned_to_host_bytes);
  Count(c, m.pressure_to_host_bytes);
  Count(c, m.planned_to_device_bytes);
  Count(c, m.demand_to_device_bytes);
  for (auto& stalled_ns : m.stall_ns) Count(c, stalled_ns);
  Count(c, m.prefetch_hits);
  Count(c, m.prefetches_late);
  Count(c, m.prefetches_unused);
  for (auto& replans : m.replans) Count(c, replans);
  Count(c, m.over_budget_allocations);
}
void Fields(auto& c, Is<Footprint> auto& m) {
  Device(c, m.device);
  Size(c, m.allocated_bytes);
}
void Fields(auto& c, Is<ExpectJob> auto& m) {
  c.Line(m.job);
  c.Line(m.part);
  Change(c, m.guaranteed_bytes);
  Change(c, m.limit_bytes);
  Change(c, m.host_bytes);
  c.Number(m.weight, -1, 10'000);
  c.Number(m.priority_plus_one, 0, 1001);
}
void Fields(auto& c, Is<ForgetJob> auto& m) {
  c.Line(m.job);
  c.Line(m.part);
}
void Fields(auto& c, Is<JobTotals> auto& m) {
  c.Line(m.job);
  Size(c, m.peak_bytes);
  Size(c, m.allocated_bytes);
  Count(c, m.to_host_bytes);
  Count(c, m.to_device_bytes);
  Count(c, m.stall_ns);
  Count(c, m.refused_allocations);
}
void Fields(auto& c, Is<WorkspaceGrant> auto& m) {
  Device(c, m.device);
  Size(c, m.limit_bytes);
}
void Fields(auto& c, Is<WorkspaceUse> auto& m) {
  Device(c, m.device);
  Size(c, m.idle_bytes);
  Count(c, m.dropped_bytes);
  Count(c, m.other_algorithms);
}
void Fields(auto& c, Is<SetWorkspace> auto& m) {
  c.Line(m.job);
  c.Flag(m.dry_run);
  Size(c, m.limit_bytes);
}
void Fields(auto& c, Is<Turn> auto& m) {
  Device(c, m.device);
  c.OneOf(m.state, TurnState::kWaits);
  Size(c, m.start_bytes);
  c.Number(m.patience_ms, uint32_t{0}, uint32_t{3'600'000});
  c.Line(m.reason);
}
void Fields(auto& c, Is<TurnUse> auto& m) {
  Device(c, m.device);
  c.Flag(m.parks);
  Count(c, m.operations);
  Count(c, m.waited_ns);
  Count(c, m.turns);
}
void Fields(auto& c, Is<PlanUse> auto& m) {
  Device(c, m.device);
  Count(c, m.missed_iterations);
  Count(c, m.clean_bytes);
  Count(c, m.clean_by_content_bytes);
  Count(c, m.changed_by_content_bytes);
  Count(c, m.recomputable_bytes);
  Count(c, m.recomputes);
  Count(c, m.recomputed_bytes);
  Count(c, m.mismatched_recomputes);
  Count(c, m.fingerprinted_bytes);
  Count(c, m.fingerprint_ns);
  Count(c, m.experiments);
  Count(c, m.refuted_operations);
  Count(c, m.insured_recomputes);
}
void Fields(auto& c, Is<SpillFile> auto& m) {
  Device(c, m.device);
  c.Number(m.serial, uint64_t{1}, UINT64_MAX);
  Size(c, m.size_bytes);
}
void Fields(auto& c, Is<ReturnSpilled> auto& m) { Device(c, m.device); }
void Fields(auto& c, Is<SpillUse> auto& m) {
  Device(c, m.device);
  AnyOf64(c, m.serial);
  Size(c, m.stored_bytes);
  Size(c, m.resident_twice_bytes);
  Count(c, m.written_bytes);
  Count(c, m.read_bytes);
  Count(c, m.failures);
  Count(c, m.released_bytes);
  Size(c, m.file_bytes);
}
void Fields(auto& c, Is<LostTime> auto& m) {
  Device(c, m.device);
  Count(c, m.waited_ns);
  Count(c, m.waited_of_ns);
  Count(c, m.steps_lost_ns);
  Count(c, m.steps_repeated_ns);
  Count(c, m.steps_ns);
}
void Fields(auto& c, Is<OpenListener> auto& m) {
  c.Line(m.allocation);
  c.Line(m.job);
  Change(c, m.limit_bytes);
  Change(c, m.host_bytes);
}
void Fields(auto& c, Is<CloseListener> auto& m) { c.Line(m.allocation); }
void Fields(auto& c, Is<ListenerPlace> auto& m) { c.Line(m.socket); }
void Fields(auto& c, Is<StepTimes> auto& m) {
  Device(c, m.device);
  Count(c, m.sum_ns);
  for (auto& count : m.counts) Count(c, count);
}

template <class M>
Decoded ReadFields(const uint8_t* bytes) {
  Reader reader(bytes, kHeaderBytes);
  M message;
  Fields(reader, message);
  if (!reader.valid()) return {std::nullopt, Fault::kField};
  if (!reader.RestIsZero()) return {std::nullopt, Fault::kLeftover};
  return {message, Fault::kNone};
}

template <size_t... Index>
Decoded ReadKind(const uint8_t* bytes, size_t index, std::index_sequence<Index...>) {
  Decoded decoded{std::nullopt, Fault::kKind};
  const auto read = [&]<size_t I>() {
    if (index == I) decoded = ReadFields<std::variant_alternative_t<I, Message>>(bytes);
  };
  (read.template operator()<Index>(), ...);
  return decoded;
}

}  // namespace

Frame Encode(const Message& message, uint16_t version) {
  Frame frame{};
  Writer writer(&frame);
  for (uint8_t letter : kMagic) writer.Raw(letter, 1);
  writer.Raw(version, 2);
  writer.Raw(message.index() + 1, 2);
  writer.Raw(kFrameBytes, 4);
  writer.Raw(0, 4);
  std::visit([&writer](const auto& m) { Fields(writer, m); }, message);
  return frame;
}

Decoded Decode(const uint8_t* bytes, size_t size) {
  if (size != kFrameBytes) return {std::nullopt, Fault::kSize};
  Reader header(bytes, sizeof kMagic);
  if (std::memcmp(bytes, kMagic, sizeof kMagic) != 0) return {std::nullopt, Fault::kMagic};
  const uint64_t version = header.Raw(2);
  const uint64_t kind = header.Raw(2);
  // Hello and Error never change, so that two sides can find out that they share no version.
  const bool of_all_versions =
      kind == Message(Hello{}).index() + 1 || kind == Message(Error{}).index() + 1;
  if (version == 0 || (!of_all_versions && (version < kOldestVersion || version > kNewestVersion)))
    return {std::nullopt, Fault::kVersion};
  if (header.Raw(4) != kFrameBytes) return {std::nullopt, Fault::kSize};
  if (!of_all_versions && VersionOf(kind) > version) return {std::nullopt, Fault::kKind};
  if (header.Raw(4) != 0) return {std::nullopt, Fault::kLeftover};
  return ReadKind(bytes, kind - 1, std::make_index_sequence<std::variant_size_v<Message>>());
}

const char* NameOf(Fault fault) {
  constexpr const char* names[] = {"none", "size", "magic", "version", "kind", "field", "leftover"};
  return names[static_cast<size_t>(fault)];
}

const char* NameOf(const Message& message) {
  constexpr const char* names[] = {
      "Hello",     "Welcome",     "Register",       "Admission",     "Grant",
      "Obeyed",    "Usage",       "Goodbye",        "Error",         "Ask",
      "Document",  "SetBudget",   "Control",        "Done",          "AskSlabs",
      "Slabs",     "ReturnSlabs", "HeldSlabs",      "LinkPlace",     "Leaving",
      "AskPlan",   "PlanReply",   "RecallPlans",    "RecalledPlans", "HostNeed",
      "Account",   "StepTimes",   "DriverSlabs",    "Footprint",     "ExpectJob",
      "ForgetJob", "JobTotals",   "WorkspaceGrant", "WorkspaceUse",  "SetWorkspace",
      "Turn",      "TurnUse",     "PlanUse",        "SpillFile",     "ReturnSpilled",
      "SpillUse",  "LostTime",    "OpenListener",   "CloseListener", "ListenerPlace"};
  static_assert(std::size(names) == std::variant_size_v<Message>);
  return names[message.index()];
}

}  // namespace spillway::protocol
