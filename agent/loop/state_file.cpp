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

// "limit=1 weight=2 : local-7@12", without the newline.
bool TakeJob(std::string_view line, SavedState& state) {
  TermsChange change;
  while (!line.starts_with(": ")) {
    const size_t end = line.find(' ');
    if (end == line.npos || !TakeWord(line.substr(0, end), change)) return false;
    line.remove_prefix(end + 1);
  }
  return state.terms.emplace(line.substr(2), change).second;
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
  for (const auto& [key, change] : state.terms)
    text += std::string(kJob) + WordsOf(change) + ": " + key + "\n";
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
  while (!text.empty()) {
    const size_t line_end = text.find('\n');
    if (line_end == text.npos || !text.starts_with(kJob)) return std::nullopt;
    if (!TakeJob(text.substr(kJob.size(), line_end - kJob.size()), state)) return std::nullopt;
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
