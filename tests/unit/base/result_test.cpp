#include "base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace spillway::base {
namespace {

Result<int> Halved(int number) {
  if (number % 2 != 0)
    return Error{"cannot halve " + std::to_string(number), "it is odd", "give an even number"};
  return number / 2;
}

TEST(ResultTest, HoldsAValueOrTheErrorInItsPlace) {
  EXPECT_EQ(*Halved(8), 4);
  EXPECT_TRUE(Halved(8).ok());
  EXPECT_EQ(Halved(8).text(), "");

  const Result<int> failed = Halved(7);
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.error().why, "it is odd");
  EXPECT_EQ(failed.text(), "cannot halve 7: it is odd; give an even number");
}

TEST(ResultTest, LeavesOutUnknownPartsOfAnError) {
  EXPECT_EQ(Error{"the file is damaged"}.text(), "the file is damaged");
  EXPECT_EQ((Error{"the file is damaged", "", "delete it"}.text()),
            "the file is damaged; delete it");
  EXPECT_EQ((Error{"", "it is damaged"}.text()), "it is damaged");
}

TEST(ResultTest, NamesTheErrnoThatASystemCallLeft) {
  errno = ENOSPC;
  const Error error = ErrnoError("cannot write /a/plan", "make room");
  EXPECT_EQ(error.code, ENOSPC);
  EXPECT_EQ(error.text(), "cannot write /a/plan: No space left on device; make room");
  EXPECT_STREQ(ErrnoText(987654), "unknown error");
}

TEST(ResultTest, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> made = std::make_unique<int>(3);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 3);
  EXPECT_EQ(Halved(6).value_or(-1), 3);
  EXPECT_EQ(Halved(5).value_or(-1), -1);
  EXPECT_EQ(Halved(5).optional(), std::nullopt);
}

TEST(StatusTest, IsSuccessUntilItHasAnError) {
  EXPECT_TRUE(Status().ok());
  EXPECT_TRUE(Ok().ok());
  EXPECT_FALSE(Status(Error{"no"}).ok());
  EXPECT_EQ(Ok().Annotate("/a/plan").text(), "");
}

TEST(StatusTest, NamesTheActionBeforeTheError) {
  EXPECT_EQ(Status(Error{"it is damaged"}).Annotate("/a/plan").text(), "/a/plan: it is damaged");
  EXPECT_EQ(Status(Error{"", "Is a directory"}).Annotate("/a/plan").text(),
            "/a/plan: Is a directory");
}

TEST(StatusTest, ConvertsToTheErrorOfAResult) {
  const Result<std::string> failed = Status(Error{"it is damaged"});
  EXPECT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().text(), "it is damaged");
}

}  // namespace
}  // namespace spillway::base
