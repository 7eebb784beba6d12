#include "agent/http/access.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

namespace spillway::agent {
namespace {

constexpr char kToken[] = "0123456789abcdef-._~+/=";

class AccessTest : public testing::Test {
 protected:
  AccessTest() { umask(077); }
  ~AccessTest() override { unlink(path_.c_str()); }

  std::string WhyNot(const std::string& content, mode_t mode = 0600) {
    EXPECT_TRUE(base::WriteFile(path_, content).ok());
    EXPECT_EQ(chmod(path_.c_str(), mode), 0);
    return HttpAccess::Open({path_, "", ""}).text();
  }

  const std::string path_ = testing::TempDir() + "token-" + std::to_string(getpid());
};

TEST_F(AccessTest, WithoutATokenEverybodyIsAdmitted) {
  const auto access = HttpAccess::Open({});
  ASSERT_TRUE(access);
  EXPECT_TRUE((*access)->Admits(""));
  EXPECT_FALSE((*access)->has_token());
}

TEST_F(AccessTest, AdmitsTheTokenAlone) {
  ASSERT_EQ(WhyNot(std::string(kToken) + "\n"), "");
  const auto access = HttpAccess::Open({path_, "", ""});
  const std::string right = std::string("Bearer ") + kToken;
  EXPECT_TRUE((*access)->Admits(right));
  EXPECT_TRUE((*access)->Admits("bearer " + right.substr(7)));
  for (const std::string& wrong :
       {std::string(), std::string("Bearer "), std::string("Bearer"), std::string(kToken),
        "Basic " + right.substr(7), right + "0", right.substr(0, right.size() - 1),
        "Bearer 1" + right.substr(8), "Bearer  " + right.substr(7), right + right.substr(7)})
    EXPECT_FALSE((*access)->Admits(wrong)) << wrong;
}

TEST_F(AccessTest, RefusesWhatIsNoToken) {
  for (const char* content : {"", "\n", "too-short", "0123456789 abcdef", "0123456789\nabcdef0",
                              "0123456789abcd\xc3\xa9"})
    EXPECT_NE(WhyNot(content).find("has no token: a token is one line of"), std::string::npos)
        << content;
  EXPECT_NE(WhyNot(std::string(2000, 'a')), "");
  EXPECT_NE(HttpAccess::Open({"/no/such/file", "", ""})
                .text()
                .find("cannot read [http] token_file /no/such/file: No such file or directory"),
            std::string::npos);
}

TEST_F(AccessTest, RefusesATokenThatAllUsersCanRead) {
  EXPECT_NE(WhyNot(kToken, 0644).find("is no secret: all users have rights to it; chmod o= "),
            std::string::npos);
  EXPECT_EQ(WhyNot(kToken, 0640), "");
}

TEST_F(AccessTest, SaysWhichCertificateCannotBeUsed) {
  EXPECT_NE(HttpAccess::Open({"", "/no/such/certificate", "/no/such/key"})
                .text()
                .find("cannot use [http] certificate"),
            std::string::npos);
}

}  // namespace
}  // namespace spillway::agent
