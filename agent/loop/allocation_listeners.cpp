#include "agent/loop/allocation_listeners.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "agent/loop/passed_socket.h"
#include "base/unix_socket.h"

namespace spillway::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "allocations";
// Whoever sees the folder is meant to connect.
constexpr unsigned kSocketMode = 0666;
constexpr mode_t kFolderMode = 0755;

bool IsOnlyOurs(const std::string& folder) {
  struct stat facts {};
  return lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) &&
         (facts.st_uid == geteuid() || facts.st_uid == 0) &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Containers' users go through it, whatever this process's mask is.
base::Status MakeFolder(const std::string& folder) {
  if (mkdir(folder.c_str(), kFolderMode) == 0) {
    if (chmod(folder.c_str(), kFolderMode) == 0) return base::Ok();
    return base::ErrnoError("cannot set the mode of " + folder);
  }
  if (errno != EEXIST) return base::ErrnoError("cannot make " + folder);
  if (IsOnlyOurs(folder)) return base::Ok();
  return base::Error{folder + " is no folder that only the agent's user and root can write"};
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
  for (const fs::path& one : {folder.parent_path(), folder}) {
    if (base::Status made = MakeFolder(one); !made.ok()) return made;
  }
  auto place = std::make_unique<Place>(
      Place{path, Listener(allocation, std::string(kBegin) + allocation, ++last_number_)});
  if (auto passed = passed_on_.extract(allocation);
      passed && AddressOf(passed.mapped().get()) == path) {
    base::Status taken =
        place->listener.TakeOver({passed.mapped().Take(), std::string(kBegin) + allocation});
    if (!taken.ok()) return taken;
  }
  if (base::Status opened = place->listener.Open(path, kSocketMode); !opened.ok()) {
    rmdir(folder.c_str());
    return opened;
  }
  return &(open_[allocation] = std::move(place))->listener;
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
