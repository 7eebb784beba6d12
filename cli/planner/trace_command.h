// `spillway trace print|convert|trim`: to look at profile and trace files, to change their form, to
// cut them.
//
// One thread; prints to stdout, throws Failure.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::cli {

// What the file, JSON text or network holds, one line per operation and buffer.
int PrintTrace(const std::string& source, const std::string& device);

// By the output's ending: .json writes JSON, anything else our own form. Traces stay traces unless
// `as_profile`.
int ConvertTrace(const std::string& source, const std::string& output, const std::string& device,
                 bool as_profile);

// The events [from, until) of a trace file, with what is alive at `from` allocated first.
int TrimTrace(const std::string& source, const std::string& output, uint64_t from, uint64_t until);

}  // namespace spillway::cli
