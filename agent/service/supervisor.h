// What systemd (or whoever supervises the agent) wants to hear and gives: readiness, reloads, the watchdog's pings, sockets that it opened for us.
//
// The protocols are documented in sd_notify(3) and sd_listen_fds(3) and take a datagram each, so no library is needed. Without
// systemd (no NOTIFY_SOCKET) everything here does nothing. One thread.
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

  struct Socket {
    int file;
    std::string name;  // FileDescriptorName= of the unit
  };
  // Handed over once; the caller's to close.
  std::vector<Socket> TakeSockets();

 private:
  void Say(const std::string& text);

  std::string address_;
  int64_t watchdog_interval_ns_ = 0;
};

}  // namespace spillway::agent
