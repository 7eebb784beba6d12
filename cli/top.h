// `spillway top`: shows the agent's status every second until the user quits.
//
// Takes the terminal (alternate screen, no echo) and restores it at any end, and for Ctrl-Z and
// `fg`. If the output is no terminal, prints one page. --json prints each second's status as a
// line. If the agent goes away, it waits for the next one.
#pragma once

#include <string>
#include <vector>

#include "cli/options/option.h"

namespace spillway::cli {

// Returns the exit code. Throws Failure for a wrong command line, or without an agent at the start.
int RunTop(const std::vector<std::string>& arguments);

std::vector<Option> TopOptionList();

std::string OnOneLine(const std::string& document);

// The part of a page that fits so many rows, to overwrite the last one; the last row lists the
// keys.
std::string TopFrame(const std::string& page, const std::string& keys, int rows, int columns);

}  // namespace spillway::cli
