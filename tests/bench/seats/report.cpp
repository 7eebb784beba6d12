#include "tests/bench/seats/report.h"

#include <cstdio>

#include "base/units.h"

namespace spillway::seats {
namespace {

std::string Format(const char* format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }
double Gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / static_cast<double>(base::kGibibyte);
}

const Row* Find(const std::vector<Row>& rows, const Row& like, const char* policy) {
  for (const Row& row : rows) {
    if (row.device == like.device && row.scenario == like.scenario && row.policy == policy)
      return &row;
  }
  return nullptr;
}

std::string Batch(const Row& row) {
  if (row.policy == kAlone) return "- | -";
  return Format("%.1f %% | %.2f", 100 * row.result.batch_share, row.result.least_part);
}

}  // namespace

std::string TableOf(const std::vector<Row>& rows) {
  std::string text =
      "| device | jobs | policy | p50 s | p95 s | unanswered | batch steps, of one after another "
      "| least batch job, of an equal part | GiB moved | swaps | longest wait s |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const Row& row : rows) {
    const Result& it = row.result;
    text +=
        Format("| %s | %s | %s | %.2f | %.2f | %ld of %zu | ", row.device.c_str(),
               row.scenario.c_str(), row.policy.c_str(), Seconds(it.LatencyNs(50)),
               Seconds(it.LatencyNs(95)), static_cast<long>(it.unanswered), it.latencies_ns.size());
    text += Batch(row) + Format(" | %.0f | %ld | %.1f |\n", Gibibytes(it.moved_bytes),
                                static_cast<long>(it.swaps), Seconds(it.longest_wait_ns));
  }
  return text;
}

std::string JsonOf(const std::vector<Row>& rows) {
  std::string text = "[";
  for (const Row& row : rows) {
    const Result& it = row.result;
    text += Format("%s\n {\"device\": \"%s\", \"jobs\": \"%s\", \"policy\": \"%s\", ",
                   text.size() > 1 ? "," : "", row.device.c_str(), row.scenario.c_str(),
                   row.policy.c_str());
    text += Format(
        "\"oversubscription\": %.2f, \"p50_ns\": %ld, \"p95_ns\": %ld, \"requests\": %zu, "
        "\"unanswered\": %ld, ",
        row.oversubscription, static_cast<long>(it.LatencyNs(50)),
        static_cast<long>(it.LatencyNs(95)), it.latencies_ns.size(),
        static_cast<long>(it.unanswered));
    text += Format(
        "\"batch_steps\": %ld, \"batch_share\": %.4f, \"least_part\": %.4f, \"moved_bytes\": %ld, "
        "\"swaps\": %ld, \"longest_wait_ns\": %ld}",
        static_cast<long>(it.batch_steps), it.batch_share, it.least_part,
        static_cast<long>(it.moved_bytes), static_cast<long>(it.swaps),
        static_cast<long>(it.longest_wait_ns));
  }
  return text + "\n]\n";
}

Verdict JudgeGoal(const std::vector<Row>& rows) {
  Verdict verdict;
  for (const Row& turns : rows) {
    if (turns.scenario != kGoal || turns.policy != kTurns) continue;
    const Row* const first = Find(rows, turns, kFirstCome);
    if (first == nullptr) continue;
    const double better =
        Seconds(first->result.LatencyNs(95)) / Seconds(turns.result.LatencyNs(95));
    const double loss = 1 - turns.result.batch_share / first->result.batch_share;
    const bool is_met = better >= kLeastBetter && loss <= kMostBatchLoss;
    verdict.is_met = verdict.is_met && is_met;
    verdict.text += Format(
        "%s, three batch jobs at 2x: p95 %.1f times better than %s (goal: %.0f), batch steps "
        "%.1f %% fewer (goal: at most %.0f %%): %s\n",
        turns.device.c_str(), better, kFirstCome, kLeastBetter, 100 * loss, 100 * kMostBatchLoss,
        is_met ? "met" : "missed");
  }
  return verdict;
}

}  // namespace spillway::seats
