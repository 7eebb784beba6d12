// A folder of files named by key, for the plan stores of the agent and of stand-alone jobs.
//
// One thread at a time; several processes may share a folder.
//
// Invariants
//  1. A file appears whole or not at all. A killed process's unfinished file is never read.
//  2. A file's modification time is its last write or use, in nanoseconds; file systems tick
//     coarser.
//  3. A read deletes a file that is too long, not regular or damaged, and returns an error.
//  4. Links are never followed.
#pragma once

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/file.h"

namespace spillway::base {

class FileStore {
 public:
  struct Rules {
    std::string ending;               // suffix of every file name, such as ".plan"
    std::size_t most_file_bytes = 0;  // a longer file counts as damaged
    bool sync = false;
  };
  using Key = std::span<const std::uint64_t>;
  struct Entry {
    std::string name;
    std::int64_t size_bytes = 0;
    std::int64_t used_ns = 0;  // since 1970
  };

  // The folder must exist before the first Write.
  FileStore(std::string folder, Rules rules)
      : folder_(std::move(folder)), rules_(std::move(rules)) {}

  const std::string& folder() const { return folder_; }
  std::string PathOf(const std::string& name) const { return folder_ + "/" + name; }

  std::string NameOf(Key key) const { return Joined(key) + rules_.ending; }
  static std::string PrefixOf(Key key) { return Joined(key) + "-"; }
  // False: `name` names no key of this length.
  bool KeyOf(const std::string& name, std::span<std::uint64_t> key) const {
    std::size_t at = 0;
    for (std::uint64_t& number : key) {
      if (at + kDigits > name.size()) return false;
      number = strtoull(name.substr(at, kDigits).c_str(), nullptr, 16);
      at += kDigits + 1;
    }
    return NameOf(key) == name;
  }

  std::vector<Entry> List(std::string_view prefix = "") const {
    std::vector<Entry> entries;
    for (const std::string& name : Names()) {
      struct stat facts;
      if (!name.starts_with(prefix) || !name.ends_with(rules_.ending)) continue;
      if (lstat(PathOf(name).c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
      entries.push_back({name, facts.st_size, NanosOf(facts.st_mtim)});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return a.used_ns != b.used_ns ? a.used_ns > b.used_ns : a.name < b.name;
    });
    return entries;
  }

  // `parse` maps std::string to a Result; an error deletes the file.
  template <class Parse>
  auto Read(const std::string& name, Parse parse) const -> decltype(parse(std::string())) {
    Result<std::string> bytes =
        ReadFile(PathOf(name), {.most_bytes = rules_.most_file_bytes, .only_regular = true});
    using Parsed = decltype(parse(std::string()));
    Parsed parsed = bytes ? parse(*std::move(bytes)) : Parsed(Error{"it cannot be read"});
    if (parsed) return parsed;
    Remove(name);
    return Error{PathOf(name) + " is discarded", parsed.text()};
  }

  Status Write(const std::string& name, std::string_view bytes) const {
    const std::string beside = kBeside + std::to_string(getpid());
    Status written =
        ReplaceFile(PathOf(name), bytes, {.sync = rules_.sync, .beside = beside.c_str()});
    if (written.ok()) MarkUsed(name);
    return written;
  }

  // Returns the new modification time.
  std::int64_t MarkUsed(const std::string& name) const {
    timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const timespec times[] = {now, now};
    utimensat(AT_FDCWD, PathOf(name).c_str(), times, AT_SYMLINK_NOFOLLOW);
    return NanosOf(now);
  }

  void Remove(const std::string& name) const { unlink(PathOf(name).c_str()); }

  // Until the rest take at most `most_bytes`.
  void RemoveLongestUnused(std::int64_t most_bytes) const {
    std::int64_t total_bytes = 0;
    for (const Entry& entry : List()) {
      total_bytes += entry.size_bytes;
      if (total_bytes > most_bytes) Remove(entry.name);
    }
  }

  // Their writers were killed.
  void RemoveUnfinished(std::int64_t older_than_ns) const {
    const std::int64_t now_ns = RealtimeNs();
    for (const std::string& name : Names()) {
      struct stat facts;
      const bool is_unfinished = name.find(rules_.ending + ".") != std::string::npos;
      if (is_unfinished && lstat(PathOf(name).c_str(), &facts) == 0 &&
          now_ns - NanosOf(facts.st_mtim) >= older_than_ns)
        Remove(name);
    }
  }

 private:
  static constexpr char kBeside[] = ".tmp";
  static constexpr std::size_t kDigits = 16;

  static std::string Joined(Key key) {
    std::string name;
    for (const std::uint64_t number : key) {
      char digits[kDigits + 1];
      snprintf(digits, sizeof digits, "%016" PRIx64, number);
      name += (name.empty() ? "" : "-") + std::string(digits);
    }
    return name;
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* const open = opendir(folder_.c_str());
    if (!open) return names;
    while (const dirent* entry = readdir(open)) names.emplace_back(entry->d_name);
    closedir(open);
    return names;
  }

  std::string folder_;
  Rules rules_;
};

}  // namespace spillway::base
