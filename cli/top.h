// `spillway top`: the agent's status on the whole terminal, again every second, until somebody
// quits. Jobs can be sorted and scrolled, and one of them looked at alone.
//
// One thread. Takes the terminal (alternate screen, no echo) and gives it back as it was, however
// it ends: q, Ctrl-C, SIGTERM, a closed terminal; Ctrl-Z and `fg` too. Where the output is no
// terminal it prints one page. With --json it takes no terminal, and each second's status is a
// line. An agent that goes away is waited for.
#pragma once

#include <string>
#include <vector>

#include "cli/option_list.h"

namespace spillway::cli {

// The exit code. Throws Failure when the command line is wrong, or when there is no agent at the
// start.
int RunTop(const std::vector<std::string>& arguments);

OptionList TopOptionList();

// A JSON document as the agent writes it, on one line.
std::string OnOneLine(const std::string& document);

// As much of a page as a terminal of so many rows shows, for writing over the one before; the last
// row says which keys there are. The page's lines are not longer than the terminal.
std::string TopFrame(const std::string& page, const std::string& keys, int rows, int columns);

}  // namespace spillway::cli
