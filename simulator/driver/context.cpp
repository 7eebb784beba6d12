#include "simulator/driver/context.h"

#include <atomic>

#include "simulator/driver/device.h"

namespace spillway::simulator {
namespace {

thread_local bool per_thread_default = false;

}  // namespace

int Context::ordinal() const { return device->ordinal; }

unsigned Context::PeerDevices() const {
  unsigned devices = 0;
  for (const Context* peer : peers) devices |= 1u << peer->ordinal();
  return devices;
}

std::vector<OperationRef> Context::BlockingTails() const {
  std::vector<OperationRef> tails;
  for (const auto& [thread, stream] : per_thread) tails.push_back(stream->tail);
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

std::vector<Context*>& CurrentContexts() {
  static thread_local std::vector<Context*> stack;
  return stack;
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
