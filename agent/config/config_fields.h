// The one list of configuration settings: name, kind, place in Config, and meaning.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "agent/config/config.h"
#include "base/result.h"

namespace spillway::agent {

enum class FieldKind : uint8_t { kText, kFlag, kNumber, kBytes, kNumbers, kSize, kTurns };

using FieldPlace =
    std::variant<std::string*, bool*, int64_t*, std::optional<int64_t>*, std::vector<int64_t>*>;

struct ConfigField {
  const char* table;
  const char* key;
  FieldKind kind;
  int64_t least, most;  // of a number or of bytes
  bool needs_restart;
  const char* meaning;
  FieldPlace (*place)(Config&);
  base::Status (*check)(const std::string& text) = nullptr;  // of a text
};

struct TermsField {
  const char* key;
  FieldKind kind;
  int64_t least, most;
  const char* meaning;
  std::optional<int64_t> TermsChange::*place;
};

struct OwnerField {
  const char* key;
  FieldKind kind;
  int64_t least, most;
  const char* meaning;
  std::optional<int64_t> OwnerChange::*place;
};

// [agent], [http], [devices], [native_limits], [host], [link], [planning], [arbiter], [turns],
// [limits]
std::span<const ConfigField> ConfigFields();
std::span<const TermsField> TermsFields();
std::span<const OwnerField> OwnerFields();

// "12GiB", "500 MB", "1.5G", "4096" (base/size_text.h), in bytes. Nullopt: not a size.
std::optional<int64_t> ParseBytes(std::string_view text);
// Also "25%", up to 100%.
std::optional<int64_t> ParseSizeOrShare(std::string_view text);
std::string ShowSize(int64_t size);

// "never", "auto" and "always", as numbers of TurnsChoice.
std::optional<int64_t> ParseTurns(std::string_view text);
const char* ShowTurns(int64_t turns);

// The known name nearest to a mistyped one; empty: none is near.
std::string Nearest(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace spillway::agent
