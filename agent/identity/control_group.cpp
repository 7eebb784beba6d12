#include "agent/identity/control_group.h"

#include <algorithm>
#include <vector>

namespace spillway::agent {
namespace {

using Segments = std::vector<std::string_view>;

Segments Split(std::string_view text, char at) {
  Segments parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(at), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Empty if the prefix is missing.
std::string_view After(std::string_view prefix, std::string_view text) {
  return text.substr(0, prefix.size()) == prefix ? text.substr(prefix.size()) : std::string_view();
}
bool IsAll(std::string_view text, std::string_view letters) {
  return !text.empty() && text.find_first_not_of(letters) == std::string_view::npos;
}
bool IsNumber(std::string_view text) { return IsAll(text, "0123456789"); }
// "0", "batch", "interactive", "0+1". It becomes a label, and an invalid byte would spoil the page.
bool IsStep(std::string_view text) {
  return IsAll(text, "0123456789abcdefghijklmnopqrstuvwxyz+_.-");
}
bool IsContainerId(std::string_view text) {
  return text.size() == 64 && IsAll(text, "0123456789abcdef");
}

// The id of "cri-containerd-<id>.scope", "libpod-<id>" or "<id>".
std::string_view ContainerIn(std::string_view segment) {
  if (segment.size() > 6 && segment.substr(segment.size() - 6) == ".scope")
    segment.remove_suffix(6);
  const size_t dash = segment.rfind('-');
  if (dash != std::string_view::npos) segment.remove_prefix(dash + 1);
  return IsContainerId(segment) ? segment : std::string_view();
}

// v1: /slurm/uid_5/job_4/step_0 or /slurm_HOST/...; v2:
// /system.slice/[HOST_]slurmstepd.scope/job_4/step_0/..., or in another slice (CgroupSlice).
bool BeginsAsSlurm(const Segments& path) {
  if (path[0] == "slurm" || !After("slurm_", path[0]).empty()) return true;
  if (path[0] == "user.slice" || path[0] == "machine.slice") return false;
  const auto scope = std::find_if(path.begin(), path.end(), [](std::string_view segment) {
    return !segment.ends_with(".slice");
  });
  return scope != path.begin() && scope != path.end() &&
         (*scope == "slurmstepd.scope" || scope->ends_with("_slurmstepd.scope"));
}

ControlGroupIdentity SlurmIn(const Segments& path) {
  for (size_t i = 1; i < path.size(); ++i) {
    const std::string_view job = After("job_", path[i]);
    if (!IsNumber(job)) continue;
    const std::string_view step =
        i + 1 < path.size() ? After("step_", path[i + 1]) : std::string_view();
    return {JobSource::kSlurm, std::string(job), std::string(IsStep(step) ? step : "")};
  }
  return {};
}

// The uid of "pod1f2e-..." or "kubepods-burstable-pod1f2e_....slice".
std::string PodIn(std::string_view segment) {
  if (segment.size() > 6 && segment.substr(segment.size() - 6) == ".slice")
    segment.remove_suffix(6);
  const size_t at = segment.rfind("pod");
  const bool begins = at == 0 || (at != std::string_view::npos && segment[at - 1] == '-');
  if (!begins) return "";
  std::string uid(segment.substr(at + 3));
  std::replace(uid.begin(), uid.end(), '_', '-');
  return IsAll(uid, "0123456789abcdef-") && uid.size() >= 32 ? uid : "";
}

// "kubepods-burstable-pod1f2e_....slice:cri-containerd:<id>", in containerd's own group or at the
// root: a runtime that makes groups itself takes kubelet's path for systemd as a name.
ControlGroupIdentity PodAndContainerIn(std::string_view segment) {
  const Segments words = Split(segment, ':');
  if (words.size() != 3 || After("kubepods", words[0]).empty()) return {};
  const std::string pod = PodIn(words[0]);
  if (pod.empty() || !IsContainerId(words[2])) return {};
  return {JobSource::kKubernetes, pod, std::string(words[2])};
}

ControlGroupIdentity PodIn(const Segments& path) {
  for (size_t i = 1; i < path.size(); ++i) {
    const std::string pod = PodIn(path[i]);
    if (pod.empty()) continue;
    return {JobSource::kKubernetes, pod,
            std::string(i + 1 < path.size() ? ContainerIn(path[i + 1]) : "")};
  }
  return {};
}

ControlGroupIdentity IdentityIn(const Segments& path) {
  if (path.empty()) return {};
  if (BeginsAsSlurm(path)) return SlurmIn(path);
  if (path[0] == "kubepods" || path[0] == "kubepods.slice" || path[0] == "kubelet.slice")
    return PodIn(path);
  const bool of_containerd =
      path.size() > 2 && path[0] == "system.slice" && path[1] == "containerd.service";
  if (ControlGroupIdentity pod = PodAndContainerIn(path[of_containerd ? 2 : 0]);
      pod.source == JobSource::kKubernetes)
    return pod;
  const bool of_an_engine = path[0] == "docker" || path[0] == "libpod_parent" ||
                            path[0] == "machine.slice" || path[0] == "system.slice";
  const std::string_view container =
      of_an_engine && path.size() > 1 ? ContainerIn(path[1]) : std::string_view();
  if (!container.empty()) return {JobSource::kContainer, std::string(container), ""};
  return {};
}

}  // namespace

ControlGroupIdentity IdentityInControlGroups(std::string_view cgroup_file) {
  for (std::string_view line : Split(cgroup_file, '\n')) {
    const size_t controllers = line.find(':');
    const size_t path =
        controllers == std::string_view::npos ? controllers : line.find(':', controllers + 1);
    if (path == std::string_view::npos) continue;
    const ControlGroupIdentity identity = IdentityIn(Split(line.substr(path + 1), '/'));
    if (identity.source != JobSource::kLocal) return identity;
  }
  return {};
}

std::string FolderOfGroup(std::string_view cgroup_file) {
  const size_t line = cgroup_file.starts_with("0::/") ? 0 : cgroup_file.find("\n0::/");
  if (line == std::string_view::npos) return "";
  const size_t begin = cgroup_file.find('/', line);
  return "/sys/fs/cgroup" +
         std::string(cgroup_file.substr(begin, cgroup_file.find('\n', begin) - begin));
}

std::string OwnGroupOf(const ControlGroupIdentity& job, std::string_view cgroup_file) {
  const std::string folder = FolderOfGroup(cgroup_file);
  constexpr std::string_view root = "/sys/fs/cgroup";
  if (job.source == JobSource::kLocal || folder.empty()) return "";
  const ControlGroupIdentity named = IdentityIn(Split(After(root, folder), '/'));
  return named.source == job.source && named.job == job.job ? folder : "";
}

const char* NameOf(JobSource source) {
  constexpr const char* names[] = {"local", "slurm", "kubernetes", "container"};
  return names[static_cast<size_t>(source)];
}

}  // namespace spillway::agent
