#include "scheduler/trace/profile.h"

#include <algorithm>

namespace spillway::scheduler {
namespace {

using base::Error;
using base::Ok;
using base::Status;

bool Exists(const IterationProfile& profile, OperationId id) {
  return id.index >= 0 && static_cast<size_t>(id.index) < profile.operations.size();
}

bool Exists(const IterationProfile& profile, BufferId id) {
  return id.index >= 0 && static_cast<size_t>(id.index) < profile.buffers.size();
}

Status CheckBuffers(const IterationProfile& profile) {
  int64_t sum_bytes = 0;
  for (const Buffer& buffer : profile.buffers) {
    if (buffer.size_bytes <= 0) return Error{"buffer '" + buffer.name + "' has no positive size"};
    if (buffer.size_bytes > kMostBytes - sum_bytes)
      return Error{"the buffers' sizes add up to more than 2^50 bytes"};
    sum_bytes += buffer.size_bytes;
    if (buffer.persistent) continue;
    if (!Exists(profile, buffer.born) || !Exists(profile, buffer.dies))
      return Error{"buffer '" + buffer.name +
                   "' is born or dies at an operation that does not exist"};
    if (buffer.born > buffer.dies)
      return Error{"buffer '" + buffer.name + "' dies before it is born"};
  }
  return Ok();
}

Status CheckWorkspaces(const Operation& operation, int64_t& sum_ns) {
  int64_t longest_ns = operation.duration_ns;
  for (const WorkspaceChoice& choice : operation.workspaces) {
    if (choice.size_bytes < 0 || choice.size_bytes > kMostBytes)
      return Error{"operation '" + operation.name + "' has a workspace of impossible size"};
    if (choice.duration_ns < 0)
      return Error{"operation '" + operation.name + "' has a workspace with a negative duration"};
    longest_ns = std::max(longest_ns, choice.duration_ns);
  }
  if (operation.duration_ns < 0)
    return Error{"operation '" + operation.name + "' has a negative duration"};
  if (longest_ns > kMostNanos - sum_ns)
    return Error{"the operations' durations add up to more than 2^55 ns"};
  sum_ns += longest_ns;
  return Ok();
}

Status CheckTouches(const IterationProfile& profile, OperationId id,
                    const std::vector<BufferId>& touched, std::vector<int32_t>& seen_at) {
  const std::string& name = profile.at(id).name;
  for (BufferId buffer_id : touched) {
    if (!Exists(profile, buffer_id))
      return Error{"operation '" + name + "' touches a buffer that does not exist"};
    int32_t& seen = seen_at[static_cast<size_t>(buffer_id.index)];
    const Buffer& buffer = profile.at(buffer_id);
    if (seen == id.index)
      return Error{"operation '" + name + "' names buffer '" + buffer.name + "' twice"};
    seen = id.index;
    if (!buffer.persistent && (id < buffer.born || id > buffer.dies))
      return Error{"operation '" + name + "' touches buffer '" + buffer.name +
                   "' outside its lifetime"};
  }
  return Ok();
}

Status CheckFirstTouches(const IterationProfile& profile) {
  std::vector<bool> written(profile.buffers.size(), false);
  for (const Operation& operation : profile.operations) {
    for (BufferId id : operation.reads) {
      if (!profile.at(id).persistent && !written[static_cast<size_t>(id.index)])
        return Error{"operation '" + operation.name + "' reads buffer '" + profile.at(id).name +
                     "' before it is written"};
    }
    for (BufferId id : operation.writes) written[static_cast<size_t>(id.index)] = true;
  }
  return Ok();
}

Status CheckOperations(const IterationProfile& profile) {
  std::vector<int32_t> read_at(profile.buffers.size(), -1), written_at(profile.buffers.size(), -1);
  int64_t sum_ns = 0;
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const OperationId id{static_cast<int32_t>(i)};
    const Operation& operation = profile.operations[i];
    if (Status checked = CheckWorkspaces(operation, sum_ns); !checked.ok()) return checked;
    if (Status checked = CheckTouches(profile, id, operation.reads, read_at); !checked.ok())
      return checked;
    if (Status checked = CheckTouches(profile, id, operation.writes, written_at); !checked.ok())
      return checked;
  }
  return Ok();
}

void AppendIntervals(const IterationProfile& profile, BufferId id,
                     const std::vector<OperationId>& touches,
                     std::vector<IdleInterval>& intervals) {
  const auto overwrites = [&](OperationId at) {
    const std::vector<BufferId>& reads = profile.at(at).reads;
    return std::find(reads.begin(), reads.end(), id) == reads.end();
  };
  for (size_t i = 0; i + 1 < touches.size(); ++i) {
    if (touches[i + 1].index > touches[i].index + 1)
      intervals.push_back({id, touches[i], touches[i + 1], false, overwrites(touches[i + 1])});
  }
  const Buffer& buffer = profile.at(id);
  const bool dies_late =
      !buffer.persistent && !buffer.handed_on && !touches.empty() && buffer.dies > touches.back();
  if (dies_late) intervals.push_back({id, touches.back(), {buffer.dies.index + 1}, false, true});
  // The program rewrites an input between iterations, so the input must stay resident there.
  if (!buffer.persistent || buffer.kind == BufferKind::kInput || touches.empty()) return;
  const OperationId last = touches.back(), first = touches.front();
  const auto count = static_cast<int32_t>(profile.operations.size());
  if (first.index + count > last.index + 1)
    intervals.push_back({id, last, first, true, overwrites(first)});
}

}  // namespace

base::Status CheckProfile(const IterationProfile& profile) {
  if (profile.buffers.size() > static_cast<size_t>(kMostBuffers))
    return Error{"there are more than 2^20 buffers"};
  if (profile.operations.size() > static_cast<size_t>(kMostOperations))
    return Error{"there are more than 2^20 operations"};
  if (profile.batch_size < 0) return Error{"the batch size is negative"};
  if (Status checked = CheckBuffers(profile); !checked.ok()) return checked;
  if (Status checked = CheckOperations(profile); !checked.ok()) return checked;
  return CheckFirstTouches(profile);
}

std::vector<std::vector<OperationId>> TouchesByBuffer(const IterationProfile& profile) {
  std::vector<std::vector<OperationId>> touches(profile.buffers.size());
  for (size_t i = 0; i < profile.operations.size(); ++i) {
    const OperationId id{static_cast<int32_t>(i)};
    for (const auto* list : {&profile.operations[i].reads, &profile.operations[i].writes}) {
      for (BufferId buffer : *list) {
        std::vector<OperationId>& of_buffer = touches[static_cast<size_t>(buffer.index)];
        if (of_buffer.empty() || of_buffer.back() != id) of_buffer.push_back(id);
      }
    }
  }
  return touches;
}

void AddTouch(Operation& operation, BufferId buffer, bool reads, bool writes, bool has_content) {
  const auto add = [&](std::vector<BufferId>& list) {
    if (std::find(list.begin(), list.end(), buffer) == list.end()) list.push_back(buffer);
  };
  if (reads && has_content) add(operation.reads);
  if (writes || !has_content) add(operation.writes);
}

void SetLifetimesToTouches(IterationProfile& profile) {
  const std::vector<std::vector<OperationId>> touches = TouchesByBuffer(profile);
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    Buffer& buffer = profile.buffers[i];
    if (buffer.persistent || touches[i].empty()) continue;
    buffer.born = touches[i].front();
    buffer.dies = touches[i].back();
  }
}

std::vector<IdleInterval> IdleIntervals(const IterationProfile& profile, int64_t min_size_bytes) {
  const std::vector<std::vector<OperationId>> touches = TouchesByBuffer(profile);
  std::vector<IdleInterval> intervals;
  for (size_t i = 0; i < profile.buffers.size(); ++i) {
    const Buffer& buffer = profile.buffers[i];
    if (!buffer.movable || buffer.size_bytes < min_size_bytes) continue;
    AppendIntervals(profile, BufferId{static_cast<int32_t>(i)}, touches[i], intervals);
  }
  return intervals;
}

std::vector<int64_t> LiveBytesByOperation(const IterationProfile& profile) {
  std::vector<int64_t> change(profile.operations.size() + 1, 0);
  int64_t persistent_bytes = 0;
  for (const Buffer& buffer : profile.buffers) {
    if (buffer.persistent) {
      persistent_bytes += buffer.size_bytes;
      continue;
    }
    change[static_cast<size_t>(buffer.born.index)] += buffer.size_bytes;
    change[static_cast<size_t>(buffer.dies.index) + 1] -= buffer.size_bytes;
  }
  std::vector<int64_t> live(profile.operations.size());
  int64_t now_bytes = persistent_bytes;
  for (size_t i = 0; i < live.size(); ++i) live[i] = now_bytes += change[i];
  return live;
}

int64_t PeakBytes(const IterationProfile& profile) {
  const std::vector<int64_t> live = LiveBytesByOperation(profile);
  return live.empty() ? 0 : *std::max_element(live.begin(), live.end());
}

int64_t BusyNs(const IterationProfile& profile) {
  int64_t sum_ns = 0;
  for (const Operation& operation : profile.operations) sum_ns += operation.duration_ns;
  return sum_ns;
}

}  // namespace spillway::scheduler
