// When threads of ours may still call the driver.
//
// Once the process has come to exit() the driver may shut down at any moment. A thread of ours that
// is about to call it makes a DriverSection first and looks whether it still may; exit says that it
// has begun and then waits, for a second at most, for the sections that there are. Any thread;
// WatchExit before the first section.
#pragma once

namespace spillway::interposer {

class DriverSection {
 public:
  DriverSection();
  ~DriverSection();
  DriverSection(const DriverSection&) = delete;
  DriverSection& operator=(const DriverSection&) = delete;
  bool may_call() const { return may_call_; }

 private:
  bool may_call_;
};

// Further calls do nothing. A forked child has no threads to wait for.
void WatchExit();
bool ThreadsMustEnd();

}  // namespace spillway::interposer
