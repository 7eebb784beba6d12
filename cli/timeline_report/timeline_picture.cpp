#include "cli/timeline_report/timeline_picture.h"

#include <algorithm>
#include <cstdio>

#include "base/size_text.h"
#include "cli/html_text.h"
#include "cli/timeline_report/run_figures.h"

namespace spillway::cli {
namespace {

constexpr int kColumns = 600;
constexpr int kWidth = 760, kLeft = 96, kTop = 12, kMemoryHeight = 220, kRowHeight = 18,
              kRowGap = 6;
constexpr int kPictureWidth = kWidth - kLeft - 12;
constexpr int kMostTicks = 8, kUnitWidth = 24, kWordWidth = 110;
constexpr int kRowTop = kTop + kMemoryHeight + 30;

std::string Format(const char* format, auto... values) {
  char text[400];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// A column without a change has the value before.
struct Curves {
  std::vector<std::int64_t> resident, wanted, budget;
  std::int64_t most_bytes = 1;
};

Curves CurvesOf(const RecordedDevice& device, const RecordedSpan& within) {
  Curves curves;
  const double column_ns =
      std::max<double>(1, static_cast<double>(within.end_ns - within.begin_ns)) / kColumns;
  RecordedMemory now;
  std::size_t next = 0;
  for (int column = 0; column < kColumns; ++column) {
    const double end_ns = static_cast<double>(within.begin_ns) + column_ns * (column + 1);
    RecordedMemory most = now;
    for (;
         next < device.memory.size() && static_cast<double>(device.memory[next].time_ns) <= end_ns;
         ++next) {
      now = device.memory[next];
      if (now.time_ns < within.begin_ns) {
        most = now;
        continue;
      }
      most.resident_bytes = std::max(most.resident_bytes, now.resident_bytes);
      most.wanted_bytes = std::max(most.wanted_bytes, now.wanted_bytes);
      most.budget_bytes = std::max(most.budget_bytes, now.budget_bytes);
    }
    curves.resident.push_back(most.resident_bytes);
    curves.wanted.push_back(most.wanted_bytes);
    curves.budget.push_back(most.budget_bytes);
    curves.most_bytes = std::max({curves.most_bytes, most.resident_bytes, most.wanted_bytes});
  }
  // A budget far above the demand would flatten the curves.
  const std::int64_t budget_bytes = *std::max_element(curves.budget.begin(), curves.budget.end());
  if (budget_bytes <= 2 * curves.most_bytes)
    curves.most_bytes = std::max(curves.most_bytes, budget_bytes);
  return curves;
}

double X(int column) { return kLeft + static_cast<double>(kPictureWidth) * column / kColumns; }

class Picture {
 public:
  Picture(const RecordedDevice& device, const RecordedSpan& within, std::int64_t origin_ns)
      : device_(device), within_(within), origin_ns_(origin_ns) {}

  std::string Draw(const PictureWords& words) {
    const auto& [id, title, description] = words;
    text_ = Format("<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"%s-t %s-d\">\n",
                   kWidth, kRowTop + 4 * (kRowHeight + kRowGap) + 4, id.c_str(), id.c_str());
    text_ += "<title id=\"" + id + "-t\">" + EscapeHtml(title) + "</title><desc id=\"" + id +
             "-d\">" + EscapeHtml(description) + "</desc>\n";
    DrawMemory();
    DrawRow(0, "computing", "compute", SpansOf(device_.operations));
    DrawRow(1, "copies out", "out", Copies(true));
    DrawRow(2, "copies in", "in", Copies(false));
    DrawRow(3, "waits", "stall", SpansOf(device_.stalls));
    MarkEmpty();
    return text_ + "</svg>\n";
  }

 private:
  double Y(std::int64_t bytes) const {
    return kTop + kMemoryHeight *
                      (1 - static_cast<double>(bytes) / static_cast<double>(curves_.most_bytes));
  }

  void Label(double x, double y, const char* anchor, const std::string& text) {
    text_ += Format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) +
             EscapeHtml(text) + "</text>\n";
  }

  void Steps(const std::vector<std::int64_t>& bytes, const char* style, bool filled) {
    const double first_y = std::max<double>(kTop, Y(bytes.front()));
    std::string path = filled ? Format("M%d %dV%.1f", kLeft, kTop + kMemoryHeight, first_y)
                              : Format("M%d %.1f", kLeft, first_y);
    double last_y = first_y;
    for (int column = 1; column < kColumns; ++column) {
      const double y = std::max<double>(kTop, Y(bytes[static_cast<std::size_t>(column)]));
      if (y != last_y) path += Format("H%.1fV%.1f", X(column), y);
      last_y = y;
    }
    path += Format("H%.1f", X(kColumns));
    if (filled) path += Format("V%dZ", kTop + kMemoryHeight);
    text_ += Format("<path class=\"%s\" d=\"", style) + path + "\"/>\n";
  }

  void DrawMemory() {
    curves_ = CurvesOf(device_, within_);
    for (int i = 0; i <= 2; ++i) {
      const std::int64_t bytes = curves_.most_bytes / 2 * i;
      text_ += Format("<path class=\"grid\" d=\"M%d %.1fH%d\"/>\n", kLeft, Y(bytes),
                      kLeft + kPictureWidth);
      Label(kLeft - 6, Y(bytes) + 4, "end", base::FormatBytes(static_cast<std::uint64_t>(bytes)));
    }
    Steps(curves_.resident, "resident", true);
    Steps(curves_.wanted, "wanted", false);
    if (curves_.budget.back() <= curves_.most_bytes) Steps(curves_.budget, "budget", false);
    DrawTimeAxis();
  }

  double XOf(std::int64_t time_ns) const {
    const double length_ns =
        static_cast<double>(std::max<std::int64_t>(1, within_.end_ns - within_.begin_ns));
    return kLeft + kPictureWidth * static_cast<double>(time_ns - within_.begin_ns) / length_ns;
  }

  // The unit stands once, at the end of the axis.
  void DrawTimeAxis() {
    const std::int64_t begin_ns = within_.begin_ns - origin_ns_,
                       end_ns = within_.end_ns - origin_ns_;
    const Unit unit = UnitFor(end_ns);
    const std::int64_t step_ns = RoundStep((end_ns - begin_ns) / kMostTicks);
    const int digits = step_ns >= unit.ns         ? 0
                       : step_ns * 10 >= unit.ns  ? 1
                       : step_ns * 100 >= unit.ns ? 2
                                                  : 3;
    const double y = kTop + kMemoryHeight;
    for (std::int64_t at_ns = (begin_ns + step_ns - 1) / step_ns * step_ns; at_ns <= end_ns;
         at_ns += step_ns) {
      const double x = XOf(at_ns + origin_ns_);
      text_ += Format("<path class=\"grid\" d=\"M%.1f %.1fv4\"/>\n", x, y);
      if (x < kLeft + kPictureWidth - kUnitWidth)
        Label(x, y + 16, "middle",
              Format("%.*f", digits, static_cast<double>(at_ns) / static_cast<double>(unit.ns)));
    }
    Label(kLeft + kPictureWidth, y + 16, "end", unit.name);
  }

  struct Unit {
    const char* name;
    std::int64_t ns;
  };
  static Unit UnitFor(std::int64_t time_ns) {
    if (time_ns >= 1'000'000'000) return {"s", 1'000'000'000};
    return time_ns >= 1'000'000 ? Unit{"ms", 1'000'000} : Unit{"µs", 1'000};
  }

  // At least `least_ns`: 1, 2 or 5 times a power of ten.
  static std::int64_t RoundStep(std::int64_t least_ns) {
    for (std::int64_t step_ns = 1;; step_ns *= 10) {
      for (const int factor : {1, 2, 5}) {
        if (step_ns * factor >= least_ns) return step_ns * factor;
      }
    }
  }

  // An unmarked empty part would look like a failure to load.
  void MarkEmpty() {
    std::vector<RecordedSpan> all = SpansOf(device_.operations);
    all.insert(all.end(), device_.copies.begin(), device_.copies.end());
    all.insert(all.end(), device_.stalls.begin(), device_.stalls.end());
    const std::int64_t least_ns = (within_.end_ns - within_.begin_ns) * kWordWidth / kPictureWidth;
    for (const RecordedSpan& empty :
         StretchesWithout(all, within_, std::max<std::int64_t>(1, least_ns)))
      Label((XOf(empty.begin_ns) + XOf(empty.end_ns)) / 2, kRowTop + kRowHeight - 5, "middle",
            "nothing recorded");
  }

  std::vector<RecordedSpan> Copies(bool out) const {
    std::vector<RecordedSpan> spans;
    for (const RecordedCopy& copy : device_.copies) {
      if (copy.is_out == out) spans.push_back(copy);
    }
    return spans;
  }

  // Equal neighbours form one bar.
  void DrawRow(int row, const std::string& name, const char* style,
               const std::vector<RecordedSpan>& spans) {
    const double y = kRowTop + row * (kRowHeight + kRowGap);
    Label(kLeft - 6, y + kRowHeight - 5, "end", name);
    text_ += Format(
        "<rect class=\"lane\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%d\"/>\n<g class=\"%s\">",
        kLeft, y, kPictureWidth, kRowHeight, style);
    const std::vector<double> shares = BusyShares(spans, within_, kColumns);
    for (int column = 0; column < kColumns;) {
      const int strength = Strength(shares[static_cast<std::size_t>(column)]);
      int end = column + 1;
      while (end < kColumns && Strength(shares[static_cast<std::size_t>(end)]) == strength) ++end;
      if (strength > 0)
        text_ +=
            Format("<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" opacity=\"0.%d\"/>",
                   X(column), y, X(end) - X(column), kRowHeight, strength);
      column = end;
    }
    text_ += "</g>\n";
  }

  // 0 to 9; above 0 for any positive share.
  static int Strength(double share) {
    return share <= 0 ? 0 : std::clamp(static_cast<int>(share * 10), 2, 9);
  }

  const RecordedDevice& device_;
  const RecordedSpan within_;
  const std::int64_t origin_ns_;
  Curves curves_;
  std::string text_;
};

}  // namespace

std::string TimelinePicture(const RecordedDevice& device, const RecordedSpan& within,
                            std::int64_t origin_ns, const PictureWords& words) {
  return Picture(device, within, origin_ns).Draw(words);
}

std::string FormatTime(std::int64_t time_ns) {
  const double time = static_cast<double>(time_ns);
  if (time_ns >= 1'000'000'000) return Format("%.2f s", time / 1e9);
  if (time_ns >= 1'000'000) return Format("%.2f ms", time / 1e6);
  return Format("%.1f µs", time / 1e3);
}

}  // namespace spillway::cli
