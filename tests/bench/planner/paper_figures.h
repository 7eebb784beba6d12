// The papers' reported figures, from paper_figures.csv beside this file.
//
// Read at first use, on the program's one thread. Ends the program when the file is missing or a
// figure has no source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spillway::papers {

struct PaperFigure {
  std::string section, row, column, figure, source, address;

  // False when no copy of the paper's table could be found.
  bool at_hand() const { return figure != "not at hand"; }
};

// In the file's order.
std::vector<PaperFigure> PaperSection(const std::string& section);

// Null when there is none.
const PaperFigure* FindPaperFigure(const std::string& section, const std::string& row,
                                   const std::string& column);

// These end the program when there is no such figure.
int64_t PaperNumber(const std::string& section, const std::string& row, const std::string& column);
double PaperDecimal(const std::string& section, const std::string& row, const std::string& column);
const std::string& PaperText(const std::string& section, const std::string& row,
                             const std::string& column);

}  // namespace spillway::papers
