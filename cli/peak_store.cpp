#include "cli/peak_store.h"

#include <charconv>
#include <cstdio>

#include "cli/files.h"

namespace spillway::cli {
namespace {

// FNV-1a with 128 bits: needs no library, and chance collisions are negligible.
class Fnv128 {
 public:
  void Add(const std::string& text) {
    for (unsigned char c : text) AddByte(c);
    AddByte(0);  // separates strings: {"ab", "c"} differs from {"a", "bc"}
  }

  std::string Hex() const {
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx",
                  static_cast<unsigned long long>(state_ >> 64),
                  static_cast<unsigned long long>(state_));
    return text;
  }

 private:
  using Word = unsigned __int128;

  void AddByte(unsigned char byte) { state_ = (state_ ^ byte) * kPrime; }

  static constexpr Word kPrime = (Word{1} << 88) + 0x13b;
  Word state_ = (Word{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
};

}  // namespace

std::optional<std::string> StateFolder(const std::string& name) {
  const std::string state = EnvironmentValue("XDG_STATE_HOME");
  // The XDG base directory specification ignores relative paths.
  if (!state.empty() && state.front() == '/') return state + "/spillway/" + name;
  const std::string home = EnvironmentValue("HOME");
  if (home.empty() || home.front() != '/') return std::nullopt;
  return home + "/.local/state/spillway/" + name;
}

std::optional<std::string> PeakFolder() { return StateFolder("peaks"); }

std::string PeakKey(const std::string& program_path, const std::vector<std::string>& arguments,
                    const std::string& profile) {
  Fnv128 hash;
  hash.Add(profile);
  hash.Add(program_path);
  for (const std::string& argument : arguments) hash.Add(argument);
  return hash.Hex();
}

std::optional<std::uint64_t> ReadPeakBytes(const std::string& peak_file) {
  const std::optional<std::string> line = ReadFirstLine(peak_file);
  if (!line) return std::nullopt;
  std::uint64_t peak_bytes = 0;
  const char* end = line->data() + line->size();
  const auto [parsed, error] = std::from_chars(line->data(), end, peak_bytes);
  if (error != std::errc() || parsed != end || peak_bytes == 0) return std::nullopt;
  return peak_bytes;
}

}  // namespace spillway::cli
