#include "tests/bench/planner/paper_figures.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/paths.h"

namespace spillway::papers {
namespace {

const std::string kFiguresFile = test::SourcePath("tests/bench/planner/paper_figures.csv");

[[noreturn]] void Stop(const std::string& why) {
  std::fprintf(stderr, "spillway-papers: %s: %s\n", kFiguresFile.c_str(), why.c_str());
  std::exit(1);
}

const std::vector<PaperFigure>& AllFigures() {
  static const std::vector<PaperFigure> figures = [] {
    std::ifstream file(kFiguresFile);
    if (!file) Stop("cannot read it");
    std::vector<PaperFigure> read;
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream fields(line);
      PaperFigure figure;
      for (std::string* field : {&figure.section, &figure.row, &figure.column, &figure.figure,
                                 &figure.source, &figure.address})
        std::getline(fields, *field, ',');
      if (figure.source.empty() || figure.address.empty())
        Stop("a figure without a source: " + line);
      read.push_back(std::move(figure));
    }
    return read;
  }();
  return figures;
}

}  // namespace

std::vector<PaperFigure> PaperSection(const std::string& section) {
  std::vector<PaperFigure> result;
  for (const PaperFigure& figure : AllFigures()) {
    if (figure.section == section) result.push_back(figure);
  }
  return result;
}

const PaperFigure* FindPaperFigure(const std::string& section, const std::string& row,
                                   const std::string& column) {
  for (const PaperFigure& figure : AllFigures()) {
    if (figure.section == section && figure.row == row && figure.column == column) return &figure;
  }
  return nullptr;
}

const std::string& PaperText(const std::string& section, const std::string& row,
                             const std::string& column) {
  const PaperFigure* figure = FindPaperFigure(section, row, column);
  if (figure == nullptr) Stop("there is no " + section + ", " + row + ", " + column);
  return figure->figure;
}

int64_t PaperNumber(const std::string& section, const std::string& row, const std::string& column) {
  return std::stoll(PaperText(section, row, column));
}

double PaperDecimal(const std::string& section, const std::string& row, const std::string& column) {
  return std::stod(PaperText(section, row, column));
}

}  // namespace spillway::papers
