// Profiles for tests in a few lines: buffers first, then operations that refer to them by position.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "scheduler/trace/profile.h"

namespace spillway::scheduler::testing {

inline Buffer Temporary(const std::string& name, int64_t size_bytes,
                        BufferKind kind = BufferKind::kActivation) {
  Buffer buffer;
  buffer.name = name;
  buffer.kind = kind;
  buffer.size_bytes = size_bytes;
  return buffer;
}

inline Buffer Persistent(const std::string& name, int64_t size_bytes,
                         BufferKind kind = BufferKind::kParameter) {
  Buffer buffer = Temporary(name, size_bytes, kind);
  buffer.persistent = true;
  return buffer;
}

inline Operation MakeOperation(const std::string& name, int64_t duration_ns,
                               std::initializer_list<int32_t> reads,
                               std::initializer_list<int32_t> writes, bool replayable = true) {
  Operation result;
  result.name = name;
  result.duration_ns = duration_ns;
  result.replayable = replayable;
  for (int32_t read : reads) result.reads.push_back({read});
  for (int32_t written : writes) result.writes.push_back({written});
  return result;
}

inline IterationProfile ProfileOf(std::vector<Buffer> buffers, std::vector<Operation> operations) {
  IterationProfile profile;
  profile.name = "test";
  profile.buffers = std::move(buffers);
  profile.operations = std::move(operations);
  SetLifetimesToTouches(profile);
  return profile;
}

}  // namespace spillway::scheduler::testing
