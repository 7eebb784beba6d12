#include "agent/http/request_head.h"

#include <algorithm>
#include <cctype>

namespace spillway::agent {
namespace {

RequestHead RefusedHead(int status) {
  RequestHead head;
  head.state = RequestHead::State::kRefused;
  head.status = status;
  return head;
}

bool IsTokenLetter(char c) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return std::isalnum(static_cast<unsigned char>(c)) || others.find(c) != others.npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenLetter);
}

bool IsControl(char c) {
  const auto code = static_cast<unsigned char>(c);
  return (code < 0x20 && c != '\t') || code == 0x7f;
}

bool EqualIgnoringCase(std::string_view one, std::string_view other) {
  return std::equal(one.begin(), one.end(), other.begin(), other.end(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  });
}

// Removes the first line; a lone LF ends it too (RFC 9112, 2.2). False: the line is not complete.
bool TakeLine(std::string_view& text, std::string_view* line) {
  const size_t end = text.find('\n');
  if (end == text.npos) return false;
  *line = text.substr(0, end);
  if (line->ends_with('\r')) line->remove_suffix(1);
  text.remove_prefix(end + 1);
  return true;
}

// "/metrics" from "/metrics?x=1" and "http://node:9477/metrics"; empty: not a path.
std::string PathOf(std::string_view target) {
  const size_t scheme = target.find("://");
  if (!target.starts_with('/') && scheme != target.npos) {
    const size_t path = target.find('/', scheme + 3);
    target = path == target.npos ? "/" : target.substr(path);
  }
  target = target.substr(0, target.find_first_of("?#"));
  return target.starts_with('/') ? std::string(target) : "";
}

RequestHead ReadRequestLine(std::string_view line) {
  const size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) return RefusedHead(400);
  const std::string_view target = line.substr(first + 1, last - first - 1),
                         version = line.substr(last + 1);
  const bool has_form = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.' &&
                        std::isdigit(static_cast<unsigned char>(version[5])) &&
                        std::isdigit(static_cast<unsigned char>(version[7]));
  if (!has_form || !IsToken(line.substr(0, first)) || target.find(' ') != target.npos)
    return RefusedHead(400);
  if (std::any_of(target.begin(), target.end(), IsControl) || target.find('\t') != target.npos)
    return RefusedHead(400);
  if (version[5] != '1') return RefusedHead(505);
  RequestHead head;
  head.state = RequestHead::State::kComplete;
  head.method = line.substr(0, first);
  head.path = PathOf(target);
  const bool asks_of_the_server = target == "*" && head.method == "OPTIONS";
  return head.path.empty() && !asks_of_the_server ? RefusedHead(400) : head;
}

// A space before the colon, and folded lines, are forbidden (RFC 9112, 5.1 and 5.2).
bool IsField(std::string_view line) {
  const size_t colon = line.find(':');
  return colon != line.npos && IsToken(line.substr(0, colon)) &&
         std::none_of(line.begin(), line.end(), IsControl);
}

bool Names(std::string_view line, std::string_view field) {
  return EqualIgnoringCase(line.substr(0, line.find(':')), field);
}

std::string ValueOf(std::string_view line) {
  line.remove_prefix(std::min(line.size(), line.find(':') + 1));
  const size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
  return first == line.npos ? "" : std::string(line.substr(first, last - first + 1));
}

}  // namespace

RequestHead ReadRequestHead(std::string_view received) {
  const bool is_full = received.size() >= kMostHeadBytes;
  std::string_view rest = received.substr(0, kMostHeadBytes), request_line, line;
  do {
    // Clients may send empty lines before a request (RFC 9112, 2.2).
    if (!TakeLine(rest, &request_line)) return is_full ? RefusedHead(414) : RequestHead{};
  } while (request_line.empty());
  RequestHead head = ReadRequestLine(request_line);
  int hosts = 0, authorizations = 0;
  bool are_fields = true;
  while (head.state == RequestHead::State::kComplete) {
    if (!TakeLine(rest, &line)) return is_full ? RefusedHead(431) : RequestHead{};
    if (line.empty()) break;
    are_fields = are_fields && IsField(line);
    hosts += Names(line, "host") ? 1 : 0;
    if (Names(line, "host")) head.host = ValueOf(line);
    if (!Names(line, "authorization")) continue;
    ++authorizations;
    head.authorization = ValueOf(line);
  }
  if (head.state == RequestHead::State::kRefused) return head;
  const bool is_old = request_line.ends_with("HTTP/1.0");
  if (authorizations > 1) return RefusedHead(400);
  return are_fields && (hosts == 1 || (is_old && hosts == 0)) ? head : RefusedHead(400);
}

}  // namespace spillway::agent
