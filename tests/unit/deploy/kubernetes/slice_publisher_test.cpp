// The publisher against an API server where somebody else always has the last word.
#include "deploy/kubernetes/slice_publisher.h"

#include <gtest/gtest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"

namespace spillway::kubernetes {
namespace {

using nlohmann::json;

constexpr int kEnoughWrites = 4;

class QuarrelsomeServer : public ApiClient {
 public:
  base::Result<ApiAnswer> Get(const std::string& path, int64_t) override {
    if (path.starts_with("/api/v1/nodes/"))
      return ApiAnswer{200, R"({"metadata": {"uid": "node-uid"}})"};
    json slice = {{"metadata", {{"name", SliceNameOf("n1")}, {"resourceVersion", "1"}}},
                  {"spec", {{"pool", {{"generation", ++generation_}}}, {"by", "somebody else"}}}};
    return ApiAnswer{200,
                     json({{"metadata", {{"resourceVersion", "1"}}}, {"items", {slice}}}).dump()};
  }
  base::Result<ApiAnswer> Put(const std::string&, const std::string& body) override {
    if (++writes_ == kEnoughWrites) enough.set_value();
    return ApiAnswer{200, body};
  }
  base::Result<ApiAnswer> Post(const std::string&, const std::string&) override { return None(); }
  base::Result<ApiAnswer> Delete(const std::string&) override { return None(); }
  base::Result<ApiAnswer> Watch(const std::string&,
                                const std::function<bool(const std::string&)>&) override {
    return None();
  }
  void Interrupt() override {}

  std::promise<void> enough;

 private:
  static base::Result<ApiAnswer> None() { return base::Error{"not served"}; }
  int writes_ = 0, generation_ = 0;
};

// Regression: two writers kept the API server busy, as fast as it answered.
TEST(SlicePublisherTest, RepeatsAWriteAtGrowingIntervals) {
  QuarrelsomeServer server;
  SlicePublisher publisher(&server, "n1", [](const std::string& text) { ADD_FAILURE() << text; });
  publisher.Offer({{{.uuid = "GPU-1", .memory_bytes = int64_t{1} << 34}}, {}});
  const int64_t began_ns = base::NowNs(CLOCK_MONOTONIC);
  std::thread publishing([&] { publisher.Run(); });
  server.enough.get_future().wait();
  // The first is written at once; then come pauses of 0.2 and 0.4 s.
  EXPECT_GE(base::NowNs(CLOCK_MONOTONIC) - began_ns, 600'000'000);
  publisher.Stop();
  publishing.join();
}

class AbsentServer : public QuarrelsomeServer {
 public:
  base::Result<ApiAnswer> Get(const std::string&, int64_t) override {
    while_asked();
    return base::Error{"away"};
  }

  std::function<void()> while_asked;
};

// Regression: a taint came up to 30 s late if the publisher was just waiting after a failure.
TEST(SlicePublisherTest, ANewOfferWaitsForNoPause) {
  constexpr int kOffers = 12;  // pauses after as many failures take more than a minute
  AbsentServer server;
  SlicePublisher publisher(&server, "n1", [](const std::string&) {});
  int offers = 0;
  const auto offer = [&] {
    publisher.Offer({{}, {{"spillway.dev/drained", std::to_string(offers)}}});
  };
  server.while_asked = [&] {
    if (++offers == kOffers) server.enough.set_value();
    if (offers < kOffers) offer();
  };
  offer();
  std::thread publishing([&] { publisher.Run(); });
  EXPECT_EQ(server.enough.get_future().wait_for(std::chrono::seconds(10)),
            std::future_status::ready);
  publisher.Stop();
  publishing.join();
}

// Takes what is written, and answers each watch with a status at once.
class WatchlessServer : public QuarrelsomeServer {
 public:
  base::Result<ApiAnswer> Get(const std::string& path, int64_t until_ns) override {
    if (path.starts_with("/api/v1/nodes/")) return QuarrelsomeServer::Get(path, until_ns);
    json list = {{"metadata", {{"resourceVersion", "1"}}}, {"items", json::array()}};
    if (stored_.is_object()) list["items"].push_back(stored_);
    return ApiAnswer{200, list.dump()};
  }
  base::Result<ApiAnswer> Post(const std::string&, const std::string& body) override {
    stored_ = json::parse(body);
    return ApiAnswer{201, body};
  }
  base::Result<ApiAnswer> Watch(const std::string&,
                                const std::function<bool(const std::string&)>&) override {
    if (++watches_ == kEnoughWatches) enough.set_value();
    return ApiAnswer{status, ""};
  }

  static constexpr int kEnoughWatches = 4;
  int status = 410;

 private:
  json stored_;
  int watches_ = 0;
};

int64_t NsForFourWatches(int status) {
  WatchlessServer server;
  server.status = status;
  SlicePublisher publisher(&server, "n1", [](const std::string& text) { ADD_FAILURE() << text; });
  publisher.Offer({{{.uuid = "GPU-1", .memory_bytes = int64_t{1} << 34}}, {}});
  const int64_t began_ns = base::NowNs(CLOCK_MONOTONIC);
  std::thread publishing([&] { publisher.Run(); });
  server.enough.get_future().wait();
  const int64_t took_ns = base::NowNs(CLOCK_MONOTONIC) - began_ns;
  publisher.Stop();
  publishing.join();
  return took_ns;
}

// Regression: a server that ended each watch at once was asked as fast as it answered.
TEST(SlicePublisherTest, ListsAgainAfterWatchesThatEndAtOnceAtGrowingIntervals) {
  // The first is repeated at once; then come pauses of 0.1 and 0.2 s.
  EXPECT_GE(NsForFourWatches(410), 300'000'000);
  EXPECT_GE(NsForFourWatches(200), 300'000'000);
}

}  // namespace
}  // namespace spillway::kubernetes
