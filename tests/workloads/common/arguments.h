// Command lines of the trainers: long options over getopt_long, each bound to a variable with its
// default.
//
// Used by: main() of each trainer, before any CUDA call.
// Ownership: a bound variable outlives parse().
// Never does: continue with an invalid value (message on standard error, exit code 2).
#pragma once

#include <getopt.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "check.cuh"

namespace workloads {

class Arguments {
 public:
  explicit Arguments(std::string purpose) : purpose_(std::move(purpose)) {}

  void integer(const char* name, int* value, int lowest, int highest, const char* help) {
    add(name, "N", help, std::to_string(*value), [=](const std::string& text) {
      *value = static_cast<int>(number(name, text, lowest, highest));
    });
  }

  void seed(const char* name, std::uint64_t* value, const char* help) {
    add(name, "N", help, std::to_string(*value), [=](const std::string& text) {
      *value = static_cast<std::uint64_t>(number(name, text, 0, INT64_MAX));
    });
  }

  // Decimal bytes, or with a suffix: 512KiB, 8MiB, 1GiB.
  void size(const char* name, std::size_t* value_bytes, const char* help) {
    add(name, "SIZE", help, std::to_string(*value_bytes >> 20) + "MiB",
        [=](const std::string& text) { *value_bytes = size_bytes(name, text); });
  }

  void rate(const char* name, float* value, const char* help) {
    add(name, "X", help, std::to_string(*value), [=](const std::string& text) {
      char* end = nullptr;
      *value = std::strtof(text.c_str(), &end);
      if (end == text.c_str() || *end != '\0' || !(*value >= 0.0f && *value <= 100.0f)) {
        fail(2, "--%s wants a number from 0 to 100, not '%s'", name, text.c_str());
      }
    });
  }

  void text(const char* name, std::string* value, const char* help) {
    add(name, "TEXT", help, *value, [=](const std::string& given) { *value = given; });
  }

  void flag(const char* name, bool* value, const char* help) {
    add(name, "", help, "", [=](const std::string&) { *value = true; });
  }

  template <typename Enum>
  void choice(const char* name, Enum* value, std::vector<std::pair<std::string, Enum>> choices,
              const char* help) {
    std::string names, initial;
    for (const auto& [label, meaning] : choices) {
      names += (names.empty() ? "" : "|") + label;
      if (meaning == *value) initial = label;
    }
    add(name, names, help, initial, [=](const std::string& text) {
      for (const auto& [label, meaning] : choices) {
        if (label == text) return void(*value = meaning);
      }
      fail(2, "--%s wants one of %s, not '%s'", name, names.c_str(), text.c_str());
    });
  }

  void parse(int argc, char** argv) const {
    std::vector<option> table;
    for (const Entry& entry : entries_) {
      const bool wants_value = !entry.placeholder.empty();
      table.push_back(
          {entry.name.c_str(), wants_value ? required_argument : no_argument, nullptr, 0});
    }
    table.push_back({"help", no_argument, nullptr, 'h'});
    table.push_back({nullptr, 0, nullptr, 0});
    int index = 0;
    for (int code; (code = getopt_long(argc, argv, "h", table.data(), &index)) != -1;) {
      if (code == '?') fail(2, "try --help");
      if (code == 'h') print_help();
      entries_[static_cast<std::size_t>(index)].accept(optarg != nullptr ? optarg : "");
    }
    if (optind < argc) fail(2, "'%s' is no option; try --help", argv[optind]);
  }

 private:
  struct Entry {
    std::string name, placeholder, help, initial;
    std::function<void(const std::string&)> accept;
  };

  void add(std::string name, std::string placeholder, std::string help, std::string initial,
           std::function<void(const std::string&)> accept) {
    entries_.push_back({std::move(name), std::move(placeholder), std::move(help),
                        std::move(initial), std::move(accept)});
  }

  static long long number(const char* name, const std::string& text, long long lowest,
                          long long highest) {
    char* end = nullptr;
    errno = 0;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (end == text.c_str() || *end != '\0' || errno != 0 || value < lowest || value > highest) {
      fail(2, "--%s wants a whole number from %lld to %lld, not '%s'", name, lowest, highest,
           text.c_str());
    }
    return value;
  }

  static std::size_t size_bytes(const char* name, const std::string& text) {
    const std::size_t digits = text.find_first_not_of("0123456789");
    const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
    const std::vector<std::pair<std::string, int>> shifts = {
        {"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}};
    for (const auto& [suffix, shift] : shifts) {
      if (unit != suffix || digits == 0) continue;
      return static_cast<std::size_t>(number(name, text.substr(0, digits), 0, 1LL << (50 - shift)))
             << shift;
    }
    fail(2, "--%s wants a size such as 4096, 512KiB, 8MiB or 1GiB, not '%s'", name, text.c_str());
  }

  [[noreturn]] void print_help() const {
    std::printf("%s\n\nUsage: %s [options]\n", purpose_.c_str(), program_invocation_short_name);
    for (const Entry& entry : entries_) {
      const std::string left =
          "--" + entry.name + (entry.placeholder.empty() ? "" : "=" + entry.placeholder);
      const std::string right = entry.initial.empty() ? "" : " [" + entry.initial + "]";
      std::printf("  %-34s %s%s\n", left.c_str(), entry.help.c_str(), right.c_str());
    }
    std::printf("  %-34s %s\n", "--help", "print this and exit");
    std::exit(0);
  }

  const std::string purpose_;
  std::vector<Entry> entries_;
};

}  // namespace workloads
