#include "agent/config/config.h"

#include <arpa/inet.h>
#include <string.h>

#include <algorithm>

namespace spillway::agent {
namespace {

template <class T>
void Set(T& value, const std::optional<int64_t>& change) {
  if (change) value = static_cast<T>(*change);
}

void SetSize(int64_t& value, const std::optional<int64_t>& change, int64_t whole_bytes) {
  if (change) value = BytesOf(*change, whole_bytes);
}

void ApplyTerms(const OwnerChange& change, int64_t host_bytes, OwnerTerms& terms) {
  Set(terms.guaranteed_bytes, change.guaranteed_bytes);
  Set(terms.limit_bytes, change.limit_bytes);
  SetSize(terms.host_limit_bytes, change.host_limit_bytes, host_bytes);
  Set(terms.weight, change.weight);
  Set(terms.jobs, change.jobs);
}

}  // namespace

OwnerTerms UserTermsFor(const Config& config, std::optional<int64_t> uid, int64_t host_bytes) {
  OwnerTerms terms;
  for (const UserRule& rule : config.users) {
    if (!rule.uid || rule.uid == uid) ApplyTerms(rule.terms, host_bytes, terms);
  }
  return terms;
}

OwnerTerms AccountTermsFor(const AccountSetting& account, int64_t host_bytes) {
  OwnerTerms terms;
  ApplyTerms(account.terms, host_bytes, terms);
  return terms;
}

const AccountSetting* AccountOf(const Config& config, int64_t uid) {
  for (const AccountSetting& account : config.accounts) {
    if (std::find(account.uids.begin(), account.uids.end(), uid) != account.uids.end())
      return &account;
  }
  return nullptr;
}

void ApplyTerms(const TermsChange& change, Terms& terms, int64_t memory_bytes, int64_t host_bytes) {
  SetSize(terms.memory.floor, change.floor_bytes, memory_bytes);
  SetSize(terms.memory.guaranteed, change.guaranteed_bytes, memory_bytes);
  SetSize(terms.memory.limit, change.limit_bytes, memory_bytes);
  SetSize(terms.host.guaranteed, change.host_guaranteed_bytes, host_bytes);
  SetSize(terms.host.limit, change.host_limit_bytes, host_bytes);
  Set(terms.link.guaranteed, change.link_guaranteed_permille);
  Set(terms.link.limit, change.link_limit_permille);
  SetSize(terms.workspace_limit, change.workspace_limit_bytes, memory_bytes);
  Set(terms.weight, change.weight);
  Set(terms.priority, change.priority);
  if (change.turns) terms.turns = static_cast<TurnsChoice>(*change.turns);
}

ArbiterRules ArbiterRulesOf(const Config& config) {
  return {config.return_within_ms * 1'000'000, config.patience_s * 1'000'000'000, config.step_bytes,
          config.headroom_bytes};
}

// A process reports at every usage interval; some reports may be late.
TurnRules TurnRulesOf(const Config& config) {
  const int64_t silent_ms = std::max<int64_t>(2000, 4 * config.usage_interval_ms);
  return {config.turn_quantum_ms * 1'000'000, config.turn_cost_factor, silent_ms * 1'000'000,
          config.turn_stuck_s * 1'000'000'000};
}

bool AllowsTurns(const Config& config) {
  const auto allows = [](const TermsChange& terms) { return terms.turns.value_or(0) != 0; };
  return allows(config.defaults) ||
         std::any_of(config.devices.begin(), config.devices.end(),
                     [](const DeviceSetting& one) { return one.turns.value_or(0) != 0; }) ||
         std::any_of(config.rules.begin(), config.rules.end(),
                     [&](const JobRule& rule) { return allows(rule.terms); });
}

Terms TermsFor(const Config& config, const std::string& job, int64_t uid, int64_t memory_bytes,
               int64_t host_bytes) {
  Terms terms;
  terms.memory = {kDefaultFloorBytes, 0, memory_bytes};
  terms.host = {0, 0, host_bytes};
  terms.link = {0, 0, kWholeLink};
  ApplyTerms(config.defaults, terms, memory_bytes, host_bytes);
  for (const JobRule& rule : config.rules) {
    if (FitsPattern(rule.job, job) && (!rule.uid || *rule.uid == uid))
      ApplyTerms(rule.terms, terms, memory_bytes, host_bytes);
  }
  terms.memory.limit = std::min(terms.memory.limit, memory_bytes);
  return terms;
}

bool IsLoopback(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in_addr four{};
  if (inet_pton(AF_INET, host.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127;
  in6_addr six{};
  if (inet_pton(AF_INET6, host.c_str(), &six) != 1) return host == "localhost";
  return memcmp(&six, &in6addr_loopback, sizeof six) == 0;
}

bool FitsPattern(const std::string& pattern, const std::string& text) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos) return pattern == text;
  if (text.compare(0, star, pattern, 0, star) != 0) return false;
  const std::string rest = pattern.substr(star + 1);
  for (size_t at = star; at <= text.size(); ++at) {
    if (FitsPattern(rest, text.substr(at))) return true;
  }
  return false;
}

}  // namespace spillway::agent
