// The handwritten digits: the file's path, its reader, and the fixed split into training and test
// images.
//
// Used by: digits_cnn, on the host, before training. The split depends only on the file: every
// seventh image (line 7, 14, ...) is for the test, 256 of the 1,797; the other 1,541 are for
// training.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/check.cuh"

namespace workloads {

inline constexpr int kDigitSide = 8;
inline constexpr int kDigitPixels = kDigitSide * kDigitSide;
inline constexpr int kDigitClasses = 10;

struct Digit {
  std::array<std::uint8_t, kDigitPixels> pixels;  // 0..16
  std::int32_t label;
};

struct DigitSets {
  std::vector<Digit> training, test;
};

// data/digits.csv beside the program.
inline std::string default_digits_path() {
  char program[4096];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
  if (length <= 0) return "data/digits.csv";
  const std::string path(program, static_cast<std::size_t>(length));
  return path.substr(0, path.rfind('/') + 1) + "data/digits.csv";
}

inline Digit parse_digit(const std::string& path, std::size_t line_number, const char* line) {
  Digit digit{};
  for (int i = 0; i <= kDigitPixels; ++i) {
    char* end = nullptr;
    const long value = std::strtol(line, &end, 10);
    const long highest = i < kDigitPixels ? 16 : kDigitClasses - 1;
    const bool last = i == kDigitPixels;
    if (end == line || value < 0 || value > highest || (*end != ',' && !last)) {
      fail(1, "%s:%zu: field %d is not a number from 0 to %ld", path.c_str(), line_number, i + 1,
           highest);
    }
    if (last) {
      digit.label = static_cast<std::int32_t>(value);
    } else {
      digit.pixels[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(value);
    }
    line = end + 1;
  }
  return digit;
}

inline DigitSets read_digits(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    fail(1,
         "cannot read the digits at %s (%s); the build puts them there, --data names another place",
         path.c_str(), std::strerror(errno));
  }
  DigitSets sets;
  char line[1024];
  for (std::size_t number = 1; std::fgets(line, sizeof(line), file) != nullptr; ++number) {
    (number % 7 == 0 ? sets.test : sets.training).push_back(parse_digit(path, number, line));
  }
  std::fclose(file);
  if (sets.training.empty() || sets.test.empty()) fail(1, "%s holds too few images", path.c_str());
  return sets;
}

}  // namespace workloads
