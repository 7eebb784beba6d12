#include "deploy/kubernetes/memory_terms.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "deploy/kubernetes/quantity.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

// The agent's own bounds (agent/config/config_fields.cpp).
constexpr int64_t kMostWeight = 10'000, kMostPriority = 1000;

base::Result<Amount> ParseShare(std::string_view text) {
  double percent = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
  const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc() || rest != "%" || !(percent > 0) || percent > 100)
    return base::Error{"'" + std::string(text) + "' is no share of a device", "",
                       "write it as \"50%\""};
  const auto permille = static_cast<int32_t>(percent * 10);
  if (permille == 0)
    return base::Error{"'" + std::string(text) + "' is less than a thousandth of a device", "",
                       "write at least \"0.1%\""};
  return Amount{.permille = permille};
}

base::Result<Amount> ParseAmount(const json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > 0 &&
      value.get<uint64_t>() <= uint64_t{INT64_MAX})
    return Amount{.bytes = value.get<int64_t>()};
  if (!value.is_string())
    return base::Error{"it is neither a quantity nor a share", "", "write \"8Gi\" or \"50%\""};
  const auto& text = value.get_ref<const std::string&>();
  if (text.ends_with('%')) return ParseShare(text);
  const base::Result<int64_t> bytes = ParseQuantity(text);
  if (!bytes) return bytes.status();
  if (*bytes == 0) return base::Error{"it is 0", "", "leave it out for the default"};
  return Amount{.bytes = *bytes};
}

base::Status TakeAmount(const json& value, std::optional<Amount>& amount) {
  const base::Result<Amount> parsed = ParseAmount(value);
  if (parsed) amount = *parsed;
  return parsed.status();
}

base::Status TakeNumber(const json& value, int64_t least, int64_t most,
                        std::optional<int32_t>& number) {
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most)
    return base::Error{"it is no whole number from " + std::to_string(least) + " to " +
                       std::to_string(most)};
  number = value.get<int32_t>();
  return base::Ok();
}

base::Status TakeWord(const json& value, std::string_view expected) {
  if (value.is_string() && value.get_ref<const std::string&>() == expected) return base::Ok();
  return base::Error{"this driver understands " + std::string(expected) + " only"};
}

base::Status TakeSetting(const std::string& name, const json& value, MemoryConfig& config) {
  if (name == "apiVersion") return TakeWord(value, kConfigVersion);
  if (name == "kind") return TakeWord(value, kConfigKind);
  if (name == "limit") return TakeAmount(value, config.limit);
  if (name == "floor") return TakeAmount(value, config.floor);
  if (name == "weight") return TakeNumber(value, 1, kMostWeight, config.weight);
  if (name == "priority") return TakeNumber(value, 0, kMostPriority, config.priority);
  return base::Error{"there is no such setting", "", "there are limit, floor, weight and priority"};
}

MemoryConfig Joined(const std::vector<MemoryConfig>& configs) {
  MemoryConfig joined;
  const auto replace = [](auto& value, const auto& later) {
    if (later) value = later;
  };
  for (const MemoryConfig& config : configs) {
    replace(joined.limit, config.limit);
    replace(joined.floor, config.floor);
    replace(joined.weight, config.weight);
    replace(joined.priority, config.priority);
  }
  return joined;
}

base::Error TooMuch(const char* name, const std::string& wanted, const std::string& most) {
  return {
      "the claim's " + std::string(name) + ", " + wanted + ", is more than it may have, " + most,
      "", "ask for less, or choose another device class"};
}

// Replaces the ceiling by a claim's smaller wish.
base::Status LowerAmount(const char* name, const std::optional<Amount>& wish, int64_t device_bytes,
                         int64_t& bytes) {
  if (!wish) return base::Ok();
  const int64_t wanted_bytes = wish->In(device_bytes);
  if (wanted_bytes > bytes)
    return TooMuch(name, FormatQuantity(wanted_bytes), FormatQuantity(bytes));
  bytes = wanted_bytes;
  return base::Ok();
}

base::Status LowerNumber(const char* name, std::optional<int32_t> wish,
                         std::optional<int32_t>& number) {
  if (!wish) return base::Ok();
  if (!number)
    return base::Error{
        "the claim sets a " + std::string(name) + ", which its device class does not",
        "a claim can only lower what its class allows", "leave it out"};
  if (*wish > *number) return TooMuch(name, std::to_string(*wish), std::to_string(*number));
  number = wish;
  return base::Ok();
}

}  // namespace

int64_t Amount::In(int64_t device_bytes) const {
  return permille ? device_bytes / 1000 * *permille + device_bytes % 1000 * *permille / 1000
                  : bytes;
}

base::Result<MemoryConfig> ParseMemoryConfig(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object())
    return base::Error{"the configuration's parameters are no JSON object"};
  MemoryConfig config;
  for (const char* const name : {"apiVersion", "kind"}) {
    if (!document.contains(name))
      return base::Error{std::string(name) + " is missing", "",
                         std::string("parameters begin with apiVersion: ") + kConfigVersion +
                             " and kind: " + kConfigKind};
  }
  for (const auto& [name, value] : document.items()) {
    base::Status taken = TakeSetting(name, value, config);
    if (!taken.ok()) return std::move(taken).Annotate(name);
  }
  return config;
}

std::optional<int64_t> ClassLimitIn(const DeviceShare& share,
                                    const std::vector<MemoryConfig>& of_class) {
  const MemoryConfig allowed = Joined(of_class);
  if (!allowed.limit) return std::nullopt;
  return allowed.limit->In(share.device_bytes);
}

base::Result<MemoryTerms> ResolveTerms(const DeviceShare& share,
                                       const std::vector<MemoryConfig>& of_class,
                                       const std::vector<MemoryConfig>& of_claim) {
  const MemoryConfig allowed = Joined(of_class), wished = Joined(of_claim);
  MemoryTerms terms{.guaranteed_bytes = share.counted_bytes,
                    .limit_bytes = share.counted_bytes,
                    .weight = allowed.weight,
                    .priority = allowed.priority};
  if (allowed.limit) terms.limit_bytes = allowed.limit->In(share.device_bytes);
  if (allowed.floor)
    terms.guaranteed_bytes = std::min(allowed.floor->In(share.device_bytes), share.counted_bytes);
  for (base::Status lowered :
       {LowerAmount("limit", wished.limit, share.device_bytes, terms.limit_bytes),
        LowerAmount("floor", wished.floor, share.device_bytes, terms.guaranteed_bytes),
        LowerNumber("weight", wished.weight, terms.weight),
        LowerNumber("priority", wished.priority, terms.priority)}) {
    if (!lowered.ok()) return lowered;
  }
  if (wished.floor && terms.guaranteed_bytes > terms.limit_bytes)
    return base::Error{"the floor, " + FormatQuantity(terms.guaranteed_bytes) +
                       ", is above the limit, " + FormatQuantity(terms.limit_bytes)};
  terms.guaranteed_bytes = std::min(terms.guaranteed_bytes, terms.limit_bytes);
  return terms;
}

}  // namespace spillway::kubernetes
