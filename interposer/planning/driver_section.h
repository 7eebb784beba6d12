// Tells threads of ours whether they may still call the driver.
//
// From exit() on the driver may shut down at any moment. A thread of ours creates a DriverSection
// before each driver call and asks may_call(). The exit first bars new sections, then waits for
// open ones, for at most a second.
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

// Only the first call has an effect. A forked child has no threads to wait for.
void WatchExit();
bool ThreadsMustEnd();

}  // namespace spillway::interposer
