#include "agent/pool/spill_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

namespace spillway::agent {
namespace {

bool IsInMemory(int folder) {
  struct statfs facts {};
  return fstatfs(folder, &facts) == 0 &&
         (facts.f_type == TMPFS_MAGIC || facts.f_type == RAMFS_MAGIC);
}

// O_EXCL: nobody can give the file a name later.
base::UniqueFd OpenNameless(int folder, int flags) {
  return base::UniqueFd(openat(folder, ".", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC | flags, 0600));
}

// On file systems without nameless files.
base::UniqueFd OpenAndUnlink(int folder, int flags) {
  const std::string name = ".spillway-" + std::to_string(getpid());
  unlinkat(folder, name.c_str(), 0);
  base::UniqueFd file(openat(folder, name.c_str(),
                             O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC | flags, 0600));
  if (file) unlinkat(folder, name.c_str(), 0);
  return file;
}

base::UniqueFd OpenFile(int folder, int flags) {
  base::UniqueFd file = OpenNameless(folder, flags);
  const bool has_none = !file && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT);
  return has_none ? OpenAndUnlink(folder, flags) : std::move(file);
}

}  // namespace

base::Result<SpillFolder> SpillFolder::Open(const std::string& path, InMemory in_memory) {
  base::UniqueFd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat facts {};
  if (!folder || fstat(folder.get(), &facts) != 0) return base::ErrnoError(path);
  if (facts.st_uid != 0 && facts.st_uid != geteuid())
    return base::Error{path, "it belongs to another user"};
  if ((facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return base::Error{path, "others may write there", "chmod go-w " + path};
  if (in_memory == InMemory::kRefused && IsInMemory(folder.get()))
    return base::Error{path, "it lies in memory", "name a folder on a disk"};
  return SpillFolder(path, std::move(folder));
}

base::Result<base::UniqueFd> SpillFolder::NewFile(int64_t size_bytes) const {
  base::UniqueFd file = OpenFile(folder_.get(), O_DIRECT);
  if (!file && errno == EINVAL) file = OpenFile(folder_.get(), 0);
  if (!file) return base::ErrnoError("cannot make a file in " + path_);
  // Unlike posix_fallocate, this never writes where the file system cannot reserve.
  if (fallocate(file.get(), 0, 0, size_bytes) != 0)
    return base::ErrnoError("cannot reserve space in " + path_);
  return file;
}

}  // namespace spillway::agent
