// The Kubernetes API server over HTTP: one request at a time, or a watch.
//
// Any thread; calls do not wait for each other. Each opens a connection of its own.
//
// Invariants
//  1. The token is read anew for each request: kubelet replaces the file before the token expires.
//  2. With https, the server's certificate must come from the authority in `ca_file`.
// Never logs or returns the token.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"

namespace spillway::kubernetes {

struct ApiServer {
  std::string url;         // "https://10.96.0.1:443"
  std::string token_file;  // empty: no token
  std::string ca_file;     // empty: the system's authorities
};

// From the environment and the files that kubelet gives a pod.
base::Result<ApiServer> ApiServerOfPod();

struct ApiAnswer {
  int status = 0;
  std::string body;
};

class ApiClient {
 public:
  // An error: the URL is not understood.
  static base::Result<std::unique_ptr<ApiClient>> Make(ApiServer server);
  virtual ~ApiClient() = default;

  // An error: there was no answer.
  // Ends about `until_ns` (CLOCK_MONOTONIC), if that comes before the usual patience ends.
  virtual base::Result<ApiAnswer> Get(const std::string& path, int64_t until_ns = INT64_MAX) = 0;
  virtual base::Result<ApiAnswer> Post(const std::string& path, const std::string& body) = 0;
  virtual base::Result<ApiAnswer> Put(const std::string& path, const std::string& body) = 0;
  virtual base::Result<ApiAnswer> Delete(const std::string& path) = 0;

  // Calls `take` with each line, which is an event as JSON, until it returns false, the server ends
  // the watch, or Interrupt is called. Only one watch at a time.
  virtual base::Result<ApiAnswer> Watch(
      const std::string& path, const std::function<bool(const std::string& line)>& take) = 0;
  // Without a watch, the next one ends as it begins.
  virtual void Interrupt() = 0;
};

// What an answer other than 2xx means, in words.
base::Error ErrorOf(const ApiAnswer& answer, const std::string& what);

}  // namespace spillway::kubernetes
