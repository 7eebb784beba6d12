// A process of the simulated node that takes turns and stores evicted memory in its file. Its lease
// client and its turns are real, its device memory is a number, its file is real.
//
// It computes while its gate is open and it has memory. Each block that it stores has a word of its
// own, which it must read back.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "interposer/lease/lease_client.h"
#include "interposer/planning/device_turn.h"
#include "tests/unit/agent/fake_node.h"

namespace spillway::agent {

// One device of a process.
class TierPart {
 public:
  static constexpr int64_t kBlock = kGiB / 4;  // of evicted memory in a file: one word there

  TierPart(uint64_t owner, int64_t need_bytes)
      : need_bytes(need_bytes), wanted_bytes(need_bytes), owner_(owner) {}

  interposer::DeviceUse Read() const {
    interposer::DeviceUse use;
    use.wanted_bytes = wanted_bytes;
    use.allocated_bytes = allocated_bytes;
    use.resident_bytes = held_bytes;
    use.host_bytes = std::min(host_budget_bytes, on_host_bytes());
    use.account.ordinary_bytes = on_host_bytes() - use.host_bytes;
    use.host_need_bytes = std::max<int64_t>(need_bytes + kGiB - stored_bytes(), 0);
    use.turns = {.operations = operations, .turns = turns};
    use.spill = {.serial = serial_,
                 .stored_bytes = stored_bytes(),
                 .failures = failures_,
                 .file_bytes = file_bytes_};
    use.lost = {.waited_ns = waited_ns, .waited_of_ns = computed_ns};
    return use;
  }

  // Grants beyond what the job may have now wait until its calls have ended.
  void SetBudget(int64_t bytes, bool is_gate_held, int64_t now_ns) {
    granted_bytes = bytes;
    if (is_gate_held && bytes < budget_bytes)
      turn.BeginDraining(static_cast<uint64_t>(now_ns));
    else
      Apply();
  }
  void Apply() {
    turn.EndDraining();
    budget_bytes = granted_bytes;
  }

  void TakeFile(const protocol::SpillFile& message, base::UniqueFd file) {
    struct stat facts {};
    ASSERT_EQ(fstat(file.get(), &facts), 0);
    ASSERT_EQ(facts.st_size, 0) << "somebody has written there";
    ASSERT_FALSE(file_) << "process " << owner_ << " has a file already";
    file_ = std::move(file);
    serial_ = message.serial;
    file_bytes_ = message.size_bytes;
    must_return_ = has_failed_ = false;
  }
  void ReturnAll() { must_return_ = true; }

  // Memory moves by at most `most_bytes`.
  void Move(bool rests, bool computes, int64_t most_bytes, bool writes_fail) {
    if (held_bytes > budget_bytes && !is_stuck)
      held_bytes -= std::min(most_bytes, held_bytes - budget_bytes);
    if (file_ && rests && !must_return_)
      Store(writes_fail);
    else if (file_)
      Return();
    if (computes) {
      const int64_t room_bytes = std::min(budget_bytes - held_bytes, on_host_bytes());
      held_bytes += std::clamp<int64_t>(room_bytes, 0, most_bytes);
    }
  }
  void Allocate(int64_t bytes) {
    const int64_t more_bytes = std::min(bytes, need_bytes - allocated_bytes);
    wanted_bytes = allocated_bytes + more_bytes;
    if (budget_bytes == 0) return;
    allocated_bytes += more_bytes;
    held_bytes += std::clamp<int64_t>(budget_bytes - held_bytes, 0, more_bytes);
  }

  int64_t stored_bytes() const { return static_cast<int64_t>(stored_.size()) * kBlock; }
  int64_t on_host_bytes() const { return allocated_bytes - held_bytes - stored_bytes(); }
  bool has_file() const { return static_cast<bool>(file_); }

  const int64_t need_bytes;
  int64_t wanted_bytes;  // at first all that it may need
  int64_t allocated_bytes = 0, held_bytes = 0;
  int64_t granted_bytes = 0, budget_bytes = 0, host_budget_bytes = 0;
  bool is_stuck = false;  // its memory cannot leave for now
  interposer::DeviceTurn turn;
  int64_t operations = 0, turns = 0, waited_ns = 0, computed_ns = 0;

 private:
  static constexpr int kBlocksAtOnce = 8;

  uint64_t WordOf(size_t block) const { return owner_ << 32 | serial_ << 16 | block; }

  void Store(bool fails) {
    for (int i = 0; i < kBlocksAtOnce && !has_failed_; ++i) {
      if (on_host_bytes() < kBlock || stored_bytes() + kBlock > file_bytes_) return;
      const uint64_t word = WordOf(stored_.size());
      const auto place = static_cast<off_t>(stored_.size() * sizeof word);
      has_failed_ = fails || pwrite(file_.get(), &word, sizeof word, place) != sizeof word;
      failures_ += has_failed_;
      if (!has_failed_) stored_.push_back(word);
    }
  }
  void Return() {
    for (int i = 0; i < kBlocksAtOnce && !stored_.empty(); ++i) {
      uint64_t word = 0;
      const auto place = static_cast<off_t>((stored_.size() - 1) * sizeof word);
      ASSERT_EQ(pread(file_.get(), &word, sizeof word, place), ssize_t{sizeof word});
      ASSERT_EQ(word, stored_.back()) << "wrong bytes in the file of process " << owner_;
      stored_.pop_back();
    }
    if (!stored_.empty()) return;
    file_.Reset();
    serial_ = 0;
    file_bytes_ = 0;
  }

  const uint64_t owner_;
  base::UniqueFd file_;
  uint64_t serial_ = 0;
  int64_t file_bytes_ = 0;
  bool must_return_ = false, has_failed_ = false;
  int64_t failures_ = 0;
  std::vector<uint64_t> stored_;
};

class TierProcess final : public interposer::LeaseSubject, public interposer::LeaseConnector {
 public:
  using Connector = std::function<std::unique_ptr<protocol::Channel>(TierProcess*)>;

  TierProcess(Connector connect, std::shared_ptr<FakeProcess> process, pid_t leader,
              const std::vector<int64_t>& needs_bytes)
      : identity(std::move(process)),
        leader(leader != 0 ? leader : identity->pid),
        connect_(std::move(connect)),
        client_({leader, 0}, this, this) {
    constexpr std::array kDevices = {kFirstDevice, kSecondDevice};
    for (size_t i = 0; i < needs_bytes.size(); ++i) {
      parts.emplace_back(static_cast<uint64_t>(identity->pid), needs_bytes[i]);
      if (needs_bytes[i] > 0) client_.Use(static_cast<uint32_t>(i), kDevices[i], 16 * kGiB);
    }
  }

  interposer::DeviceUse Read(uint32_t device) override {
    interposer::DeviceUse use = parts[device].Read();
    use.active = IsActive();
    return use;
  }
  void SetTurn(const protocol::Turn& message, int64_t patience_until_ns) override {
    parts[message.device].turn.Hear(message, static_cast<uint64_t>(patience_until_ns));
  }
  void SetBudget(const protocol::Grant& grant, int64_t) override {
    has_grant = true;
    parts[grant.device].SetBudget(grant.budget_bytes, IsGateHeld(), now_ns_);
  }
  bool MayConfirm(uint32_t device) override { return !parts[device].turn.is_draining(); }
  void SetHostLimit(const protocol::Grant& grant) override {
    parts[grant.device].host_budget_bytes = grant.host_bytes;
  }
  void NoteAgentAbsent(uint32_t device, interposer::Absence) override {
    parts[device].turn.Forget();
  }
  void Admission(const protocol::Admission&) override {}
  void TakeSpillFile(const protocol::SpillFile& file, base::UniqueFd descriptor) override {
    parts[file.device].TakeFile(file, std::move(descriptor));
  }
  void ReturnSpilled(uint32_t device) override { parts[device].ReturnAll(); }
  std::unique_ptr<protocol::Channel> Connect() override { return connect_(this); }

  void Step(int64_t now_ns, base::Prng& random, bool writes_fail) {
    if (stopped) return;
    const int64_t passed_ns = std::min(now_ns - now_ns_, kMostPassedNs);
    now_ns_ = now_ns;
    client_.Step(now_ns);
    const auto clock_ns = static_cast<uint64_t>(now_ns);
    for (TierPart& part : parts) {
      if (part.turn.IsDrained(random.Below(4) == 0, clock_ns)) part.Apply();
      part.turns += part.turn.TryToStart(part.budget_bytes, 16 * kGiB, clock_ns);
      const bool rests = !IsActive() || part.turn.Waits();
      part.Move(rests, IsActive() && !part.turn.Waits(), speed * passed_ns, writes_fail);
    }
    Compute(passed_ns);
  }

  // Memory that is not there makes it slower, and none at all stops it.
  void Compute(int64_t passed_ns) {
    if (work_ns <= 0 || !has_grant || IsGateHeld()) return;
    double pace = 1;
    for (TierPart& part : parts) {
      if (part.need_bytes == 0) continue;
      part.Allocate(2 * kGiB);
      if (part.budget_bytes == 0) return;
      pace = std::min(pace, static_cast<double>(part.held_bytes + kGiB) /
                                static_cast<double>(part.allocated_bytes + kGiB));
    }
    const auto done_ns = static_cast<int64_t>(pace * static_cast<double>(passed_ns));
    for (TierPart& part : parts) {
      ++part.operations;
      part.computed_ns += passed_ns;
      part.waited_ns += passed_ns - done_ns;
    }
    work_ns -= done_ns;
    computed_at_ns = now_ns_;
  }

  bool IsActive() const { return work_ns > 0 || now_ns_ - computed_at_ns < kIdleNs; }
  bool IsGateHeld() const {
    return std::any_of(parts.begin(), parts.end(),
                       [](const TierPart& part) { return part.turn.HoldsGate(); });
  }
  bool is_served() const { return client_.is_served(); }
  int64_t now_ns() const { return now_ns_; }

  std::shared_ptr<FakeProcess> identity;
  const pid_t leader;
  std::vector<TierPart> parts;  // by its devices' numbers; one that it does not use needs nothing
  int64_t work_ns = 0;          // still to compute
  int64_t computed_at_ns = 0;
  int64_t speed = 8;  // bytes that it moves in a nanosecond
  bool stopped = false, has_grant = false;
  SessionId session{};

 private:
  static constexpr int64_t kIdleNs = 1'000'000'000;
  static constexpr int64_t kMostPassedNs = 100'000'000;

  const Connector connect_;
  interposer::LeaseClient client_;
  int64_t now_ns_ = 0;
};

}  // namespace spillway::agent
