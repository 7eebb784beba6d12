// What papers report, from paper_figures.csv beside this file.
//
// Read when first asked, on the program's one thread; ends the program when the file is missing or a figure has no source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::papers {

struct PaperFigure {
  std::string section, row, column, figure, source;
};

// In the file's order.
std::vector<PaperFigure> PaperSection(const std::string& section);

// Ends the program when there is none.
int64_t PaperNumber(const std::string& section, const std::string& row, const std::string& column);

}  // namespace spillway::papers
