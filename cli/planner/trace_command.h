// `spillway trace print|convert|trim`: shows, converts and cuts profile and trace files.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::cli {

int PrintTrace(const std::string& source, const std::string& device);

// Writes JSON to .json, else our own form. Traces stay traces unless `as_profile`.
int ConvertTrace(const std::string& source, const std::string& output, const std::string& device,
                 bool as_profile);

// Keeps events [from, until); allocates first what is alive at `from`.
int TrimTrace(const std::string& source, const std::string& output, uint64_t from, uint64_t until);

}  // namespace spillway::cli
