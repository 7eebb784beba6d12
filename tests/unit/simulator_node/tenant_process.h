// Tenants as processes of their own on one simulated machine (tenant.cpp), for tests.
//
// One thread. A machine and its file live as long as the test; a tenant still running is killed.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace spillway::test {

class TenantProcess {
 public:
  TenantProcess(pid_t pid, int to, int from) : pid_(pid), to_(to), from_(from) {}
  TenantProcess(TenantProcess&& other) noexcept;
  TenantProcess& operator=(TenantProcess&&) = delete;
  ~TenantProcess();

  pid_t pid() const { return pid_; }
  // The next printed line; empty after its end.
  std::string Line();
  // Whether it prints more, or ends, within that time.
  bool HasLineWithin(int milliseconds) const;
  void Continue();
  void Signal(int signal);
  // Waits for its end; returns the remaining lines.
  std::vector<std::string> Rest();

 private:
  pid_t pid_;
  int to_;
  int from_;
};

// The number after "time " in the last such line.
long long TimeOf(const std::vector<std::string>& lines);
// From the first such line to the last.
long long ElapsedIn(const std::vector<std::string>& lines);

class TestMachine {
 public:
  explicit TestMachine(long long capacity_mib = 1024);
  ~TestMachine();
  TestMachine(const TestMachine&) = delete;
  TestMachine& operator=(const TestMachine&) = delete;

  // `slot`: "1/2", or empty.
  TenantProcess Start(const std::string& slot, const std::vector<std::string>& words) const;
  TenantProcess StartWithCapacity(long long capacity_mib,
                                  const std::vector<std::string>& words) const;
  nlohmann::json Statistics() const;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const long long capacity_mib_;
};

std::vector<std::string> RunAlone(const std::vector<std::string>& words);

}  // namespace spillway::test
