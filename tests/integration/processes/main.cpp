// process_cases NAME: runs the case of that name.
#include <cstring>

#include "tests/integration/processes/cases.h"

int main(int count, char** arguments) {
  using namespace spillway::processes;
  if (count < 2) return 2;
  for (const auto& cases :
       {ForkCases(), ExitCases(), SurroundingsCases(), ThreadCases(), LedgerCases()}) {
    for (const Case& one : cases) {
      if (std::strcmp(one.name, arguments[1]) == 0) return one.run(arguments[0]);
    }
  }
  return 2;
}
