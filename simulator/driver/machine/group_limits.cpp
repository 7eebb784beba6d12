#include "simulator/driver/machine/group_limits.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/environment.h"
#include "base/file.h"
#include "base/unique_fd.h"
#include "simulator/driver/machine/node_statistics.h"

namespace spillway::simulator {
namespace {

std::string Setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

struct Line {
  std::string uuid, group;
  std::uint64_t soft_bytes = 0, hard_bytes = 0;
};

std::vector<Line> LinesIn(const std::string& path) {
  std::istringstream text(base::ReadFile(path).optional().value_or(""));
  std::vector<Line> lines;
  for (Line line; text >> line.uuid >> line.group >> line.soft_bytes >> line.hard_bytes;)
    lines.push_back(line);
  return lines;
}

std::vector<std::string>& EnforcedUuids() {
  static auto* const uuids = new std::vector<std::string>;
  return *uuids;
}

// Other processes of this one's group.
std::uint64_t HeldBesideIn(const std::string& group, int device) {
  const std::string node = Setting(environment::kSimNode);
  if (node.empty()) return 0;
  std::uint64_t held_bytes = 0;
  for (const NodeProcess& process : ReadNodeProcesses(node, device)) {
    if (process.pid != getpid() && GroupFolderOf(process.pid) == group)
      held_bytes += process.held_bytes;
  }
  return held_bytes;
}

}  // namespace

std::string GroupLimitsPath() { return Setting(environment::kSimMemoryLimits); }

GroupLimits ReadGroupLimits(const std::string& path, const std::string& uuid,
                            const std::string& group) {
  GroupLimits limits;
  for (const Line& line : LinesIn(path)) {
    if (line.uuid == uuid && line.group == group)
      limits = {line.soft_bytes, line.hard_bytes == 0 ? UINT64_MAX : line.hard_bytes};
  }
  return limits;
}

LimitsWritten WriteGroupLimits(const std::string& path, const std::string& uuid,
                               const std::string& group, const GroupLimits& limits) {
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0) return LimitsWritten::kFailed;
  if ((facts.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0) return LimitsWritten::kNotPermitted;
  std::ostringstream text;
  for (const Line& line : LinesIn(path)) {
    if (line.uuid == uuid && line.group == group) continue;
    text << line.uuid << ' ' << line.group << ' ' << line.soft_bytes << ' ' << line.hard_bytes
         << '\n';
  }
  const bool has_hard = limits.hard_bytes != UINT64_MAX;
  if (limits.soft_bytes != 0 || has_hard)
    text << uuid << ' ' << group << ' ' << limits.soft_bytes << ' '
         << (has_hard ? limits.hard_bytes : 0) << '\n';
  return base::ReplaceFile(path, text.str()).ok() ? LimitsWritten::kYes : LimitsWritten::kFailed;
}

std::string GroupFolderOf(int pid) {
  const std::string groups =
      base::ReadFile("/proc/" + std::to_string(pid) + "/cgroup").optional().value_or("");
  const std::size_t line = groups.starts_with("0::/") ? 0 : groups.find("\n0::/");
  if (line == std::string::npos) return "";
  const std::size_t begin = groups.find('/', line);
  return "/sys/fs/cgroup" + groups.substr(begin, groups.find('\n', begin) - begin);
}

void EnforceGroupLimits(std::vector<std::string> uuids) { EnforcedUuids() = std::move(uuids); }

bool GroupMayTake(int device, std::uint64_t own_bytes, std::uint64_t size_bytes) {
  const std::string path = GroupLimitsPath();
  const auto at = static_cast<std::size_t>(device);
  if (path.empty() || at >= EnforcedUuids().size()) return true;
  const std::string group = GroupFolderOf(getpid());
  const GroupLimits limits = ReadGroupLimits(path, EnforcedUuids()[at], group);
  if (limits.hard_bytes == UINT64_MAX) return true;
  const std::uint64_t held_bytes = own_bytes + HeldBesideIn(group, device);
  return held_bytes <= limits.hard_bytes && size_bytes <= limits.hard_bytes - held_bytes;
}

}  // namespace spillway::simulator
