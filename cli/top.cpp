#include "cli/top.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "base/wrapped_lines.h"
#include "cli/agent_client.h"
#include "cli/failure.h"
#include "cli/help.h"
#include "cli/json_value.h"
#include "cli/options/option_parser.h"
#include "cli/top_page.h"

namespace spillway::cli {
namespace {

constexpr int64_t kEveryMs = 1000;
constexpr int64_t kEndless = 0;
constexpr char kEnterScreen[] = "\033[?1049h\033[?25l";
constexpr char kLeaveScreen[] = "\033[?25h\033[?1049l";
constexpr char kHome[] = "\033[H";
constexpr char kClearLine[] = "\033[K";
constexpr char kClearRest[] = "\033[J";
constexpr int kUsualRows = 24, kUsualColumns = 80;

bool WriteAll(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Takes the terminal for its lifetime. Without input from a terminal, only the output.
class Screen {
 public:
  Screen() : reads_(tcgetattr(STDIN_FILENO, &before_) == 0) { Enter(); }
  ~Screen() { Leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void Enter() {
    if (reads_) {
      termios quiet = before_;
      quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    }
    WriteAll(kEnterScreen);
  }
  void Leave() {
    WriteAll(kLeaveScreen);
    if (reads_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  bool reads() const { return reads_; }

  // False: the terminal is gone.
  bool Show(const std::string& page, const std::string& keys, const TopSize& size) const {
    winsize ignored{};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ignored) == 0 &&
           WriteAll(TopFrame(page, keys, size.rows, size.columns));
  }

 private:
  termios before_{};
  const bool reads_;
};

enum class Event : uint8_t {
  kNone,
  kQuit,
  kGone,
  kSuspend,
  kUp,
  kDown,
  kPageUp,
  kPageDown,
  kEnter,
  kBack,
  kSort,
  kReverse
};

class Events {
 public:
  explicit Events(bool reads) : reads_(reads) {
    sigset_t taken;
    sigemptyset(&taken);
    for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH})
      sigaddset(&taken, signal);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    signals_.Reset(signalfd(-1, &taken, SFD_CLOEXEC));
    signal(SIGPIPE, SIG_IGN);
  }

  // With a sleeping reader, a plain write would block all events.
  bool AwaitsEventBeforeOutput() const {
    pollfd watched[] = {{signals_.get(), POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}};
    while (poll(watched, 2, -1) < 0 && errno == EINTR) {
    }
    return watched[1].revents == 0;
  }

  // The first event. kNone also for a resized terminal or a timeout.
  Event Await(int64_t milliseconds) {
    if (!typed_.empty()) return NextTyped();
    std::vector<pollfd> watched = Files();
    if (poll(watched.data(), watched.size(), static_cast<int>(milliseconds)) <= 0)
      return Event::kNone;
    if (watched[0].revents != 0) return TakeSignal();
    return TakeKey();
  }

  std::vector<pollfd> Files() const {
    return {{signals_.get(), POLLIN, 0}, {reads_ ? STDIN_FILENO : -1, POLLIN, 0}};
  }

 private:
  Event TakeSignal() const {
    signalfd_siginfo taken{};
    if (read(signals_.get(), &taken, sizeof taken) != sizeof taken) return Event::kNone;
    if (taken.ssi_signo == SIGWINCH) return Event::kNone;
    if (taken.ssi_signo == SIGTSTP) return Event::kSuspend;
    return taken.ssi_signo == SIGHUP ? Event::kGone : Event::kQuit;
  }
  Event TakeKey() {
    char keys[64];
    const ssize_t size = read(STDIN_FILENO, keys, sizeof keys);
    if (size <= 0) return Event::kGone;
    typed_.append(keys, static_cast<size_t>(size));
    return NextTyped();
  }

  // One key may send several characters, and several keys may arrive at once.
  Event NextTyped() {
    struct Key {
      std::string_view letters;
      Event event;
    };
    static constexpr Key kKeys[] = {
        {"\033[A", Event::kUp},      {"\033OA", Event::kUp},        {"k", Event::kUp},
        {"\033[B", Event::kDown},    {"\033OB", Event::kDown},      {"j", Event::kDown},
        {"\033[5~", Event::kPageUp}, {"\033[6~", Event::kPageDown}, {" ", Event::kPageDown},
        {"\r", Event::kEnter},       {"\n", Event::kEnter},         {"\033", Event::kBack},
        {"\177", Event::kBack},      {"s", Event::kSort},           {"r", Event::kReverse},
        {"q", Event::kQuit},         {"Q", Event::kQuit},           {"\004", Event::kQuit}};
    const auto* const key = std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& one) {
      const bool is_escape = one.letters == "\033";  // not as the start of another key
      return typed_.starts_with(one.letters) &&
             !(is_escape && typed_.size() > 1 && typed_[1] == '[');
    });
    if (key == std::end(kKeys)) typed_.clear();  // an unknown key sends any number of characters
    if (key == std::end(kKeys)) return Event::kNone;
    typed_.erase(0, key->letters.size());
    return key->event;
  }

  const bool reads_;
  base::UniqueFd signals_;
  std::string typed_;  // and not taken yet
};

std::string PageOf(const std::string& socket, int columns) {
  protocol::Ask ask;
  ask.question = protocol::Question::kStatus;
  ask.columns = static_cast<uint16_t>(std::clamp(columns, 0, 1000));
  return AgentClient(socket).Ask(ask);
}

std::string LineOf(const std::string& socket) {
  protocol::Ask ask;
  ask.question = protocol::Question::kStatus;
  ask.form = protocol::Form::kJson;
  return OnOneLine(AgentClient(socket).Ask(ask));
}

std::string LineOrWhyNot(const std::string& socket) {
  try {
    return LineOf(socket);
  } catch (const Failure& failure) {
    return JsonOf(failure);
  }
}

TopSize SizeOfTerminal() {
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return {is_known && size.ws_row > 0 ? size.ws_row : kUsualRows,
          is_known && size.ws_col > 0 ? size.ws_col : kUsualColumns};
}

// Below the values of the page.
std::string WrappedDetail(const std::string& page, int columns) {
  return base::WrappedLines(page, static_cast<size_t>(std::max(columns, 0)), std::string(14, ' '),
                            base::LongWords::kCut);
}

std::string CutLines(const std::string& page, int columns) {
  std::string cut;
  int column = 0;
  for (const char c : page) {
    column = c == '\n' ? 0 : column + 1;
    if (column <= columns) cut += c;
  }
  return cut;
}

class LiveView {
 public:
  LiveView(const std::string& socket, const Events& events) : socket_(socket), events_(events) {}

  // Nullopt if an event comes first: a hanging agent does not delay quitting.
  std::optional<std::string> Page(const TopSize& size) {
    try {
      if (!detail_.empty())
        return CutLines(WrappedDetail(AskAbout(detail_), size.columns), size.columns);
      Refresh();
      page_rows_ = size.rows;
      return TopPage(*status_, jobs_, size, view_);
    } catch (const Interrupted&) {
      return std::nullopt;
    } catch (const Failure& failure) {
      detail_.clear();
      return CutLines(failure.text() + "\nIt is tried again every second.\n", size.columns);
    }
  }

  std::string Keys() const {
    if (!detail_.empty()) return "q quits  Esc all jobs";
    return "q quits  s sort: " + TopSorts()[view_.sort] + (view_.is_reversed ? " reversed" : "") +
           "  r reverse  j k move  Enter job";
  }

  void Follow(Event event) {
    const size_t page = static_cast<size_t>(std::max(1, page_rows_ / 2));
    if (event == Event::kUp && view_.selected > 0) --view_.selected;
    if (event == Event::kDown) ++view_.selected;
    if (event == Event::kPageUp) view_.selected -= std::min(view_.selected, page);
    if (event == Event::kPageDown) view_.selected += page;
    view_.selected = std::min(view_.selected, jobs_.empty() ? 0 : jobs_.size() - 1);
    if (event == Event::kSort) view_.sort = (view_.sort + 1) % TopSorts().size();
    if (event == Event::kReverse) view_.is_reversed = !view_.is_reversed;
    if (event == Event::kEnter && view_.selected < jobs_.size())
      detail_ = jobs_[view_.selected].name;
    if (event == Event::kBack) detail_.clear();
  }

 private:
  std::string AskAbout(const std::string& job) const {
    protocol::Ask ask;
    ask.question = protocol::Question::kJob;
    ask.job = job;
    return AgentClient(socket_, events_.Files()).Ask(ask);
  }

  // A key pressed within the second shows the existing rates.
  void Refresh() {
    protocol::Ask ask;
    ask.question = protocol::Question::kStatus;
    ask.form = protocol::Form::kJson;
    std::optional<JsonValue> now = JsonValue::Parse(AgentClient(socket_, events_.Files()).Ask(ask));
    if (!now)
      throw Failure(kExitNoAgent, "the agent's answer cannot be read", "it is no JSON",
                    "see its log");
    const int64_t passed_ns = base_ ? (*now)["up_ns"].number() - (*base_)["up_ns"].number() : -1;
    if (passed_ns < 0) before_.reset();  // another agent, or the first answer
    if (passed_ns >= kRateNs) before_ = base_;
    if (passed_ns < 0 || passed_ns >= kRateNs) base_ = now;
    status_ = std::move(now);
    jobs_ = TopJobs(*status_, before_ ? &*before_ : nullptr);
    SortJobs(view_, jobs_);
  }

  static constexpr int64_t kRateNs = 900'000'000;
  const std::string socket_;
  const Events& events_;
  std::optional<JsonValue> status_, base_, before_;
  std::vector<TopJob> jobs_;
  TopView view_;
  std::string detail_;
  int page_rows_ = kUsualRows;
};

int ShowUntilQuit(const std::string& socket) {
  Screen screen;
  Events events(screen.reads());
  LiveView view(socket, events);
  for (;;) {
    const TopSize size = SizeOfTerminal();
    const std::optional<std::string> page = view.Page(size);
    if (page && !screen.Show(*page, view.Keys(), size)) return 1;
    switch (const Event event = events.Await(kEveryMs)) {
      case Event::kQuit:
        return 0;
      case Event::kGone:
        return 1;
      case Event::kSuspend:
        screen.Leave();
        raise(SIGSTOP);
        screen.Enter();
        break;
      default:
        view.Follow(event);
    }
  }
}

// False: the reader has gone.
bool WriteSome(const Events& events, std::string_view* text) {
  while (!text->empty() && !events.AwaitsEventBeforeOutput()) {
    const std::string_view piece =
        text->substr(0, PIPE_BUF);  // a writable pipe takes PIPE_BUF bytes
    if (!WriteAll(piece)) return false;
    text->remove_prefix(piece.size());
  }
  return true;
}

int Stream(const std::string& socket, int64_t count) {
  std::string line = LineOf(socket);
  std::string_view rest = line;
  Events events(false);
  for (int64_t told = 0;;) {
    if (!WriteSome(events, &rest)) return 1;
    if (rest.empty() && ++told == count) return 0;
    switch (events.Await(kEveryMs)) {
      case Event::kNone:
        break;
      case Event::kQuit:
        return 0;
      case Event::kGone:
        return 1;
      case Event::kSuspend:
        raise(SIGSTOP);
        break;
      default:
        break;
    }
    if (!rest.empty()) continue;
    line = LineOrWhyNot(socket);
    rest = line;
  }
}

struct TopOptions {
  std::string socket;
  int64_t count = kEndless;  // of lines
  bool json = false, help = false;
};

int64_t CountIn(const std::string& written) {
  int64_t count = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), count);
  if (error != std::errc() || *end != 0 || count < 1)
    throw Failure(kExitUsage, "'" + written + "' is no count of lines",
                  "it is a whole number from 1 on", "see: spillway help top");
  return count;
}

constexpr OptionRow<TopOptions> kTopRows[] = {
    JsonRow<TopOptions>(
        "for scripts: every second a line, the document of `spillway status --json`; while there "
        "is "
        "no answer, the one with \"done\": false. Ends with Ctrl-C, or when nobody reads any more"),
    {{"count", 0, Value("N"), "end after so many lines (with --json)"},
     [](TopOptions& options, const std::string& value) { options.count = CountIn(value); }},
    SocketRow<TopOptions>(),
    HelpRow<TopOptions>(),
};

TopOptions ParseTopOptions(const std::vector<std::string>& arguments) {
  TopOptions options;
  const auto rest = ParseOptions(arguments, kTopRows, options);
  if (options.help) return options;
  if (!rest.empty())
    throw Failure(kExitUsage, "`spillway top` takes no operands", "'" + rest.front() + "' is given",
                  "see: spillway help top");
  if (options.count != kEndless && !options.json)
    throw Failure(kExitUsage, "--count is for --json",
                  "a terminal's page is shown until somebody quits", "see: spillway help top");
  return options;
}

int Top(const std::vector<std::string>& arguments) {
  const TopOptions options = ParseTopOptions(arguments);
  if (options.help) return std::fputs(HelpText("top").c_str(), stdout), 0;
  if (options.json) return Stream(options.socket, options.count);
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const std::string first = PageOf(options.socket, is_terminal ? SizeOfTerminal().columns : 0);
  if (is_terminal) return ShowUntilQuit(options.socket);
  std::fputs(first.c_str(), stdout);
  return 0;
}

}  // namespace

// Within strings line breaks are escaped.
std::string OnOneLine(const std::string& document) {
  std::string line;
  bool indents = false;
  for (char c : document) {
    indents = c == '\n' || (indents && c == ' ');
    if (!indents) line += c;
  }
  return line + '\n';
}

std::string TopFrame(const std::string& page, const std::string& keys, int rows, int columns) {
  std::string frame = kHome;
  size_t at = 0;
  for (int row = 1; row < rows && at < page.size(); ++row) {
    const size_t end = std::min(page.find('\n', at), page.size());
    frame += page.substr(at, end - at) + kClearLine + "\r\n";
    at = end + 1;
  }
  const bool all = at >= page.size();
  const std::string last = all ? keys : "q quits; more jobs than fit: spillway jobs";
  return frame + kClearRest + last.substr(0, static_cast<size_t>(std::max(0, columns - 1)));
}

std::vector<Option> TopOptionList() { return OptionsIn(kTopRows); }

int RunTop(const std::vector<std::string>& arguments) {
  try {
    return Top(arguments);
  } catch (const Failure& failure) {
    PrintIfJsonRequested(arguments, failure);
    throw;
  }
}

}  // namespace spillway::cli
