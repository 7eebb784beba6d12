#include "agent/loop/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "agent/arbiter/amounts.h"

namespace spillway::agent {
namespace {

// Quotes values with spaces and replaces characters that would end the quotes.
std::string Value(std::string text) {
  for (char& c : text) {
    if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < 0x20) c = '?';
  }
  return text.find(' ') == std::string::npos && !text.empty() ? text : "\"" + text + "\"";
}

constexpr spdlog::level::level_enum kNoLevel = spdlog::level::n_levels;

spdlog::level::level_enum LevelNamed(const std::string& name) {
  if (name == "trace") return spdlog::level::trace;
  if (name == "debug") return spdlog::level::debug;
  if (name == "info") return spdlog::level::info;
  if (name == "warn") return spdlog::level::warn;
  if (name == "error") return spdlog::level::err;
  return kNoLevel;
}

// Syslog priorities, as sd-daemon(3) wants them at the beginning of a line.
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    const char* const priority = PriorityOf(message.level);
    out.append(priority, priority + std::strlen(priority));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }

 private:
  static const char* PriorityOf(spdlog::level::level_enum level) {
    if (level <= spdlog::level::debug) return "<7>";
    if (level == spdlog::level::info) return "<6>";
    return level == spdlog::level::warn ? "<4>" : "<3>";
  }
};

// journald adds the time, and takes the level from the priority.
std::unique_ptr<spdlog::formatter> FormatterFor(bool to_journal) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JournalPriority>('*');
  formatter->set_pattern(to_journal ? "%*%v" : "%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  return formatter;
}

}  // namespace

void StartLog(const std::string& level) {
  auto logger = std::make_shared<spdlog::logger>("spillwayd",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(FormatterFor(std::getenv("JOURNAL_STREAM") != nullptr));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(logger);
  SetLogLevel(level);
}

bool SetLogLevel(const std::string& level) {
  const spdlog::level::level_enum wanted = LevelNamed(level);
  if (wanted == kNoLevel) return false;
  spdlog::set_level(wanted);
  return true;
}

void LogNote(const std::string& line) { spdlog::debug("{}", line); }
void LogInfo(const std::string& line) { spdlog::info("{}", line); }
void LogWarning(const std::string& line) { spdlog::warn("{}", line); }
void LogError(const std::string& line) { spdlog::error("{}", line); }

std::string StartLine(const JobReport& job) {
  return fmt::format("job started job={} source={} uid={} command={}", Value(job.name),
                     NameOf(job.source), job.uid, Value(job.command));
}

std::string EndLine(const JobReport& job) {
  TenancyReport sum;
  for (const TenancyReport& tenancy : job.tenancies) {
    AddTo(sum.to_host_bytes, tenancy.to_host_bytes);
    AddTo(sum.to_device_bytes, tenancy.to_device_bytes);
    AddTo(sum.stall_ns, tenancy.stall_ns);
    AddTo(sum.iterations, tenancy.iterations);
    AddTo(sum.demand_fetches, tenancy.demand_fetches);
    AddTo(sum.refused_allocations, tenancy.refused_allocations);
  }
  return fmt::format(
      "job ended job={} source={} uid={} command={} seconds={:.3f} devices={} iterations={} "
      "to_host_bytes={} "
      "to_device_bytes={} stall_seconds={:.3f} demand_fetches={} refused_allocations={} exit={}",
      Value(job.name), NameOf(job.source), job.uid, Value(job.command),
      static_cast<double>(job.age_ns) / 1e9, job.tenancies.size(), sum.iterations,
      sum.to_host_bytes, sum.to_device_bytes, static_cast<double>(sum.stall_ns) / 1e9,
      sum.demand_fetches, sum.refused_allocations,
      job.exit_code ? std::to_string(*job.exit_code) : "unknown");
}

}  // namespace spillway::agent
