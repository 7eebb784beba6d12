// Reads the parts of a rule's line (declared_uses.h). After an error it stands at the line's end;
// `status` keeps the first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulator/driver/device/rule_terms.h"

namespace spillway::simulator {

class RuleLine {
 public:
  explicit RuleLine(const std::string& line) : text_(line) {}

  const base::Status& status() const { return status_; }
  const std::vector<std::string>& types() const { return types_; }
  void Fail(std::string what);

  bool AtEnd();
  bool Take(char wanted);
  void Expect(char wanted);

  // A pattern stands in quotes, of which Take has removed the first.
  std::string Pattern();
  std::string Name();
  std::string Word();
  std::uint64_t Number();
  std::uint32_t ParameterNumber();
  // `[2]`, or `:64[2]`, of which Take has removed neither; null where there is none.
  RuleTermRef PlaceInParameter();
  RuleTermRef BytesBefore();
  RuleTermRef Bytes();
  RuleTermRef Sum();

 private:
  void SkipSpace();
  bool TakeWord(std::string_view wanted);
  std::uint32_t WidthBytes();
  RuleTermRef Product();
  RuleTermRef Factor();
  RuleTermRef Shape();
  RuleTermRef Parameter();
  RuleTermRef Repeated();
  RuleTermRef Smaller();
  RuleTermRef Any();
  RuleTermRef TypeBytes();
  RuleTermRef ParameterBytes();

  const std::string& text_;
  std::size_t at_ = 0;
  base::Status status_;
  std::vector<std::string> types_;
};

}  // namespace spillway::simulator
