#include "simulator/driver/device/context.h"

#include <atomic>

#include "simulator/driver/device/device.h"
#include "simulator/driver/failure.h"

namespace spillway::simulator {
namespace {

thread_local bool per_thread_default = false;
thread_local bool is_gone = false;  // the thread runs its last destructors

}  // namespace

int Context::ordinal() const { return device->ordinal; }

unsigned Context::PeerDevices() const {
  unsigned devices = 0;
  for (const Context* peer : peers) devices |= 1u << peer->ordinal();
  return devices;
}

std::vector<OperationRef> Context::BlockingTails() const {
  std::vector<OperationRef> tails;
  for (const auto& [thread, own] : per_thread) tails.push_back(own.stream->tail);
  for (const auto& [id, stream] : streams) {
    if (stream->blocking) tails.push_back(stream->tail);
  }
  return tails;
}

std::vector<OperationRef> Context::Tails() const {
  std::vector<OperationRef> tails = BlockingTails();
  tails.push_back(legacy->tail);
  for (const auto& [id, stream] : streams) {
    if (!stream->blocking) tails.push_back(stream->tail);
  }
  tails.insert(tails.end(), orphans.begin(), orphans.end());
  return tails;
}

void BelongTo(const Stream& stream, Operation& operation) {
  operation.priority = stream.priority;
  if (operation.device < 0) operation.device = stream.context->ordinal();
  operation.peers = stream.context->PeerDevices();
  operation.errors = stream.context->errors;
}

void SubmitTo(Engine& engine, Engine::Lock& lock, Stream& stream, const OperationRef& operation,
              const std::vector<OperationRef>& also_after) {
  std::vector<OperationRef> after = also_after;
  after.push_back(stream.tail);
  if (stream.legacy) {
    for (OperationRef& tail : stream.context->BlockingTails()) after.push_back(std::move(tail));
  } else if (stream.blocking) {
    after.push_back(stream.context->legacy->tail);
  }
  BelongTo(stream, *operation);
  stream.tail = operation;
  engine.Submit(lock, operation, after);
}

std::vector<OperationRef> EndOf(const Stream& stream) {
  std::vector<OperationRef> end;
  if (stream.legacy) end = stream.context->BlockingTails();
  end.push_back(stream.tail);
  return end;
}

Stream& Context::OwnStream(std::uint64_t& next_stream_id) {
  const auto found = per_thread.find(ThreadNumber());
  if (found != per_thread.end()) return *found->second.stream;
  std::erase_if(per_thread, [](const auto& entry) {
    return *entry.second.thread_ended && IsDone(entry.second.stream->tail);
  });
  const auto stream =
      std::make_shared<Stream>(Stream{next_stream_id++, this, false, true, 0, 0, nullptr});
  return *per_thread.emplace(ThreadNumber(), PerThreadStream{stream, ThisThreadsEnd()})
              .first->second.stream;
}

void ContextStack::push_back(Context* context) {
  if (size_ == kMost) throw Failure{CUDA_ERROR_OUT_OF_MEMORY};
  contexts_[size_++] = context;
}

ContextStack& CurrentContexts() {
  static thread_local ContextStack stack;
  return stack;
}

std::shared_ptr<const std::atomic<bool>> ThisThreadsEnd() {
  struct Mark {
    std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
    ~Mark() {
      *ended = true;
      is_gone = true;
    }
  };
  if (is_gone) return std::make_shared<std::atomic<bool>>(true);
  static thread_local Mark mark;
  return mark.ended;
}

std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next{1};
  static thread_local const std::uint64_t number = next++;
  return number;
}

PerThreadDefault::PerThreadDefault() : before_(per_thread_default) { per_thread_default = true; }
PerThreadDefault::~PerThreadDefault() { per_thread_default = before_; }
bool PerThreadDefault::active() { return per_thread_default; }

}  // namespace spillway::simulator
