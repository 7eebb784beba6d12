// What systemd (or whoever supervises the agent) wants to hear and gives: readiness, reloads, the
// watchdog's pings, sockets that it opened for us.
//
// The protocols are documented in sd_notify(3) and sd_listen_fds(3) and take a datagram each, so no
// library is needed. Without systemd (no NOTIFY_SOCKET) everything here does nothing. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::agent {

class Supervisor {
 public:
  Supervisor();  // reads the environment

  void Ready(const std::string& status) { Say("READY=1\nSTATUS=" + status); }
  void Reloading(int64_t monotonic_us);
  void Stopping() { Say("STOPPING=1"); }
  void Alive() { Say("WATCHDOG=1"); }
  // How often Alive is to be said; 0: never.
  int64_t watchdog_interval_ns() const { return watchdog_interval_ns_; }

  struct File {
    int file;
    std::string name;  // FileDescriptorName= of the unit, or as it was kept
  };
  // Sockets, and what an earlier agent kept. Handed over once; the caller's to close.
  std::vector<File> TakeFiles();

  // From now on the file outlives this process, under a name of its own, until it is dropped.
  // Nothing without systemd. False: it has no time to listen, try again.
  bool Keep(const std::string& name, int file);
  bool Drop(const std::string& name);
  // Makes this process run the program anew, which takes the files by TakeFiles. Returns only when
  // that fails.
  static void RunAnew(char* const* arguments, const std::vector<File>& files);

 private:
  void Say(const std::string& text) { Send(text, -1, 0); }
  bool Send(const std::string& text, int file, int flags);

  std::string address_;
  int64_t watchdog_interval_ns_ = 0;
};

}  // namespace spillway::agent
