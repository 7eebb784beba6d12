#include "agent/loop/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

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

// journald adds the time, and takes the level from the priority. JSON lines are whole already.
std::unique_ptr<spdlog::formatter> FormatterFor(bool to_journal, LogFormat format) {
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<JournalPriority>('*');
  const bool is_json = format == LogFormat::kJson;
  formatter->set_pattern(to_journal ? "%*%v" : is_json ? "%v" : "%Y-%m-%dT%H:%M:%S.%eZ %l %v");
  return formatter;
}

LogFormat log_format = LogFormat::kText;  // set before other threads begin

std::string UtcNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[32];
  const size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", std::string_view(text, size), now.tv_nsec / 1'000'000);
}

std::string LineOf(spdlog::level::level_enum level, const LogEvent& event) {
  const auto name = spdlog::level::to_string_view(level);
  nlohmann::ordered_json json = {{"time", UtcNow()},
                                 {"level", std::string(name.data(), name.size())},
                                 {"message", event.message}};
  for (const auto& [key, value] : event.figures)
    std::visit([&, key = key](const auto& one) { json[key] = one; }, value);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void Write(spdlog::level::level_enum level, const LogEvent& event) {
  if (!spdlog::should_log(level)) return;
  spdlog::log(level, "{}", log_format == LogFormat::kJson ? LineOf(level, event) : LogText(event));
}

std::string TextOfValue(const LogEvent::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return Value(*text);
  if (const auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  return fmt::format("{:.3f}", std::get<double>(value));
}

}  // namespace

void StartLog(const std::string& level, LogFormat format) {
  log_format = format;
  auto logger = std::make_shared<spdlog::logger>("spillwayd",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_formatter(FormatterFor(std::getenv("JOURNAL_STREAM") != nullptr, format));
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

void LogNote(const std::string& line) { Write(spdlog::level::debug, {line}); }
void LogInfo(const std::string& line) { Write(spdlog::level::info, {line}); }
void LogInfo(const LogEvent& event) { Write(spdlog::level::info, event); }
void LogWarning(const std::string& line) { Write(spdlog::level::warn, {line}); }
void LogError(const std::string& line) { Write(spdlog::level::err, {line}); }

std::string LogText(const LogEvent& event) {
  std::string text = event.message;
  for (const auto& [key, value] : event.figures)
    text += " " + std::string(key) + "=" + TextOfValue(value);
  return text;
}

LogEvent StartOf(const JobReport& job) {
  return {"job started",
          {{"job", job.name},
           {"source", NameOf(job.source)},
           {"uid", int64_t{job.uid}},
           {"command", job.command}}};
}

LogEvent EndOf(const JobReport& job) {
  TenancyReport sum;
  for (const TenancyReport& tenancy : job.tenancies) {
    AddTo(sum.to_host_bytes, tenancy.to_host_bytes);
    AddTo(sum.to_device_bytes, tenancy.to_device_bytes);
    AddTo(sum.stall_ns, tenancy.stall_ns);
    AddTo(sum.iterations, tenancy.iterations);
    AddTo(sum.demand_fetches, tenancy.demand_fetches);
    AddTo(sum.refused_allocations, tenancy.refused_allocations);
  }
  LogEvent event = StartOf(job);
  event.message = "job ended";
  event.figures.insert(event.figures.end(),
                       {{"seconds", static_cast<double>(job.age_ns) / 1e9},
                        {"devices", static_cast<int64_t>(job.tenancies.size())},
                        {"iterations", sum.iterations},
                        {"to_host_bytes", sum.to_host_bytes},
                        {"to_device_bytes", sum.to_device_bytes},
                        {"stall_seconds", static_cast<double>(sum.stall_ns) / 1e9},
                        {"demand_fetches", sum.demand_fetches},
                        {"refused_allocations", sum.refused_allocations},
                        {"exit", job.exit_code ? LogEvent::Value(int64_t{*job.exit_code})
                                               : LogEvent::Value("unknown")}});
  return event;
}

}  // namespace spillway::agent
