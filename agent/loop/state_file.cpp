#include "agent/loop/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "agent/config/config_fields.h"
#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr std::string_view kHead = "spillway-state 1\n";
constexpr std::string_view kDraining = "draining\n";
constexpr std::string_view kJob = "job ";
constexpr std::string_view kBoot = "boot ";
constexpr std::string_view kExpected = "expected ", kPart = "part ", kTotals = "totals ";
constexpr std::string_view kAllocation = "allocation ", kUser = "user ", kNamed = "named";
constexpr std::string_view kEnd = "end ";
constexpr size_t kMostBytes = size_t{16} << 20;

std::string SumOf(std::string_view text) {
  uint64_t sum = 0xcbf29ce484222325;
  for (const char c : text) sum = (sum ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return std::to_string(sum);
}

// "key=value" for each field that is set.
std::string WordsOf(TermsChange change) {
  std::string words;
  for (const TermsField& field : TermsFields()) {
    const std::optional<int64_t>& value = change.*field.place;
    if (value) words += std::string(field.key) + "=" + std::to_string(*value) + " ";
  }
  return words;
}

bool TakeWord(std::string_view word, TermsChange& change) {
  const size_t equals = word.find('=');
  if (equals == word.npos) return false;
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return false;
  for (const TermsField& field : TermsFields()) {
    if (word.substr(0, equals) != field.key) continue;
    change.*field.place = value;
    return value >= field.least && value <= field.most;
  }
  return false;
}

using NamedTerms = std::map<std::string, TermsChange>;

// "limit=1 weight=2 : local-7@12", without the newline.
std::optional<NamedTerms::value_type> TermsIn(std::string_view line) {
  TermsChange change;
  while (!line.starts_with(": ")) {
    const size_t end = line.find(' ');
    if (end == line.npos || !TakeWord(line.substr(0, end), change)) return std::nullopt;
    line.remove_prefix(end + 1);
  }
  return NamedTerms::value_type(line.substr(2), change);
}

bool TakeTerms(std::string_view line, NamedTerms& terms) {
  const auto one = TermsIn(line);
  return one && terms.insert(*one).second;
}

std::string LineOf(std::string_view kind, const NamedTerms::value_type& one) {
  return std::string(kind) + WordsOf(one.second) + ": " + one.first + "\n";
}

constexpr int64_t protocol::JobTotals::*kTotalsFields[] = {
    &protocol::JobTotals::peak_bytes,    &protocol::JobTotals::allocated_bytes,
    &protocol::JobTotals::to_host_bytes, &protocol::JobTotals::to_device_bytes,
    &protocol::JobTotals::stall_ns,      &protocol::JobTotals::refused_allocations};

// "1 2 3 4 5 6", with a blank at the end.
bool TakeTotals(std::string_view line, protocol::JobTotals& totals) {
  for (const auto field : kTotalsFields) {
    const auto [end, error] =
        std::from_chars(line.data(), line.data() + line.size(), totals.*field);
    if (error != std::errc() || end == line.data() + line.size() || *end != ' ') return false;
    line.remove_prefix(static_cast<size_t>(end - line.data()) + 1);
  }
  return line.empty();
}

std::string LinesOf(const std::string& key, const ExpectedJob& job) {
  std::string lines = LineOf(kExpected, {key, job.terms}) + std::string(kTotals);
  for (const auto field : kTotalsFields) lines += std::to_string(job.totals.*field) + " ";
  lines += "\n";
  for (const auto& part : job.parts) lines += LineOf(kPart, part);
  return lines;
}

std::string LinesOf(const std::string& name, const Allocation& allocation) {
  std::string lines = LineOf(kAllocation, {name, allocation.limits});
  if (allocation.is_named) lines += std::string(kNamed) + "\n";
  for (const std::string& job : allocation.jobs) lines += std::string(kUser) + job + "\n";
  return lines;
}

// What the lines of parts and users belong to.
struct Last {
  ExpectedJob* job = nullptr;
  Allocation* allocation = nullptr;
};

bool TakeLine(std::string_view line, SavedState& state, Last& last) {
  const auto after = [line](std::string_view kind) { return line.substr(kind.size()); };
  if (line.starts_with(kJob)) return TakeTerms(after(kJob), state.terms);
  if (line.starts_with(kBoot)) return state.boot = after(kBoot), true;
  if (line.starts_with(kExpected)) {
    const auto one = TermsIn(after(kExpected));
    if (!one || state.expected.count(one->first) != 0) return false;
    last.job = &state.expected[one->first];
    last.job->terms = one->second;
    last.job->totals.job = one->first;
    return true;
  }
  if (line.starts_with(kAllocation)) {
    const auto one = TermsIn(after(kAllocation));
    if (!one || state.allocations.count(one->first) != 0) return false;
    last.allocation = &state.allocations[one->first];
    last.allocation->limits = one->second;
    return true;
  }
  if (line == kNamed)
    return last.allocation != nullptr && std::exchange(last.allocation->is_named, true) == false;
  if (line.starts_with(kUser))
    return last.allocation != nullptr &&
           last.allocation->jobs.insert(std::string(after(kUser))).second;
  if (last.job == nullptr) return false;
  if (line.starts_with(kTotals)) return TakeTotals(after(kTotals), last.job->totals);
  return line.starts_with(kPart) && TakeTerms(after(kPart), last.job->parts);
}

}  // namespace

bool IsOnlyOurs(int file) {
  struct stat facts;
  return fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string EncodeState(const SavedState& state) {
  std::string text(kHead);
  if (state.draining) text += kDraining;
  for (const auto& one : state.terms) text += LineOf(kJob, one);
  if (!state.expected.empty() || !state.allocations.empty())
    text += std::string(kBoot) + state.boot + "\n";
  for (const auto& [key, job] : state.expected) text += LinesOf(key, job);
  for (const auto& [name, allocation] : state.allocations) text += LinesOf(name, allocation);
  return text + std::string(kEnd) + SumOf(text) + "\n";
}

std::optional<SavedState> DecodeState(std::string_view text) {
  const size_t end = text.rfind(kEnd);
  if (end == text.npos || text.substr(end + kEnd.size()) != SumOf(text.substr(0, end)) + "\n")
    return std::nullopt;
  text = text.substr(0, end);
  if (!text.starts_with(kHead)) return std::nullopt;
  text.remove_prefix(kHead.size());
  SavedState state;
  state.draining = text.starts_with(kDraining);
  if (state.draining) text.remove_prefix(kDraining.size());
  Last last;
  while (!text.empty()) {
    const size_t line_end = text.find('\n');
    if (line_end == text.npos || !TakeLine(text.substr(0, line_end), state, last))
      return std::nullopt;
    text.remove_prefix(line_end + 1);
  }
  return state;
}

base::Result<SavedState> LoadState(const std::string& path) {
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return SavedState{};
  if (!file) return base::ErrnoError(path + " cannot be read");
  if (!IsOnlyOurs(file.get()))
    return base::Error{path + " is not a file that only this user can write, and is ignored"};
  const base::Result<std::string> text = base::ReadRest(file.get(), path, kMostBytes);
  if (std::optional<SavedState> state = text ? DecodeState(*text) : std::nullopt)
    return *std::move(state);
  return base::Error{path +
                     " is not whole and is discarded: budgets that operators had set are lost"};
}

base::Status SaveState(const std::string& path, const SavedState& state) {
  return base::ReplaceFile(path, EncodeState(state));
}

}  // namespace spillway::agent
