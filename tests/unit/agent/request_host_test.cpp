#include "agent/http/request_host.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

constexpr char kAddress[] = "127.0.0.1:9477";

TEST(RequestHostTest, NamesThatNoForeignServerLeadsHereAreTaken) {
  for (const char* host : {"localhost", "localhost:9477", "LocalHost.:1", "127.0.0.1",
                           "127.0.0.1:9477", "127.0.1.1", "[::1]", "[::1]:9477", "10.1.2.3:80", ""})
    EXPECT_TRUE(IsNameOfLoopback(host, kAddress)) << host;
}

TEST(RequestHostTest, OtherNamesAreRefused) {
  for (const char* host : {"node", "node:9477", "evil.example", "localhost.evil.example",
                           "evil.localhost", "127.0.0.1.evil.example", "127.0.0.1@evil.example",
                           "xlocalhost", "::1", "[::1", "[]", "[evil.example]", "[127.0.0.1]", "."})
    EXPECT_FALSE(IsNameOfLoopback(host, kAddress)) << host;
}

TEST(RequestHostTest, TheConfiguredNameIsTaken) {
  EXPECT_TRUE(IsNameOfLoopback("Node:80", "node:9477"));
  EXPECT_FALSE(IsNameOfLoopback("node.evil.example", "node:9477"));
  EXPECT_FALSE(IsNameOfLoopback("evil.example", ":9477"));
}

}  // namespace
}  // namespace spillway::agent
