#include "server/observe/logs/line_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace tensord::server {
namespace {

// The bytes written at once, whole lines if they are no longer: a writable pipe takes as much without waiting, and
// between others' lines.
constexpr size_t kPartBytes = PIPE_BUF;
// Between two looks whether it is time to end.
constexpr int kLookMs = 50;

// Returns the end of the next part of the lines.
size_t EndOfPart(absl::string_view lines) {
  if (lines.size() <= kPartBytes) return lines.size();
  const size_t end = lines.rfind('\n', kPartBytes - 1);
  return end == absl::string_view::npos ? kPartBytes : end + 1;
}

}  // namespace

bool LineOutput::WriteNow(int descriptor, absl::string_view line) {
  const std::string text = absl::StrCat(line.substr(0, kPartBytes - 1), "\n");
  pollfd writable{.fd = descriptor, .events = POLLOUT, .revents = 0};
  if (poll(&writable, 1, 0) <= 0 || (writable.revents & POLLOUT) == 0) return false;
  return write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

void LineOutput::Add(absl::string_view line) {
  lines_.append(line.data(), line.size());
  lines_.push_back('\n');
}

bool LineOutput::WaitUntilWritable() const {
  pollfd writable{.fd = descriptor_, .events = POLLOUT, .revents = 0};
  while (std::chrono::steady_clock::now().time_since_epoch().count() < end_.load()) {
    if (poll(&writable, 1, kLookMs) > 0) return true;  // or broken, which the write says
  }
  return false;
}

size_t LineOutput::WritePart(absl::string_view part) const {
  size_t taken = 0;
  while (taken < part.size() && WaitUntilWritable()) {
    const ssize_t count = write(descriptor_, part.data() + taken, part.size() - taken);
    if (count > 0) taken += static_cast<size_t>(count);
    if (count < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK) break;
  }
  return taken;
}

void LineOutput::Write() {
  if (lines_.empty()) return;
  if (torn_) lines_.insert(lines_.begin(), '\n');  // what comes now is a line of its own
  const size_t added = torn_ ? 1 : 0;
  size_t taken = 0;
  while (taken < lines_.size()) {
    const size_t part = EndOfPart(absl::string_view(lines_).substr(taken));
    const size_t count = WritePart(absl::string_view(lines_).substr(taken, part));
    taken += count;
    if (count < part) break;
  }
  lost_ += std::count(lines_.begin() + static_cast<std::ptrdiff_t>(std::max(taken, added)), lines_.end(), '\n');
  torn_ = taken == 0 ? torn_ : lines_[taken - 1] != '\n';
  lines_.clear();
}

}  // namespace tensord::server
