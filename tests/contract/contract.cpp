#include "tests/contract/contract.h"

#include <unistd.h>

#include <cmath>
#include <mutex>

#include "tests/contract/report_pipe.h"

namespace spillway::contract {
namespace {

// One record a line: a letter, a space, the text with its line breaks replaced.
void Send(char kind, std::string text) {
  static std::mutex mutex;
  for (char& c : text)
    if (c == '\n') c = ' ';
  const std::string record = std::string(1, kind) + ' ' + text + '\n';
  std::lock_guard<std::mutex> lock(mutex);
  std::size_t sent = 0;
  while (sent < record.size()) {
    const ssize_t written = write(kReportFd, record.data() + sent, record.size() - sent);
    if (written <= 0) return;
    sent += static_cast<std::size_t>(written);
  }
}

const char* BaseName(const char* path) {
  const char* name = path;
  for (const char* c = path; *c; ++c)
    if (*c == '/') name = c + 1;
  return name;
}

}  // namespace

Registration::Registration(const Case& rule) { AllCases().push_back(rule); }

std::vector<Case>& AllCases() {
  static std::vector<Case> cases;
  return cases;
}

void ReportFailure(const char* file, int line, const std::string& text) {
  Send(kFailureRecord, std::string(BaseName(file)) + ":" + std::to_string(line) + ": " + text);
}

void ReportObservation(const std::string& key, const std::string& value) {
  Send(kObservationRecord, key + " = " + value);
}

void ReportFigure(const std::string& key, double value, const char* unit) {
  if (!std::isfinite(value)) return ReportFailure("figure", 0, key + " is no number");
  std::ostringstream text;
  text << key << '\t' << value << '\t' << unit;
  Send(kFigureRecord, text.str());
}

void ReportSimulatedDriver() { Send(kSimulatedRecord, "driver"); }

void Skip(const std::string& reason) {
  Send(kSkipRecord, reason);
  throw Abandoned();
}

bool CheckTrue(const char* file, int line, const char* expression, bool value) {
  if (!value) ReportFailure(file, line, std::string(expression) + " is false");
  return value;
}

std::string Show(CUresult value) {
  const char* name = nullptr;
  if (cuGetErrorName(value, &name) == CUDA_SUCCESS && name) return name;
  return "CUresult " + std::to_string(static_cast<int>(value));
}

std::string Show(bool value) { return value ? "true" : "false"; }

}  // namespace spillway::contract
