#include "base/json_text.h"

#include <gtest/gtest.h>

namespace spillway::base {
namespace {

TEST(JsonTextTest, EscapesWhatJsonRequires) {
  EXPECT_EQ(JsonQuoted(""), R"("")");
  EXPECT_EQ(JsonQuoted("plain"), R"("plain")");
  EXPECT_EQ(JsonQuoted("say \"\\\"\n"), R"("say \"\\\"\u000a")");
  EXPECT_EQ(JsonQuoted(std::string_view("a\0b", 3)), R"("a\u0000b")");
}

TEST(JsonTextTest, KeepsCharactersAndConvertsStrayBytesToCharacters) {
  EXPECT_EQ(JsonQuoted("\xc3\xa9\xe2\x82\xac"), "\"\xc3\xa9\xe2\x82\xac\"");
  EXPECT_EQ(JsonQuoted("\xff\xc3"), R"("\u00ff\u00c3")");
  EXPECT_EQ(JsonQuoted("a\xed\xa0\x80z"), R"("a\u00ed\u00a0\u0080z")");
}

}  // namespace
}  // namespace spillway::base
