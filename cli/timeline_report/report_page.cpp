#include "cli/timeline_report/report_page.h"

#include <algorithm>
#include <cstdio>

#include "base/size_text.h"
#include "cli/html_text.h"
#include "cli/timeline_report/run_figures.h"
#include "cli/timeline_report/timeline_picture.h"

namespace spillway::cli {
namespace {

constexpr std::int64_t kZoomParts = 8;
constexpr std::size_t kListedBuffers = 20, kListedSizes = 8;

constexpr char kStyle[] = R"(
:root{color-scheme:light dark;--ink:#1c2430;--soft:#5b6675;--paper:#fff;--card:#f4f6f8;--line:#d5dbe2;--resident:#2f6fb3;
--wanted:#a4512d;--budget:#1c2430;--compute:#3a7d44;--out:#a4512d;--in:#2f6fb3;--stall:#b3261e}
@media (prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#9aa6b4;--paper:#12171e;--card:#1b222b;--line:#333d49;
--resident:#5b9bdd;--wanted:#e39a72;--budget:#e4e9ef;--compute:#6fbf7a;--out:#e39a72;--in:#5b9bdd;--stall:#ff8a80}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:62rem;margin:0 auto;padding:1rem}
h1{font-size:1.4rem;margin:0}h2{font-size:1.15rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:1.2rem 0 .3rem}
p{margin:.4rem 0}.soft{color:var(--soft)}.note{border-left:.25rem solid var(--stall);padding-left:.6rem}
code{overflow-wrap:anywhere}
dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(9.5rem,1fr));gap:.6rem;margin:1rem 0}
dl div{background:var(--card);border-radius:.4rem;padding:.5rem .7rem}dt{color:var(--soft);font-size:.85rem}
dd{margin:0;font-weight:600}
.scroll{overflow-x:auto}table{margin:.8rem 0;border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft)}th,td{padding:.25rem .7rem .25rem 0;text-align:right;white-space:nowrap;
border-bottom:1px solid var(--line)}th:first-child,td:first-child{text-align:left}
.prose th:last-child,.prose td:last-child{text-align:left}
svg{width:100%;min-width:44rem;height:auto;display:block}svg text{font-size:12px;fill:var(--soft)}.grid{stroke:var(--line)}
.lane{fill:var(--card)}path.resident{fill:var(--resident);fill-opacity:.35;stroke:var(--resident)}
path.wanted{fill:none;stroke:var(--wanted);stroke-width:1.5}path.budget{fill:none;stroke:var(--budget);stroke-width:1.5;
stroke-dasharray:6 4}.compute{fill:var(--compute)}.out{fill:var(--out)}.in{fill:var(--in)}.stall{fill:var(--stall)}
summary{cursor:pointer}
.key i{display:inline-block;width:1.2rem;height:0;border-top:3px solid;margin:0 .3rem 0 .8rem;vertical-align:middle}
)";

std::string Bytes(std::int64_t bytes) {
  return base::FormatBytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

std::string Share(std::int64_t part, std::int64_t whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%",
                whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0);
  return text;
}

// StallCause in execute/state/counters.h.
std::string Explained(const std::string& cause) {
  if (cause == "demand") return "what a call names was away, and no plan had asked for it";
  if (cause == "late_prefetch") return "a plan had asked for it, and there was no memory yet";
  if (cause == "no_memory") return "memory for a new allocation";
  if (cause == "pool_full") return "host memory, before something could leave";
  if (cause == "idle") return "the device to be idle, while kernels may follow pointers";
  if (cause == "shrink") return "its budget, which had become less, to be met";
  return "";
}

class Table {
 public:
  enum class Last { kFigure, kProse };

  Table(const std::string& caption, const std::vector<std::string>& columns,
        Last last = Last::kFigure) {
    text_ = "<div class=\"scroll\" tabindex=\"0\"><table" +
            std::string(last == Last::kProse ? " class=\"prose\"" : "") + "><caption>" +
            EscapeHtml(caption) + "</caption><thead><tr>";
    for (const std::string& column : columns)
      text_ += "<th scope=\"col\">" + EscapeHtml(column) + "</th>";
    text_ += "</tr></thead><tbody>\n";
  }
  void Row(const std::vector<std::string>& cells) {
    text_ += "<tr>";
    for (const std::string& cell : cells) text_ += "<td>" + EscapeHtml(cell) + "</td>";
    text_ += "</tr>\n";
  }
  std::string End() { return text_ + "</tbody></table></div>\n"; }

 private:
  std::string text_;
};

std::string Tile(const std::string& name, const std::string& value) {
  return "<div><dt>" + EscapeHtml(name) + "</dt><dd>" + EscapeHtml(value) + "</dd></div>\n";
}

std::string Paragraph(const std::string& text) { return "<p>" + EscapeHtml(text) + "</p>\n"; }

std::string Headline(const std::string& text) { return "<h2>" + EscapeHtml(text) + "</h2>\n"; }

class DevicePart {
 public:
  DevicePart(int number, const RecordedDevice& device)
      : number_(number), device_(device), figures_(ComputeFigures(device)) {}

  std::string Write() { return Tiles() + Pictures() + Plans() + Moved() + Stalls() + Idle(); }

 private:
  std::int64_t Length() const { return figures_.span.end_ns - figures_.span.begin_ns; }
  std::string Since(std::int64_t time_ns) const {
    return FormatTime(std::max<std::int64_t>(time_ns - figures_.span.begin_ns, 0));
  }

  std::string Tiles() const {
    std::string text = "<dl>\n" + Tile("Time", FormatTime(Length())) +
                       Tile("Budget", Bytes(figures_.budget_bytes)) +
                       Tile("Most on the device", Bytes(figures_.resident_peak_bytes)) +
                       Tile("Most wanted", Bytes(figures_.wanted_peak_bytes)) +
                       Tile("Most host memory", Bytes(figures_.host_peak_bytes)) +
                       Tile("Copied out", Bytes(figures_.moved.out_bytes)) +
                       Tile("Copied in", Bytes(figures_.moved.in_bytes)) +
                       Tile("Computing", Share(figures_.computing_ns, Length()));
    return text + "</dl>\n";
  }

  std::string Pictures() const {
    const std::string id = "d" + std::to_string(number_);
    std::string text = Headline("Memory over time");
    text +=
        "<p class=\"key soft\"><i style=\"color:var(--resident)\"></i>on the device<i "
        "style=\"color:var(--wanted)\"></i>"
        "wanted<i style=\"color:var(--budget)\"></i>budget</p>\n";
    text += Scrolling(TimelinePicture(
        device_, figures_.span, figures_.span.begin_ns,
        {id + "-all", "The whole run",
         "On the device at most " + Bytes(figures_.resident_peak_bytes) + " of a budget of " +
             Bytes(figures_.budget_bytes) + ", wanted " + Bytes(figures_.wanted_peak_bytes)}));
    text += Empty() + Zoomed(id);
    if (figures_.measured_iteration_ns == 0) return text;
    text += "<h3>One iteration by the plan</h3>\n";
    return text + Scrolling(TimelinePicture(
                      device_, figures_.typical_iteration, figures_.typical_iteration.begin_ns,
                      {id + "-one", "One iteration",
                       "It takes " + FormatTime(figures_.measured_iteration_ns)}));
  }

  std::string Empty() const {
    std::string text;
    for (const RecordedSpan& empty : figures_.empty)
      text +=
          Paragraph("Nothing was recorded from " + Since(empty.begin_ns) + " to " +
                    Since(empty.end_ns) + " (" + Share(empty.end_ns - empty.begin_ns, Length()) +
                    " of the run): the program computed and copied nothing on the device then, and "
                    "did not wait "
                    "for memory.");
    return text;
  }

  // Parts at full width: the page runs no script.
  std::string Zoomed(const std::string& id) const {
    if (Length() < kZoomParts) return "";
    std::string text = "<h3>Closer</h3>\n";
    for (std::int64_t part = 0; part < kZoomParts; ++part) {
      const RecordedSpan within = {
          figures_.span.begin_ns + Length() / kZoomParts * part,
          part + 1 == kZoomParts ? figures_.span.end_ns
                                 : figures_.span.begin_ns + Length() / kZoomParts * (part + 1)};
      const std::string name = Since(within.begin_ns) + " to " + Since(within.end_ns);
      text += "<details><summary>" + EscapeHtml(name) + "</summary>\n" +
              Scrolling(TimelinePicture(
                  device_, within, figures_.span.begin_ns,
                  {id + "-part" + std::to_string(part), name, "A part of the run"})) +
              "</details>\n";
    }
    return text;
  }

  static std::string Scrolling(const std::string& picture) {
    return "<div class=\"scroll\" tabindex=\"0\">" + picture + "</div>\n";
  }

  std::string Plans() const {
    std::string text = Headline("Plan");
    if (device_.plans.empty())
      return text + Paragraph(
                        "No plan was followed: memory moved when something else needed its place, "
                        "or not at all.");
    Table table("Plans that were adopted", {"Strategy", "At", "Budget to plan with", "Operations",
                                            "Actions", "Predicted iteration"});
    for (const RecordedPlan& plan : device_.plans)
      table.Row({plan.strategy, Since(plan.time_ns), Bytes(plan.budget_bytes),
                 std::to_string(plan.operations), std::to_string(plan.actions),
                 FormatTime(plan.predicted_ns)});
    text += table.End();
    return text + Iterations();
  }

  std::string Iterations() const {
    if (figures_.measured_iteration_ns == 0)
      return Paragraph("No whole iteration of the last plan was seen.");
    std::int64_t count = 0, missed = 0, least_ns = INT64_MAX, most_ns = 0;
    for (const RecordedIteration& iteration : device_.iterations) {
      if (iteration.begin_ns < device_.plans.back().time_ns) continue;
      const std::int64_t length_ns = iteration.end_ns - iteration.begin_ns;
      ++count;
      missed += iteration.misses > 0;
      least_ns = std::min(least_ns, length_ns);
      most_ns = std::max(most_ns, length_ns);
    }
    const std::int64_t predicted_ns = device_.plans.back().predicted_ns;
    Table table("Iterations of the last plan", {"", "Time", "Of the prediction"});
    const auto row = [&](const char* name, std::int64_t time_ns) {
      table.Row({name, FormatTime(time_ns), Share(time_ns, predicted_ns)});
    };
    row("predicted", predicted_ns);
    row("measured, median", figures_.measured_iteration_ns);
    row("shortest", least_ns);
    row("longest", most_ns);
    return table.End() +
           Paragraph(std::to_string(count) + " iterations, " + std::to_string(missed) +
                     " of them with operations that the plan does not know.");
  }

  std::string Causes(const char* caption, const std::map<std::string, MovedByCause>& causes) const {
    if (causes.empty()) return "";
    Table table(caption, {"Because of", "Times", "Bytes", "Copying"});
    for (const auto& [cause, moved] : causes)
      table.Row(
          {cause, std::to_string(moved.times), Bytes(moved.bytes), FormatTime(moved.copy_ns)});
    return table.End();
  }

  std::string Moved() const {
    std::string text = Headline("What was moved");
    if (figures_.buffers.empty() && figures_.moved.dropped == 0)
      return text + Paragraph("Nothing: what was wanted fitted the budget.");
    const MovedBuffer& all = figures_.moved;
    text += "<dl>\n" + Tile("Prefetches used", std::to_string(all.hits)) +
            Tile("Prefetches late", std::to_string(all.late)) +
            Tile("Prefetches not used", std::to_string(all.unused)) +
            Tile("Left without a copy", std::to_string(all.dropped)) + "</dl>\n" +
            Causes("Copied out of the device", figures_.out_by_cause) +
            Causes("Copied back", figures_.in_by_cause);
    return text + Sizes() + Buffers();
  }

  static std::vector<std::string> MovedCells(const std::string& first, const MovedBuffer& moved) {
    return {first,
            Bytes(moved.size_bytes),
            Bytes(moved.out_bytes),
            std::to_string(moved.times_out),
            Bytes(moved.in_bytes),
            std::to_string(moved.times_in),
            FormatTime(moved.copy_ns),
            std::to_string(moved.dropped),
            std::to_string(moved.hits),
            std::to_string(moved.late),
            std::to_string(moved.unused)};
  }
  static std::vector<std::string> MovedColumns(const std::string& first) {
    return {first,     "Size",    "Out",  "Times", "In",      "Times",
            "Copying", "Dropped", "Used", "Late",  "Not used"};
  }
  static std::string Listed(const std::string& what, std::size_t listed, std::size_t all) {
    return what + " that moved most (" + std::to_string(listed) + " of " + std::to_string(all) +
           ")";
  }

  std::string Sizes() const {
    const std::size_t listed = std::min(kListedSizes, figures_.sizes.size());
    Table table(Listed("Sizes", listed, figures_.sizes.size()), MovedColumns("Allocations"));
    for (std::size_t i = 0; i < listed; ++i)
      table.Row(MovedCells(std::to_string(figures_.sizes[i].allocations), figures_.sizes[i].moved));
    return table.End();
  }

  std::string Buffers() const {
    const std::size_t listed = std::min(kListedBuffers, figures_.buffers.size());
    Table table(Listed("Allocations", listed, figures_.buffers.size()), MovedColumns("Number"));
    for (std::size_t i = 0; i < listed; ++i)
      table.Row(MovedCells(std::to_string(figures_.buffers[i].buffer), figures_.buffers[i]));
    return table.End();
  }

  std::string Stalls() const {
    std::string text = Headline("Waits of the program for memory");
    if (figures_.stalls.empty()) return text + Paragraph("None.");
    Table table("By cause",
                {"Cause", "Times", "Together", "Longest", "Of the run", "The program waited for"},
                Table::Last::kProse);
    for (const auto& [cause, stall] : figures_.stalls)
      table.Row({cause, std::to_string(stall.times), FormatTime(stall.total_ns),
                 FormatTime(stall.longest_ns), Share(stall.total_ns, Length()), Explained(cause)});
    return text + table.End();
  }

  std::string Idle() const {
    std::string text = Headline("Idle times");
    Table device("The device computed nothing: the longest times, and what went on then",
                 {"At", "Length", "Copies in", "Copies out", "Program waited for memory"});
    for (const IdleDevice& idle : figures_.idle_device)
      device.Row({Since(idle.begin_ns), FormatTime(idle.end_ns - idle.begin_ns),
                  FormatTime(idle.copy_in_ns), FormatTime(idle.copy_out_ns),
                  FormatTime(idle.stall_ns)});
    if (!figures_.idle_device.empty()) text += device.End();
    Table buffers("Nobody used an allocation: the largest times by size and length",
                  {"Number", "Size", "At", "Length", "Was away"});
    for (const IdleBuffer& idle : figures_.idle_buffers)
      buffers.Row({std::to_string(idle.buffer), Bytes(idle.size_bytes), Since(idle.begin_ns),
                   FormatTime(idle.end_ns - idle.begin_ns), idle.was_away ? "yes" : "no"});
    if (!figures_.idle_buffers.empty()) text += buffers.End();
    return text;
  }

  const int number_;
  const RecordedDevice& device_;
  const RunFigures figures_;
};

std::string Notes(const RecordedRun& run) {
  std::string text;
  if (!run.is_whole)
    text +=
        "<p class=\"note\">The trace has no end: the process was killed, is still running, or "
        "could not "
        "write on. This is what "
        "it did until then.</p>\n";
  if (run.lost_events > 0)
    text += "<p class=\"note\">" + std::to_string(run.lost_events) +
            " events are missing: they came faster than they could be written. Sums are too "
            "small.</p>\n";
  if (run.devices.empty()) text += "<p class=\"note\">The job allocated no device memory.</p>\n";
  return text;
}

}  // namespace

std::string ReportPage(const RecordedRun& run) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<title>Spillway: what a job did</title><style>";
  page += kStyle;
  page += "</style></head><body>\n<h1>What a job did</h1>\n<p><code>" + EscapeHtml(run.command) +
          "</code></p>\n" + Notes(run);
  for (const auto& [number, device] : run.devices) {
    if (run.devices.size() > 1) page += "<h1>Device " + std::to_string(number) + "</h1>\n";
    page += DevicePart(number, device).Write();
  }
  return page +
         "<p class=\"soft\">Times are the device's own, by its events; on a simulated device they "
         "are "
         "simulated. While it was "
         "traced the job ran a little slower. Allocations are numbered in the order in which they "
         "were "
         "made.</p>\n</body></html>\n";
}

}  // namespace spillway::cli
