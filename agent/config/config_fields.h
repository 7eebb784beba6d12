// The one list of what can be set in the configuration: name, kind, place in Config, and what it is
// good for.
//
// Reading, checking, showing and comparing configurations all go through it.
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "agent/config/config.h"
#include "base/result.h"

namespace spillway::agent {

// A size is bytes, or a share of the whole (config.h).
enum class FieldKind : uint8_t { kText, kFlag, kNumber, kBytes, kNumbers, kSize };

// Where a value lives.
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

// [agent], [devices], [host], [link], [planning], [arbiter], [limits]
std::span<const ConfigField> ConfigFields();
// What [defaults] and each [[rule]] may say of a job.
std::span<const TermsField> TermsFields();
// What each [[user]] and [[account]] may say of all its jobs together.
std::span<const OwnerField> OwnerFields();

// "12GiB", "500 MB", "1.5G", "4096" (base/size_text.h): bytes; nothing when it is no size.
std::optional<int64_t> ParseBytes(std::string_view text);
// "25%" too, up to the whole.
std::optional<int64_t> ParseSizeOrShare(std::string_view text);
std::string ShowSize(int64_t size);

// The name nearest to a mistyped one; empty when none is near.
std::string Nearest(std::string_view wrong, const std::vector<std::string>& names);

}  // namespace spillway::agent
