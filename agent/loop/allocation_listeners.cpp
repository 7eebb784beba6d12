#include "agent/loop/allocation_listeners.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/loop/passed_socket.h"
#include "base/unique_fd.h"
#include "base/unix_socket.h"

namespace spillway::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "allocations";
// Whoever sees the folder is meant to connect.
constexpr unsigned kSocketMode = 0666;
// Containers' users go through their own folder, which a runtime mounts by its rights as root.
// Local users get no further than the folder above it.
constexpr mode_t kFolderMode = 0755, kParentMode = 0700;

constexpr char kRemedy[] = "remove it: the agent makes it anew";

// What an agent under another user has left, this one takes over if it may.
base::Status MakeOurs(int file, const std::string& folder, mode_t mode, const struct stat& facts) {
  if (facts.st_uid != geteuid() && geteuid() != 0)
    return base::Error{folder + " belongs to user " + std::to_string(facts.st_uid), "", kRemedy};
  if (facts.st_uid != geteuid() && fchown(file, geteuid(), getegid()) != 0)
    return base::ErrnoError("cannot take over " + folder, kRemedy);
  if ((facts.st_mode & 07777) == mode || fchmod(file, mode) == 0) return base::Ok();
  return base::ErrnoError("cannot set the mode of " + folder);
}

// `is_new`: this call has made it. The mode holds whatever this process's mask is.
base::Status MakeFolder(const std::string& folder, mode_t mode, bool* is_new) {
  *is_new = mkdir(folder.c_str(), 0700) == 0;
  if (!*is_new && errno != EEXIST) return base::ErrnoError("cannot make " + folder);
  const base::UniqueFd file(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat facts {};
  if (!file || fstat(file.get(), &facts) != 0)
    return base::ErrnoError("cannot use " + folder + " as a folder", kRemedy);
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return base::Error{"others than its owner can write in " + folder, "", kRemedy};
  return MakeOurs(file.get(), folder, mode, facts);
}

}  // namespace

base::Result<std::string> AllocationListeners::PathOf(const std::string& allocation,
                                                      const std::string& job_socket) {
  const fs::path jobs(job_socket);
  if (!jobs.is_absolute() || !jobs.parent_path().has_relative_path())
    return base::Error{"[agent] job_socket names no path in a folder",
                       "an allocation's socket is beside that folder"};
  const fs::path folder = jobs.parent_path().parent_path() / kFolder / allocation;
  const std::string path = folder / jobs.filename();
  if (base::UnixAddressOf(path).size > 0) return path;
  return base::Error{path + " is too long for a socket", "", "take a shorter name"};
}

void AllocationListeners::TakeOver(const Supervisor::File& file) {
  passed_on_[file.name.substr(kBegin.size())].Reset(file.file);
}

base::Result<const Listener*> AllocationListeners::Open(const std::string& allocation,
                                                        const std::string& path) {
  if (open_.count(allocation) > 0) return nullptr;
  const fs::path folder = fs::path(path).parent_path();
  bool is_new = false;
  if (base::Status made = MakeFolder(folder.parent_path(), kParentMode, &is_new); !made.ok())
    return made;
  base::Status opened = MakeFolder(folder, kFolderMode, &is_new);
  auto place = std::make_unique<Place>(
      Place{path, Listener(allocation, std::string(kBegin) + allocation, ++last_number_)});
  if (opened.ok()) opened = OpenPlace(*place);
  if (opened.ok()) return &(open_[allocation] = std::move(place))->listener;
  if (is_new) rmdir(folder.c_str());  // containers may have mounted an older one
  return opened;
}

base::Status AllocationListeners::OpenPlace(Place& place) {
  const std::string& allocation = place.listener.allocation();
  if (auto passed = passed_on_.extract(allocation);
      passed && AddressOf(passed.mapped().get()) == place.path) {
    base::Status taken =
        place.listener.TakeOver({passed.mapped().Take(), std::string(kBegin) + allocation});
    if (!taken.ok()) return taken;
  }
  return place.listener.Open(place.path, kSocketMode);
}

base::Status AllocationListeners::Close(const std::string& allocation) {
  const auto place = open_.extract(allocation);
  if (!place) return base::Ok();
  const std::string& path = place.mapped()->path;
  place.mapped()->listener.RemovePath(path);
  const std::string folder = fs::path(path).parent_path();
  if (rmdir(folder.c_str()) == 0 || errno == ENOENT) return base::Ok();
  return base::ErrnoError("cannot remove " + folder);
}

void AllocationListeners::RemovePaths() const {
  for (const auto& [allocation, place] : open_) place->listener.RemovePath(place->path);
}

const Listener* AllocationListeners::Find(uint64_t number) const {
  for (const auto& [allocation, place] : open_) {
    if (place->listener.number() == number) return &place->listener;
  }
  return nullptr;
}

std::vector<const Listener*> AllocationListeners::All() const {
  std::vector<const Listener*> all;
  for (const auto& [allocation, place] : open_) all.push_back(&place->listener);
  return all;
}

}  // namespace spillway::agent
