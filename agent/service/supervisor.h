// The agent's side of systemd's protocols, sd_notify(3) and sd_listen_fds(3). Without NOTIFY_SOCKET
// nothing is sent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

class Supervisor {
 public:
  Supervisor();

  void Ready(const std::string& status) { Notify("READY=1\nSTATUS=" + status); }
  void Reloading(int64_t monotonic_us);
  void Stopping() { Notify("STOPPING=1"); }
  void Alive() { Notify("WATCHDOG=1"); }
  // How often to call Alive; 0: never.
  int64_t watchdog_interval_ns() const { return watchdog_interval_ns_; }

  struct File {
    int file;
    std::string name;  // the unit's FileDescriptorName=, or as it was kept
  };
  // Sockets, and an earlier agent's kept files. Returned once; the caller closes them.
  std::vector<File> TakeFiles();

  // Stores the file beyond this process, under a unique name, until Drop. No effect without
  // systemd. False: systemd is busy, try again.
  bool Keep(const std::string& name, int file);
  bool Drop(const std::string& name);
  static void Reexecute(char* const* arguments, const std::vector<File>& files);

 private:
  void Notify(const std::string& text) { Send(text, -1, 0); }
  bool Send(const std::string& text, int file, int flags);

  std::string address_;
  int64_t watchdog_interval_ns_ = 0;
};

}  // namespace spillway::agent
