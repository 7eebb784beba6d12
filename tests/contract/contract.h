// A one-page harness that states rules of the CUDA driver as small cases, each in a child process
// of its own.
//
// Used by: the cases_*.cpp files (state rules), contract_main.cpp (runs them). GoogleTest is
// missing on some GPU machines and cannot outlive a sticky error.
// Threads: a case runs on the child's only thread; threads that the case joins may use EXPECT_*.
//
// Invariants
//
// 1. The parent never calls CUDA, so every child initialises the driver afresh.
// 2. A failed EXPECT_* is recorded and the case continues; a failed ASSERT_* abandons it;
//    SKIP_UNLESS ends it without a verdict.
// 3. OBSERVE never fails a case: it records the driver's behaviour where its documents leave that
//    open.
// 4. Every case names the source of its rule.
// 5. A case that compares free memory or durations is a CONTRACT_ALONE: no other case runs beside
//    it.
#pragma once

#include <cuda.h>

#include <sstream>
#include <string>
#include <vector>

namespace spillway::contract {

enum class Company { kAny, kAlone };

struct Case {
  const char* group;
  const char* name;
  const char* source;
  Company company;
  void (*body)();

  std::string FullName() const { return std::string(group) + "." + name; }
};

class Registration {
 public:
  explicit Registration(const Case& rule);
};

std::vector<Case>& AllCases();

// The cause is already reported.
struct Abandoned {};

void ReportFailure(const char* file, int line, const std::string& text);
void ReportObservation(const std::string& key, const std::string& value);
// A measured number with its unit, such as "us" or "GB/s".
void ReportFigure(const std::string& key, double value, const char* unit);
void ReportSimulatedDriver();
[[noreturn]] void Skip(const std::string& reason);

std::string Show(CUresult value);
std::string Show(bool value);
template <typename T>
std::string Show(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// If the two differ, also reports both.
template <typename A, typename B>
bool CheckEqual(const char* file, int line, const char* expression, const A& actual,
                const B& expected) {
  if (actual == expected) return true;
  ReportFailure(file, line,
                std::string(expression) + " is " + Show(actual) + ", expected " + Show(expected));
  return false;
}

bool CheckTrue(const char* file, int line, const char* expression, bool value);

}  // namespace spillway::contract

#define SPILLWAY_CASE(group, name, source, company)                                        \
  static void Contract_##group##_##name();                                                 \
  static const ::spillway::contract::Registration registration_##group##_##name(           \
      {#group, #name, source, ::spillway::contract::company, &Contract_##group##_##name}); \
  static void Contract_##group##_##name()
#define CONTRACT(group, name, source) SPILLWAY_CASE(group, name, source, Company::kAny)
#define CONTRACT_ALONE(group, name, source) SPILLWAY_CASE(group, name, source, Company::kAlone)

#define EXPECT_EQ(actual, expected) \
  ::spillway::contract::CheckEqual(__FILE__, __LINE__, #actual, (actual), (expected))
#define EXPECT_TRUE(condition) \
  ::spillway::contract::CheckTrue(__FILE__, __LINE__, #condition, (condition))
#define EXPECT_OK(call) EXPECT_EQ(call, CUDA_SUCCESS)
#define ASSERT_EQ(actual, expected) \
  if (!EXPECT_EQ(actual, expected)) throw ::spillway::contract::Abandoned()
#define ASSERT_TRUE(condition) \
  if (!EXPECT_TRUE(condition)) throw ::spillway::contract::Abandoned()
#define ASSERT_OK(call) ASSERT_EQ(call, CUDA_SUCCESS)
#define SKIP_UNLESS(condition, reason) \
  if (!(condition)) ::spillway::contract::Skip(reason)
#define OBSERVE(key, value) \
  ::spillway::contract::ReportObservation(key, ::spillway::contract::Show(value))
