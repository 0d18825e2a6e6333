#include "server/http/http_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace tensord::server {
namespace {

// So long a client that has its answer may take to hang up.
constexpr std::chrono::seconds kTimeToHangUp{1};

// Tells whether nothing can be read or written right now, or the call was interrupted: poll tells when to try again.
bool IsToTryAgain() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

HttpConnection::~HttpConnection() { close(descriptor_); }

short HttpConnection::events() const {
  if (state_ == State::kWaiting) return 0;  // that the client is gone is told all the same
  return state_ == State::kWriting ? POLLOUT : POLLIN;
}

bool HttpConnection::Advance(const Answer& answer) {
  switch (state_) {
    case State::kReading:
      return Read(answer);
    case State::kWaiting:
      return false;  // the client is gone
    case State::kWriting:
      return Write();
    case State::kEnding:
      return Discard();
  }
  return false;
}

bool HttpConnection::Read(const Answer& answer) {
  char buffer[4096];
  const ssize_t count = recv(descriptor_, buffer, sizeof(buffer), 0);
  if (count < 0) return IsToTryAgain();
  if (count == 0 && received_.empty()) return false;  // came to see whether somebody listens
  received_.append(buffer, static_cast<size_t>(count));
  Next next = answer(received_, count == 0);
  if (next.is_kept) {
    received_.clear();
    with_body_ = next.with_body;
    state_ = State::kWaiting;
    return true;
  }
  return next.answer.empty() ? count != 0 : Give(std::move(next.answer));
}

bool HttpConnection::Give(std::string answer) {
  received_.clear();
  answer_ = std::move(answer);
  state_ = State::kWriting;
  return Write();
}

bool HttpConnection::Write() {
  while (written_ < answer_.size()) {
    const ssize_t count = send(descriptor_, answer_.data() + written_, answer_.size() - written_, MSG_NOSIGNAL);
    if (count < 0) return IsToTryAgain();
    written_ += static_cast<size_t>(count);
  }
  // Closed with bytes of the client unread, TCP would take back the unread part of the answer.
  if (shutdown(descriptor_, SHUT_WR) != 0) return false;
  state_ = State::kEnding;
  deadline_ = std::min(deadline_, Clock::now() + kTimeToHangUp);
  return true;
}

bool HttpConnection::Discard() {
  char buffer[16384];
  const ssize_t count = recv(descriptor_, buffer, sizeof(buffer), 0);
  return count > 0 || (count < 0 && IsToTryAgain());
}

}  // namespace tensord::server
