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
#include <vector>

#include "base/unique_fd.h"
#include "cli/agent_client.h"
#include "cli/failure.h"
#include "cli/help.h"

namespace spillway::cli {
namespace {

constexpr int64_t kEveryMs = 1000;
constexpr option kTopOptions[] = {{"json", no_argument, nullptr, 'j'},
                                  {"count", required_argument, nullptr, 'n'},
                                  {"socket", required_argument, nullptr, 's'},
                                  {"help", no_argument, nullptr, 'h'},
                                  {}};
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

// The terminal, taken while this lives. Without a terminal to read from (input redirected) only its output is taken.
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

  // False when the terminal is gone.
  bool Show(const std::string& page) const {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return false;
    return WriteAll(TopFrame(page, size.ws_row > 0 ? size.ws_row : kUsualRows,
                             size.ws_col > 0 ? size.ws_col : kUsualColumns));
  }

 private:
  termios before_{};
  const bool reads_;
};

enum class Event : uint8_t { kNone, kQuit, kGone, kSuspend };

// Signals and keys, read like files.
class Events {
 public:
  explicit Events(bool reads) : reads_(reads) {
    sigset_t taken;
    sigemptyset(&taken);
    for (int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) sigaddset(&taken, signal);
    sigprocmask(SIG_BLOCK, &taken, nullptr);
    signals_.Reset(signalfd(-1, &taken, SFD_CLOEXEC));
    signal(SIGPIPE, SIG_IGN);
  }

  // Whether one came before the output takes some more: a reader that sleeps would have it wait out of their reach.
  bool ComesBeforeOutput() const {
    pollfd watched[] = {{signals_.get(), POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}};
    while (poll(watched, 2, -1) < 0 && errno == EINTR) {
    }
    return watched[1].revents == 0;
  }

  // The first that comes; kNone also for another size of the terminal, and when the time has passed.
  Event Await(int64_t milliseconds) const {
    std::vector<pollfd> watched = Files();
    if (poll(watched.data(), watched.size(), static_cast<int>(milliseconds)) <= 0) return Event::kNone;
    if (watched[0].revents != 0) return TakeSignal();
    return TakeKey();
  }

  // Readable when one has come.
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
  static Event TakeKey() {
    char key = 0;
    if (read(STDIN_FILENO, &key, 1) != 1) return Event::kGone;
    constexpr char end_of_transmission = 4;
    return key == 'q' || key == 'Q' || key == end_of_transmission ? Event::kQuit : Event::kNone;
  }

  const bool reads_;
  base::UniqueFd signals_;
};

// A terminal's page has the terminal's width.
std::string PageOf(const std::string& socket, int columns, std::vector<pollfd> interrupts = {}) {
  protocol::Ask ask;
  ask.question = protocol::Question::kStatus;
  ask.columns = static_cast<uint16_t>(std::clamp(columns, 0, 1000));
  return AgentClient(socket, std::move(interrupts)).Ask(ask);
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

// None when an event comes first: an agent that hangs keeps nobody from quitting.
std::optional<std::string> PageOrWhyNot(const std::string& socket, int columns, const Events& events) {
  try {
    return PageOf(socket, columns, events.Files());
  } catch (const Interrupted&) {
    return std::nullopt;
  } catch (const Failure& failure) {
    return failure.text() + "\nIt is tried again every second.\n";
  }
}

int ColumnsOfTerminal() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

int ShowUntilQuit(const std::string& socket) {
  Screen screen;
  const Events events(screen.reads());
  for (;;) {
    const std::optional<std::string> page = PageOrWhyNot(socket, ColumnsOfTerminal(), events);
    if (page && !screen.Show(*page)) return 1;
    switch (events.Await(kEveryMs)) {
      case Event::kNone:
        break;
      case Event::kQuit:
        return 0;
      case Event::kGone:
        return 1;
      case Event::kSuspend:
        screen.Leave();
        raise(SIGSTOP);
        screen.Enter();
    }
  }
}

// What of it the output takes before something happens; false when nobody reads any more.
bool WriteSome(const Events& events, std::string_view* text) {
  while (!text->empty() && !events.ComesBeforeOutput()) {
    const std::string_view piece = text->substr(0, PIPE_BUF);  // a pipe that takes any takes as much
    if (!WriteAll(piece)) return false;
    text->remove_prefix(piece.size());
  }
  return true;
}

// `count` lines, or until somebody ends it.
int Stream(const std::string& socket, int64_t count) {
  std::string line = LineOf(socket);
  std::string_view rest = line;
  const Events events(false);
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
    throw Failure(kExitUsage, "'" + written + "' is no count of lines", "it is a whole number from 1 on",
                  "see: spillway help top");
  return count;
}

TopOptions ParseTopOptions(const std::vector<std::string>& arguments) {
  TopOptions options;
  const auto rest =
      ForEachOption(arguments, "top", "h", kTopOptions, [&](int letter, const std::string& value) {
        if (letter == 'j') options.json = true;
        if (letter == 'n') options.count = CountIn(value);
        if (letter == 's') options.socket = value;
        if (letter == 'h') options.help = true;
      });
  if (options.help) return options;
  if (!rest.empty())
    throw Failure(kExitUsage, "`spillway top` takes no operands", "'" + rest.front() + "' is given",
                  "see: spillway help top");
  if (options.count != kEndless && !options.json)
    throw Failure(kExitUsage, "--count is for --json", "a terminal's page is shown until somebody quits",
                  "see: spillway help top");
  return options;
}

int Top(const std::vector<std::string>& arguments) {
  const TopOptions options = ParseTopOptions(arguments);
  if (options.help) return std::fputs(HelpText("top").c_str(), stdout), 0;
  if (options.json) return Stream(options.socket, options.count);
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  const std::string first = PageOf(options.socket, is_terminal ? ColumnsOfTerminal() : 0);
  if (is_terminal) return ShowUntilQuit(options.socket);
  std::fputs(first.c_str(), stdout);
  return 0;
}

}  // namespace

// Line breaks stand between its values only, each with the next line's indentation: within words they are escaped.
std::string OnOneLine(const std::string& document) {
  std::string line;
  bool indents = false;
  for (char c : document) {
    indents = c == '\n' || (indents && c == ' ');
    if (!indents) line += c;
  }
  return line + '\n';
}

std::string TopFrame(const std::string& page, int rows, int columns) {
  std::string frame = kHome;
  size_t at = 0;
  for (int row = 1; row < rows && at < page.size(); ++row) {
    const size_t end = std::min(page.find('\n', at), page.size());
    frame += page.substr(at, std::min(end - at, static_cast<size_t>(columns))) + kClearLine + "\r\n";
    at = end + 1;
  }
  const bool all = at >= page.size();
  const std::string last = all ? "q quits" : "q quits; more jobs than fit: spillway jobs";
  return frame + kClearRest + last.substr(0, static_cast<size_t>(std::max(0, columns - 1)));
}

OptionList TopOptionList() { return {"h", kTopOptions}; }

int RunTop(const std::vector<std::string>& arguments) {
  try {
    return Top(arguments);
  } catch (const Failure& failure) {
    PrintWhereJsonIsAsked(arguments, failure);
    throw;
  }
}

}  // namespace spillway::cli
