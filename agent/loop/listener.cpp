#include "agent/loop/listener.h"

#include <unistd.h>

#include <filesystem>

#include "protocol/socket_channel.h"

namespace spillway::agent {
namespace {

void MakeFolderOf(const std::string& path, Entrance entrance) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::path(path).parent_path();
  const bool is_new = fs::create_directories(folder, ignored);
  if (!is_new || entrance != Entrance::kJobsOnly) return;
  // Whatever the process's mask is: containers' users go through this folder.
  fs::permissions(folder,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  ignored);
}

}  // namespace

base::Status Listener::TakeOver(const Supervisor::File& file) {
  if (file_)
    return base::Error{std::string("two sockets were passed on for ") +
                           (entrance_ == Entrance::kAll ? "[agent] socket" : "[agent] job_socket"),
                       "the agent listens on one", "see: systemctl list-sockets 'spillwayd*'"};
  file_.Reset(file.file);
  is_own_ = file.name == own_name_;
  return base::Ok();
}

base::Status Listener::Open(const std::string& path, unsigned mode) {
  if (!file_) {
    MakeFolderOf(path, entrance_);
    file_ = protocol::ListenOn(path, mode);
  }
  if (!file_) return base::ErrnoError("cannot listen on " + path);
  if (protocol::IsSeqPacket(file())) return base::Ok();
  return base::Error{"the socket that was passed on for " + path + " is not of type SEQPACKET", "",
                     "write ListenSequentialPacket= in its unit"};
}

void Listener::RemovePath(const std::string& path) const {
  if (is_open() && is_own_) unlink(path.c_str());
}

}  // namespace spillway::agent
