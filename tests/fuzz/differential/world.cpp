#include "tests/fuzz/differential/world.h"

#include <algorithm>

namespace spillway::fuzz {

bool Buffer::IsWholeInitialised() const {
  return std::all_of(segments.begin(), segments.end(),
                     [](const Segment& segment) { return segment.initialised; });
}

bool World::Allows(const Operation& operation) const {
  if (!CanUseStream(operation)) return false;
  for (const View& view : operation.in) {
    if (!CanRead(view, operation.thread)) return false;
  }
  bool writes_own = true;
  operation.ForEachOut(
      [&](const View& v) { writes_own = writes_own && CanWrite(v, operation.thread); });
  if (!writes_own || !CanUseObject(operation)) return false;
  if (operation.decoy != kNone && !buffers_.contains(operation.decoy)) return false;
  switch (operation.kind) {
    case Kind::kFree:
      return CanFree(operation);
    case Kind::kEventWait:
    case Kind::kEventSync: {
      const auto event = events_.find(operation.event);
      return event != events_.end() && event->second == operation.thread;
    }
    case Kind::kAlloc:
      return operation.pool == kNone || pools_.contains(operation.pool);
    case Kind::kPoolTrim:
    case Kind::kPoolDestroy:
      return pools_.contains(operation.pool);
    case Kind::kGive:
      return IsOwn(operation.buffer, operation.thread);
    default:
      return true;
  }
}

bool World::CanUseStream(const Operation& operation) const {
  if (operation.stream < kFirstCreatedStream || operation.kind == Kind::kStreamCreate) return true;
  const auto stream = streams_.find(operation.stream);
  return stream != streams_.end() && stream->second.live &&
         stream->second.thread == operation.thread;
}

bool World::IsOwn(int buffer, int thread) const {
  const auto found = buffers_.find(buffer);
  return found != buffers_.end() && found->second.live && found->second.thread == thread;
}

bool World::CanRead(const View& view, int thread) const {
  if (!IsOwn(view.buffer, thread)) return false;
  for (const Segment& segment : At(view.buffer).segments) {
    const bool touched = segment.begin_bytes < view.offset_bytes + view.bytes &&
                         view.offset_bytes < segment.end_bytes;
    if (touched && !segment.initialised) return false;
  }
  return view.offset_bytes + view.bytes <= At(view.buffer).bytes;
}

bool World::CanWrite(const View& view, int thread) const {
  return IsOwn(view.buffer, thread) && view.offset_bytes + view.bytes <= At(view.buffer).bytes;
}

bool World::CanFree(const Operation& operation) const {
  if (!IsOwn(operation.buffer, operation.thread)) return false;
  const auto how = static_cast<FreeForm>(operation.form);
  const Buffer& buffer = At(operation.buffer);
  return (how == FreeForm::kHost) == buffer.InHostMemory() &&
         (how == FreeForm::kFeature) == (buffer.form == AllocForm::kFeature);
}

bool World::IsUsable(const Object& object) const {
  return object.live &&
         std::all_of(object.maker.names.begin(), object.maker.names.end(),
                     [&](const View& view) { return IsOwn(view.buffer, object.thread); });
}

bool World::CanUseObject(const Operation& operation) const {
  for (const View& view : operation.names) {
    if (!CanWrite(view, operation.thread)) return false;
  }
  for (const Operation& part : operation.body) {
    for (const View& view : part.in) {
      if (!CanRead(view, operation.thread)) return false;
    }
  }
  if (operation.object == kNone || operation.object_use == ObjectUse::kMake) return true;
  const auto object = objects_.find(operation.object);
  if (object == objects_.end() || object->second.thread != operation.thread) return false;
  return operation.object_use == ObjectUse::kEnd ? object->second.live : IsUsable(object->second);
}

void World::Apply(const Operation& operation) {
  operation.ForEachOut([&](const View& view) { MarkWritten(view); });
  for (const View& view : operation.scratch) MarkScratch(view);
  if (operation.object != kNone) ApplyToObject(operation);
  switch (operation.kind) {
    case Kind::kStreamCreate:
      streams_[operation.stream] = {operation.thread, true, (operation.salt & 1) == 0};
      break;
    case Kind::kStreamDestroy:
      streams_[operation.stream].live = false;
      break;
    case Kind::kEventRecord:
      events_[operation.event] = operation.thread;
      break;
    case Kind::kAlloc:
      AddBuffer(operation);
      break;
    case Kind::kFree:
      RemoveBuffer(operation);
      break;
    case Kind::kPoolCreate:
      pools_[operation.pool] = operation.thread;
      break;
    case Kind::kPoolDestroy:
      pools_.erase(operation.pool);
      break;
    case Kind::kGive:
      buffers_[operation.buffer].thread = operation.to_thread;
      break;
    default:
      break;
  }
}

void World::AddBuffer(const Operation& operation) {
  Buffer& buffer = buffers_[operation.buffer];
  buffer = {static_cast<AllocForm>(operation.form),
            operation.bytes,
            operation.thread,
            operation.feature,
            true,
            {}};
  for (std::size_t i = 0; i < operation.cuts_bytes.size(); ++i) {
    const bool last = i + 1 == operation.cuts_bytes.size();
    const std::uint64_t end_bytes = last ? operation.bytes : operation.cuts_bytes[i + 1];
    buffer.segments.push_back({operation.cuts_bytes[i], end_bytes, buffer.InHostMemory()});
  }
  if (buffer.InHostMemory()) return;
  live_device_bytes_ += buffer.bytes;
  peak_device_bytes_ = std::max(peak_device_bytes_, live_device_bytes_);
}

void World::ApplyToObject(const Operation& operation) {
  if (operation.object_use == ObjectUse::kMake)
    objects_[operation.object] = {operation.feature, operation.thread, true, operation};
  if (operation.object_use == ObjectUse::kEnd) objects_[operation.object].live = false;
}

void World::RemoveBuffer(const Operation& operation) {
  Buffer& buffer = buffers_[operation.buffer];
  buffer.live = false;
  if (!buffer.InHostMemory()) live_device_bytes_ -= buffer.bytes;
}

void World::MarkWritten(const View& view) {
  if (!view.IsDense()) return;
  for (Segment& segment : buffers_[view.buffer].segments) {
    const bool covered = view.offset_bytes <= segment.begin_bytes &&
                         segment.end_bytes <= view.offset_bytes + view.bytes;
    segment.initialised = segment.initialised || covered;
  }
}

void World::MarkScratch(const View& view) {
  for (Segment& segment : buffers_[view.buffer].segments) {
    const bool is_apart = segment.end_bytes <= view.offset_bytes ||
                          view.offset_bytes + view.bytes <= segment.begin_bytes;
    segment.initialised = segment.initialised && is_apart;
  }
}

std::vector<int> World::StreamsOf(int thread) const {
  std::vector<int> streams = {kLegacyStream, kPerThreadStream};
  for (const auto& [id, stream] : streams_) {
    if (stream.live && stream.thread == thread) streams.push_back(id);
  }
  return streams;
}

bool World::IsBlocking(int stream) const {
  return stream < kFirstCreatedStream || streams_.at(stream).blocking;
}

std::vector<int> World::EventsOf(int thread) const {
  std::vector<int> events;
  for (const auto& [id, owner] : events_) {
    if (owner == thread) events.push_back(id);
  }
  return events;
}

std::vector<int> World::PoolsOf(int thread) const {
  std::vector<int> pools;
  for (const auto& [id, owner] : pools_) {
    if (owner == thread) pools.push_back(id);
  }
  return pools;
}

std::vector<int> World::ObjectsOf(int feature, int thread) const {
  std::vector<int> found;
  for (const auto& [id, object] : objects_) {
    if (object.feature == feature && object.thread == thread && IsUsable(object))
      found.push_back(id);
  }
  return found;
}

int World::LiveBuffers() const {
  return static_cast<int>(std::count_if(buffers_.begin(), buffers_.end(),
                                        [](const auto& entry) { return entry.second.live; }));
}

}  // namespace spillway::fuzz
