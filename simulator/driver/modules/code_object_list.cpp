#include "simulator/driver/modules/code_object_list.h"

#include <unordered_map>

#include "base/code_object.h"

namespace spillway::simulator {
namespace {

using base::ByteView;
using base::CodeObject;
using base::CodeSection;
using base::CodeSymbol;

constexpr std::string_view kInfoPrefix = ".nv.info.";
constexpr unsigned char kEntryMark = 0x10;  // in a symbol's `other`: a kernel

// Attributes: a byte for the form, one for the name, and a length where the form has a payload.
constexpr std::uint8_t kWithPayload = 4;
constexpr std::uint8_t kParameter = 0x17;       // EIATTR_KPARAM_INFO
constexpr std::uint8_t kLargeParameter = 0x45;  // EIATTR_KPARAM_INFO_V2
constexpr std::size_t kParameterBytes = 12;

struct Parameter {
  std::uint16_t ordinal;
  KernelParameter place;
};

// Index, ordinal and offset. The last word holds the size: in the older form in its upper 14 bits.
Parameter ParameterOf(std::uint8_t attribute, ByteView payload) {
  const std::uint32_t size_bytes = attribute == kLargeParameter
                                       ? payload.Read<std::uint16_t>(8)
                                       : payload.Read<std::uint32_t>(8) >> 18;
  return {payload.Read<std::uint16_t>(4), {payload.Read<std::uint16_t>(6), size_bytes}};
}

bool Place(const std::vector<Parameter>& found, std::vector<KernelParameter>& parameters) {
  parameters.assign(found.size(), {0, 0});
  for (const Parameter& parameter : found) {
    const KernelParameter& place = parameter.place;
    if (parameter.ordinal >= found.size() || place.size_bytes == 0) return false;
    if (place.offset_bytes + place.size_bytes > kMostParameterBytes) return false;
    if (parameters[parameter.ordinal].size_bytes != 0) return false;
    parameters[parameter.ordinal] = place;
  }
  return true;
}

bool ListParameters(ByteView info, std::vector<KernelParameter>& parameters) {
  std::vector<Parameter> found;
  for (std::size_t at = 0; at < info.size();) {
    const auto form = info.Read<std::uint8_t>(at), attribute = info.Read<std::uint8_t>(at + 1);
    const std::size_t bytes = form == kWithPayload ? info.Read<std::uint16_t>(at + 2) : 0;
    if (!info.Holds(at, 4 + bytes)) return false;
    if (attribute == kParameter || attribute == kLargeParameter) {
      if (bytes != kParameterBytes) return false;
      found.push_back(ParameterOf(attribute, info.Part(at + 4, bytes)));
    }
    at += 4 + bytes;
  }
  return Place(found, parameters);
}

bool HoldsVariables(std::string_view section) {
  return section.starts_with(".nv.global") || section == ".nv.constant3";
}

class CodeObjectLister {
 public:
  explicit CodeObjectLister(ByteView file) : object_(file) {
    for (std::size_t i = 0; i < object_.section_count(); ++i) {
      const CodeSection section = object_.Section(i);
      if (section.name.starts_with(kInfoPrefix))
        infos_.emplace(section.name.substr(kInfoPrefix.size()), section.bytes);
      holds_variables_.push_back(HoldsVariables(section.name));
    }
  }

  std::optional<ModuleList> List() {
    if (!object_.IsWhole()) return std::nullopt;
    const bool is_readable = object_.ForSymbols([this](const CodeSymbol& symbol) { Add(symbol); });
    if (!is_readable || has_bad_kernel_) return std::nullopt;
    return std::move(list_);
  }

 private:
  void Add(const CodeSymbol& symbol) {
    const bool is_defined = symbol.section != SHN_UNDEF && symbol.section < holds_variables_.size();
    if (!is_defined || symbol.name.empty()) return;
    if (symbol.type == STT_FUNC && (symbol.other & kEntryMark) != 0)
      AddKernel(symbol.name);
    else if (symbol.type == STT_OBJECT && holds_variables_[symbol.section])
      list_.variables.push_back({std::string(symbol.name), symbol.size_bytes});
  }
  void AddKernel(std::string_view name) {
    ListedKernel kernel{std::string(name), {}};
    const auto info = infos_.find(name);
    if (info != infos_.end() && !ListParameters(info->second, kernel.parameters))
      has_bad_kernel_ = true;
    list_.kernels.push_back(std::move(kernel));
  }

  const CodeObject object_;
  std::unordered_map<std::string_view, ByteView> infos_;  // by kernel
  std::vector<bool> holds_variables_;                     // by section
  ModuleList list_;
  bool has_bad_kernel_ = false;
};

}  // namespace

std::optional<ModuleList> ListCodeObject(ByteView file) { return CodeObjectLister(file).List(); }

}  // namespace spillway::simulator
