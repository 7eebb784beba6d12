#include "scheduler/trace/file/trace_file.h"

#include <cstring>

#include "profile_generated.h"
#include "trace_generated.h"

namespace spillway::scheduler {
namespace {

constexpr uint8_t kReads = 1, kWrites = 2;
constexpr flatbuffers::uoffset_t kMostTables = 1u << 26;  // the verifier's default is a million
constexpr flatbuffers::uoffset_t kMostDepth = 8;

std::string TextOf(const flatbuffers::String* string) {
  return string ? string->str() : std::string();
}

std::vector<int32_t> Numbers(const std::vector<BufferId>& ids) {
  std::vector<int32_t> result;
  for (BufferId id : ids) result.push_back(id.index);
  return result;
}

std::vector<BufferId> Ids(const flatbuffers::Vector<int32_t>* numbers) {
  std::vector<BufferId> result;
  if (!numbers) return result;
  for (int32_t number : *numbers) result.push_back({number});
  return result;
}

template <class Verify>
base::Status CheckFile(std::span<const uint8_t> bytes, const char* identifier, Verify verify) {
  if (bytes.size() < 8) return base::Error{"the file is too short to be one of ours"};
  if (bytes.size() >= FLATBUFFERS_MAX_BUFFER_SIZE)
    return base::Error{"the file is larger than 2 GiB"};
  if (std::memcmp(bytes.data() + 4, identifier, 4) != 0)
    return base::Error{"the file is of another kind"};
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), kMostDepth, kMostTables);
  if (!verify(verifier)) return base::Error{"the file is truncated or damaged"};
  return base::Ok();
}

std::string UnknownVersion(int version, int known) {
  return "the file has version " + std::to_string(version) + "; this program reads version " +
         std::to_string(known);
}

// A file may share tables, strings and vectors, to save space or to expand hugely. Adds up what
// reading would allocate, before it does.
class Claim {
 public:
  void Add(const flatbuffers::String* string) {
    bytes_ += string ? string->size() + sizeof(std::string) : 0;
  }
  template <class T>
  void Add(const flatbuffers::Vector<T>* vector, size_t size_each) {
    bytes_ += vector ? uint64_t{vector->size()} * size_each : 0;
  }
  bool Exceeds(std::span<const uint8_t> file) const { return bytes_ > kMostGrowth * file.size(); }

 private:
  // An empty operation takes about 40 bytes in a file and 170 in memory.
  static constexpr uint64_t kMostGrowth = 16;
  uint64_t bytes_ = 0;
};

constexpr const char* kTooLarge = "the file claims to hold more than it does";

bool ClaimsTooMuch(const file::Profile& profile, std::span<const uint8_t> bytes) {
  Claim claim;
  claim.Add(profile.buffers(), sizeof(Buffer));
  claim.Add(profile.operations(), sizeof(Operation));
  if (claim.Exceeds(bytes)) return true;
  for (size_t i = 0; profile.buffers() && i < profile.buffers()->size(); ++i)
    claim.Add(profile.buffers()->Get(static_cast<flatbuffers::uoffset_t>(i))->name());
  for (size_t i = 0; profile.operations() && i < profile.operations()->size(); ++i) {
    const file::Operation& operation =
        *profile.operations()->Get(static_cast<flatbuffers::uoffset_t>(i));
    claim.Add(operation.name());
    claim.Add(operation.reads(), sizeof(BufferId));
    claim.Add(operation.writes(), sizeof(BufferId));
    claim.Add(operation.workspaces(), sizeof(WorkspaceChoice));
    if (claim.Exceeds(bytes)) return true;
    if (!operation.workspaces()) continue;
    for (const file::Workspace* choice : *operation.workspaces()) claim.Add(choice->name());
  }
  return claim.Exceeds(bytes);
}

bool ClaimsTooMuch(const file::Trace& trace, std::span<const uint8_t> bytes) {
  Claim claim;
  claim.Add(trace.identities(), sizeof(std::string));
  claim.Add(trace.events(), sizeof(Event));
  if (claim.Exceeds(bytes)) return true;
  for (size_t i = 0; trace.identities() && i < trace.identities()->size(); ++i)
    claim.Add(trace.identities()->Get(static_cast<flatbuffers::uoffset_t>(i)));
  for (size_t i = 0; trace.events() && i < trace.events()->size(); ++i)
    claim.Add(trace.events()->Get(static_cast<flatbuffers::uoffset_t>(i))->touches(),
              sizeof(TraceTouch));
  return claim.Exceeds(bytes);
}

Buffer ReadBuffer(const file::Buffer& from) {
  Buffer buffer;
  buffer.name = TextOf(from.name());
  buffer.kind = static_cast<BufferKind>(from.kind());
  buffer.size_bytes = from.size_bytes();
  buffer.born = {from.born()};
  buffer.dies = {from.dies()};
  buffer.persistent = from.persistent();
  buffer.movable = from.movable();
  buffer.handed_on = from.handed_on();
  return buffer;
}

Operation ReadOperation(const file::Operation& from) {
  Operation operation;
  operation.name = TextOf(from.name());
  operation.type = static_cast<OperationType>(from.type());
  operation.phase = static_cast<Phase>(from.phase());
  operation.replayable = from.replayable();
  operation.reads = Ids(from.reads());
  operation.writes = Ids(from.writes());
  operation.duration_ns = from.duration_ns();
  if (!from.workspaces()) return operation;
  for (const file::Workspace* choice : *from.workspaces())
    operation.workspaces.push_back(
        {TextOf(choice->name()), choice->size_bytes(), choice->duration_ns()});
  return operation;
}

bool HasKnownValues(const file::Profile& profile) {
  if (profile.buffers()) {
    for (const file::Buffer* buffer : *profile.buffers()) {
      if (buffer->kind() > static_cast<uint8_t>(BufferKind::kWorkspace)) return false;
    }
  }
  if (profile.operations()) {
    for (const file::Operation* operation : *profile.operations()) {
      if (operation->type() > static_cast<uint8_t>(OperationType::kUpdate)) return false;
      if (operation->phase() > static_cast<uint8_t>(Phase::kUpdate)) return false;
    }
  }
  return true;
}

Event ReadEvent(const file::Event& from) {
  Event event;
  event.kind = static_cast<EventKind>(from.kind());
  event.start_ns = from.start_ns();
  event.allocation = from.allocation();
  event.size_bytes = from.size_bytes();
  event.identity = from.identity();
  event.stream = from.stream();
  event.duration_ns = from.duration_ns();
  event.thread = from.thread();
  if (!from.touches()) return event;
  for (const file::Touch* touch : *from.touches())
    event.touches.push_back(
        {touch->allocation(), (touch->roles() & kReads) != 0, (touch->roles() & kWrites) != 0});
  return event;
}

std::vector<uint8_t> BytesOf(const flatbuffers::FlatBufferBuilder& builder) {
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

// In separate statements: arguments have no order, but equal profiles must give equal bytes.
flatbuffers::Offset<file::Operation> WriteOperation(flatbuffers::FlatBufferBuilder& builder,
                                                    const Operation& operation) {
  std::vector<flatbuffers::Offset<file::Workspace>> choices;
  for (const WorkspaceChoice& choice : operation.workspaces) {
    const auto name = builder.CreateSharedString(choice.name);
    choices.push_back(file::CreateWorkspace(builder, name, choice.size_bytes, choice.duration_ns));
  }
  const auto name = builder.CreateSharedString(operation.name);
  const auto reads = builder.CreateVector(Numbers(operation.reads));
  const auto writes = builder.CreateVector(Numbers(operation.writes));
  const auto workspaces = builder.CreateVector(choices);
  return file::CreateOperation(builder, name, static_cast<uint8_t>(operation.type),
                               static_cast<uint8_t>(operation.phase), operation.replayable, reads,
                               writes, operation.duration_ns, workspaces);
}

flatbuffers::Offset<file::Event> WriteEvent(flatbuffers::FlatBufferBuilder& builder,
                                            const Event& event) {
  std::vector<file::Touch> touches;
  for (const TraceTouch& touch : event.touches) {
    const int roles = (touch.reads ? kReads : 0) | (touch.writes ? kWrites : 0);
    touches.emplace_back(touch.allocation, static_cast<uint8_t>(roles));
  }
  return file::CreateEvent(builder, static_cast<uint8_t>(event.kind), event.start_ns,
                           event.allocation, event.size_bytes, event.identity, event.stream,
                           event.duration_ns, builder.CreateVectorOfStructs(touches), event.thread);
}

}  // namespace

TraceFileKind KindOfFile(std::span<const uint8_t> bytes) {
  if (bytes.size() < 8) return TraceFileKind::kUnknown;
  if (std::memcmp(bytes.data() + 4, file::ProfileIdentifier(), 4) == 0)
    return TraceFileKind::kProfile;
  if (std::memcmp(bytes.data() + 4, file::TraceIdentifier(), 4) == 0) return TraceFileKind::kTrace;
  return TraceFileKind::kUnknown;
}

std::vector<uint8_t> WriteProfile(const IterationProfile& profile) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<file::Buffer>> buffers;
  for (const Buffer& buffer : profile.buffers) {
    buffers.push_back(file::CreateBuffer(builder, builder.CreateString(buffer.name),
                                         static_cast<uint8_t>(buffer.kind), buffer.size_bytes,
                                         buffer.born.index, buffer.dies.index, buffer.persistent,
                                         buffer.movable, buffer.handed_on));
  }
  std::vector<flatbuffers::Offset<file::Operation>> operations;
  for (const Operation& operation : profile.operations)
    operations.push_back(WriteOperation(builder, operation));
  const auto name = builder.CreateString(profile.name);
  const auto all_buffers = builder.CreateVector(buffers);
  const auto all_operations = builder.CreateVector(operations);
  file::FinishProfileBuffer(
      builder, file::CreateProfile(builder, kProfileVersion, name, profile.batch_size, all_buffers,
                                   all_operations));
  return BytesOf(builder);
}

base::Result<IterationProfile> ReadProfile(std::span<const uint8_t> bytes) {
  const base::Status checked_file = CheckFile(
      bytes, file::ProfileIdentifier(),
      [](flatbuffers::Verifier& verifier) { return file::VerifyProfileBuffer(verifier); });
  if (!checked_file.ok()) return checked_file;
  const file::Profile& from = *file::GetProfile(bytes.data());
  if (from.version() != kProfileVersion)
    return base::Error{UnknownVersion(from.version(), kProfileVersion)};
  if (ClaimsTooMuch(from, bytes)) return base::Error{kTooLarge};
  if (!HasKnownValues(from))
    return base::Error{"the file has kinds that this program does not know"};
  IterationProfile profile;
  profile.name = TextOf(from.name());
  profile.batch_size = from.batch_size();
  if (from.buffers()) {
    for (const file::Buffer* buffer : *from.buffers())
      profile.buffers.push_back(ReadBuffer(*buffer));
  }
  if (from.operations()) {
    for (const file::Operation* operation : *from.operations())
      profile.operations.push_back(ReadOperation(*operation));
  }
  if (base::Status checked = CheckProfile(profile); !checked.ok()) return checked;
  return profile;
}

std::vector<uint8_t> WriteTrace(const EventTrace& trace) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<file::Event>> events;
  for (const Event& event : trace.events) events.push_back(WriteEvent(builder, event));
  const auto name = builder.CreateString(trace.name);
  const auto identities = builder.CreateVectorOfStrings(trace.identities);
  file::FinishTraceBuffer(builder, file::CreateTrace(builder, kTraceVersion, name, identities,
                                                     builder.CreateVector(events)));
  return BytesOf(builder);
}

base::Result<EventTrace> ReadTrace(std::span<const uint8_t> bytes) {
  const base::Status checked_file =
      CheckFile(bytes, file::TraceIdentifier(),
                [](flatbuffers::Verifier& verifier) { return file::VerifyTraceBuffer(verifier); });
  if (!checked_file.ok()) return checked_file;
  const file::Trace& from = *file::GetTrace(bytes.data());
  if (from.version() != kTraceVersion)
    return base::Error{UnknownVersion(from.version(), kTraceVersion)};
  if (ClaimsTooMuch(from, bytes)) return base::Error{kTooLarge};
  EventTrace trace;
  trace.name = TextOf(from.name());
  if (from.identities()) {
    for (const flatbuffers::String* identity : *from.identities())
      trace.identities.push_back(TextOf(identity));
  }
  if (from.events()) {
    for (const file::Event* event : *from.events()) trace.events.push_back(ReadEvent(*event));
  }
  if (base::Status checked = CheckTrace(trace); !checked.ok()) return checked;
  return trace;
}

}  // namespace spillway::scheduler
