#include "agent/http/request_head.h"

#include <gtest/gtest.h>

namespace spillway::agent {
namespace {

using State = RequestHead::State;

constexpr char kScrape[] =
    "GET /metrics HTTP/1.1\r\nHost: node:9477\r\nAccept: "
    "text/plain\r\nX-Prometheus-Scrape-Timeout-Seconds: "
    "10\r\n\r\n";

int StatusOf(std::string_view text) {
  const RequestHead head = ReadRequestHead(text);
  return head.state == State::kRefused ? head.status : head.state == State::kComplete ? 200 : 0;
}

TEST(RequestHeadTest, IsIncompleteAtEveryShorterLength) {
  const std::string whole = kScrape;
  for (size_t length = 0; length < whole.size(); ++length)
    ASSERT_EQ(ReadRequestHead(whole.substr(0, length)).state, State::kIncomplete) << length;

  const RequestHead head = ReadRequestHead(whole);
  EXPECT_EQ(head.state, State::kComplete);
  EXPECT_EQ(head.method, "GET");
  EXPECT_EQ(head.path, "/metrics");
}

TEST(RequestHeadTest, BytesAfterTheHeadChangeNothing) {
  EXPECT_EQ(ReadRequestHead(std::string(kScrape) + "GET /healthz HTTP/9.9\r\n").path, "/metrics");
  EXPECT_EQ(ReadRequestHead(std::string(kScrape) + std::string(100'000, '\0')).path, "/metrics");
}

TEST(RequestHeadTest, AcceptsLeadingEmptyLinesAndLoneLineFeeds) {
  EXPECT_EQ(ReadRequestHead("\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n").path, "/healthz");
  EXPECT_EQ(ReadRequestHead("GET /healthz HTTP/1.1\nHost: n\n\n").path, "/healthz");
}

TEST(RequestHeadTest, PathExcludesQueryAndAuthority) {
  EXPECT_EQ(ReadRequestHead("GET /metrics?name=a HTTP/1.0\r\n\r\n").path, "/metrics");
  EXPECT_EQ(ReadRequestHead("GET http://node:9477/metrics HTTP/1.0\r\n\r\n").path, "/metrics");
  EXPECT_EQ(ReadRequestHead("GET http://node:9477 HTTP/1.0\r\n\r\n").path, "/");
}

TEST(RequestHeadTest, HostIsRequiredOnceSinceVersion11) {
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nhOST: a\r\n\r\n"), 200);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
}

TEST(RequestHeadTest, KnowsTheAuthorization) {
  const auto value = [](const std::string& fields) {
    return ReadRequestHead("GET / HTTP/1.0\r\n" + fields + "\r\n").authorization;
  };
  EXPECT_EQ(value("authorization:  Bearer a.b \r\n"), "Bearer a.b");
  EXPECT_EQ(value("Authorization:\r\n"), "");
  EXPECT_EQ(value("X-Authorization: Bearer a\r\n"), "");
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n"), 400);
}

TEST(RequestHeadTest, RefusesInvalidRequests) {
  for (const char* text : {
           "GET\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\n\r\n", "GET / /x HTTP/1.0\r\n\r\n",
           "GET metrics HTTP/1.0\r\n\r\n", "G@T / HTTP/1.0\r\n\r\n", "GET / HTTP/1\r\n\r\n",
           "GET / http/1.0\r\n\r\n", "GET /\x01 HTTP/1.0\r\n\r\n",
           "GET / HTTP/1.0\r\nNo colon\r\n\r\n", "GET / HTTP/1.0\r\nBlank : x\r\n\r\n",
           "GET / HTTP/1.0\r\nA: x\r\n folded\r\n\r\n",
           "\x16\x03\x01\x02\n",  // TLS
       }) {
    EXPECT_EQ(StatusOf(text), 400) << text;
  }
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n\r\n"), 505);
}

TEST(RequestHeadTest, RefusesHeadsWithoutEnd) {
  EXPECT_EQ(StatusOf("GET /" + std::string(kMostHeadBytes, 'a')), 414);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nA: " + std::string(kMostHeadBytes, 'a')), 431);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\nA: " + std::string(kMostHeadBytes / 2, 'a')), 0);
}

}  // namespace
}  // namespace spillway::agent
