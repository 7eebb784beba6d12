// An answer to one HTTP request.
#pragma once

#include <memory>
#include <string>

namespace spillway::agent {

using PageText = std::shared_ptr<const std::string>;

inline PageText TextPage(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

struct HttpAnswer {
  int status = 200;
  const char* type = "text/plain; charset=utf-8";
  PageText body;
  const char* fields = "";  // further header fields, each with its CRLF
};

const char* WordsOf(int status);

// The body is the status in words, and why.
HttpAnswer ErrorAnswer(int status, const std::string& why = "", const char* fields = "");

}  // namespace spillway::agent
