#include "clients/cli/shell/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace tensord::cli {
namespace {

constexpr char kHome[] = "\x1b[H", kClearToEndOfLine[] = "\x1b[K", kClearBelow[] = "\x1b[J";

}  // namespace

ScreenSize ScreenSizeOf(int descriptor) {
  winsize size = {};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {.rows = size.ws_row, .columns = size.ws_col};
}

Terminal::Terminal() : is_screen_(isatty(STDOUT_FILENO) == 1) {
  // In the background it is another's, and to change it would stop the process.
  const bool is_ours = is_screen_ && isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (!is_ours || tcgetattr(STDIN_FILENO, &former_) != 0) return;
  termios at_once = former_;
  at_once.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  at_once.c_cc[VMIN] = 1;
  at_once.c_cc[VTIME] = 0;
  has_keys_ = tcsetattr(STDIN_FILENO, TCSANOW, &at_once) == 0;
}

Terminal::~Terminal() {
  if (has_keys_) tcsetattr(STDIN_FILENO, TCSANOW, &former_);
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
  const int timeout = static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(duration, absl::Milliseconds(1))));
  if (poll(&input, 1, timeout) <= 0) return false;
  char typed = 0;
  if (read(STDIN_FILENO, &typed, 1) == 1) return typed == key;
  is_closed_ = true;
  return false;
}

}  // namespace tensord::cli
