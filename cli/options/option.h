// Base's options, and those that several commands share.
#pragma once

#include "base/options/option.h"

namespace spillway::cli {

using base::DescriptionOf;
using base::FirstClauseOf;
using base::Joined;
using base::kHelpOption;
using base::Kind;
using base::kJsonOption;
using base::kNoValue;
using base::Need;
using base::Option;
using base::OptionValue;
using base::Value;
using base::ValueIfAny;
using base::WordsOf;

inline constexpr std::string_view kProfileWords = "k40c m40 1080ti a100 h100 h200";

inline constexpr Option kSocketOption{
    "socket", 0, Value("PATH", Kind::kFile),
    "the agent's socket (default: $SPILLWAY_SOCKET, or /run/spillway/agent.sock)"};

std::string StrategyNames();
constexpr OptionValue StrategyValue(std::string_view words = {}) {
  return {Need::kAlways, "NAME", Kind::kWords, words, &StrategyNames};
}

}  // namespace spillway::cli
