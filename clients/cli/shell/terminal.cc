#include "clients/cli/shell/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace tensord::cli {
namespace {

// Signals of which each ends the process.
constexpr std::array kEndings = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

termios former_modes;  // the terminal as it was; for the handler too

// A process in the background would be stopped by the attempt, and its shell has the terminal. Safe in a handler.
void PutBack() {
  if (tcgetpgrp(STDIN_FILENO) == getpgrp()) tcsetattr(STDIN_FILENO, TCSANOW, &former_modes);
}

// The signal has its default action again, and is not held back.
void PutBackAndEnd(int signal) {
  PutBack();
  raise(signal);
}

constexpr char kHome[] = "\x1b[H", kClearToEndOfLine[] = "\x1b[K", kClearBelow[] = "\x1b[J";

}  // namespace

ScreenSize ScreenSizeOf(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

bool IsScreen(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return isatty(descriptor) == 1 && (kind == nullptr || absl::string_view(kind) != "dumb");
}

Terminal::Terminal() : is_screen_(IsScreen(STDOUT_FILENO)) {
  // In the background it is another's, and to change it would stop the process.
  const bool is_ours = is_screen_ && isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (!is_ours || tcgetattr(STDIN_FILENO, &former_modes) != 0) return;
  struct sigaction action = {};
  action.sa_handler = &PutBackAndEnd;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (size_t i = 0; i < kEndings.size(); ++i) {
    sigaction(kEndings[i], nullptr, &former_actions_[i]);
    if (former_actions_[i].sa_handler != SIG_IGN) sigaction(kEndings[i], &action, nullptr);
  }
  termios at_once = former_modes;
  at_once.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  at_once.c_cc[VMIN] = 1;
  at_once.c_cc[VTIME] = 0;
  has_handlers_ = true;
  has_keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &at_once) == 0;
}

Terminal::~Terminal() {
  if (has_keys_) PutBack();
  if (!has_handlers_) return;
  for (size_t i = 0; i < kEndings.size(); ++i) sigaction(kEndings[i], &former_actions_[i], nullptr);
}

ScreenSize Terminal::Size() const { return is_screen_ ? ScreenSizeOf(STDOUT_FILENO) : ScreenSize(); }

std::string Terminal::Redrawn(const std::vector<std::string>& lines) {
  std::string text = kHome;
  // Each line is cleared before it is written: behind one as long as the screen is wide, that would take its last
  // character. Behind the last line there is no other, which would move the first one out.
  for (size_t i = 0; i < lines.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "\n", i + 1 == lines.size() ? kClearBelow : kClearToEndOfLine, lines[i]);
  }
  return text;
}

bool Terminal::WaitForKey(char key, absl::Duration duration) {
  pollfd input = {.fd = has_keys_ && !is_closed_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
  int timeout = static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1))));
  while (poll(&input, 1, timeout) > 0) {
    char typed = 0;
    if (read(STDIN_FILENO, &typed, 1) != 1) {
      is_closed_ = true;
      return false;
    }
    if (typed == key) return true;
    timeout = 0;  // for the rest of the keys that are there
  }
  return false;
}

}  // namespace tensord::cli
