#include "agent/loop/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <vector>

#include "agent/config/config_fields.h"
#include "base/unique_fd.h"

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

// "key=value", for what is set.
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
  const auto [end, error] = std::from_chars(word.data() + equals + 1, word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return false;
  for (const TermsField& field : TermsFields()) {
    if (word.substr(0, equals) != field.key) continue;
    change.*field.place = value;
    return value >= field.least && value <= field.most;
  }
  return false;
}

// "limit=1 weight=2 : local-7@12", without the line's end.
bool TakeJob(std::string_view line, SavedState& state) {
  TermsChange change;
  while (!line.starts_with(": ")) {
    const size_t end = line.find(' ');
    if (end == line.npos || !TakeWord(line.substr(0, end), change)) return false;
    line.remove_prefix(end + 1);
  }
  return state.terms.emplace(line.substr(2), change).second;
}

std::string Failure(const std::string& what) { return what + ": " + strerror(errno); }

bool WriteText(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
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

SavedState LoadState(const std::string& path, std::string* problem) {
  const base::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    if (errno != ENOENT) *problem = Failure(path + " cannot be read");
    return {};
  }
  if (!IsOnlyOurs(file.get())) {
    *problem = path + " is not a file that only this user can write, and is ignored";
    return {};
  }
  std::string text;
  std::vector<char> piece(65536);
  ssize_t size = 0;
  while (text.size() <= kMostBytes && (size = read(file.get(), piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<size_t>(size));
  const std::optional<SavedState> state = size == 0 ? DecodeState(text) : std::nullopt;
  if (!state) *problem = path + " is not whole and is discarded: budgets that operators had set are lost";
  return state.value_or(SavedState{});
}

std::string SaveState(const std::string& path, const SavedState& state) {
  const std::string fresh = path + ".new";
  {
    unlink(fresh.c_str());  // an earlier agent's, or whoever's it is: nobody else has this one open
    const base::UniqueFd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return Failure(fresh);
    if (!WriteText(file.get(), EncodeState(state))) {
      const std::string failure = Failure(fresh);
      unlink(fresh.c_str());
      return failure;
    }
  }
  return rename(fresh.c_str(), path.c_str()) == 0 ? "" : Failure(path);
}

}  // namespace spillway::agent
