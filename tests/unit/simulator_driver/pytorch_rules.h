// simulator/rules/pytorch.rules, read once for a suite of tests.
#pragma once

#include <gtest/gtest.h>

#include "simulator/driver/device/declared_uses.h"
#include "tests/support/paths.h"

namespace spillway::simulator {

template <class Base>
class PytorchRulesTest : public Base {
 protected:
  static void SetUpTestSuite() {
    rules_ = new DeclaredUses;
    const base::Status added = rules_->AddFile(test::SourcePath("simulator/rules/pytorch.rules"));
    ASSERT_TRUE(added.ok()) << added.text();
  }
  static void TearDownTestSuite() { delete rules_; }

  static inline DeclaredUses* rules_ = nullptr;
};

}  // namespace spillway::simulator
