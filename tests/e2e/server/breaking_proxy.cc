#include "tests/e2e/server/breaking_proxy.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace tensord {
namespace {

constexpr int kPollMs = 20;

sockaddr_un AddressOf(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

}  // namespace

BreakingProxy::BreakingProxy(const std::string& path, std::string server_path, std::vector<int64_t> budgets)
    : path_(path), server_path_(std::move(server_path)), budgets_(std::move(budgets)) {
  const sockaddr_un address = AddressOf(path);
  listener_ = socket(AF_UNIX, SOCK_STREAM, 0);
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) listen(listener_, 16);
  thread_ = std::thread([this] { Run(); });
}

BreakingProxy::~BreakingProxy() {
  ends_ = true;
  thread_.join();
  close(listener_);
  unlink(path_.c_str());
}

void BreakingProxy::Run() {
  while (!ends_) {
    pollfd waits = {.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kPollMs) <= 0) continue;
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) continue;
    const size_t number = static_cast<size_t>(connections_++);
    const int64_t budget = number < budgets_.size() ? budgets_[number] : std::numeric_limits<int64_t>::max();
    ++open_;
    serving_.emplace_back([this, client, budget] {
      Serve(client, budget);
      close(client);
      --open_;
    });
  }
  for (std::thread& serving : serving_) serving.join();
}

void BreakingProxy::Serve(int client, int64_t budget) {
  const int era = era_;
  const sockaddr_un address = AddressOf(server_path_);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  if (connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    int64_t left = budget;
    bool goes_on = true;
    while (goes_on && left > 0 && !ends_ && era_ == era) {
      pollfd waits[] = {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}};
      if (poll(waits, 2, kPollMs) <= 0) continue;
      if (waits[0].revents != 0) goes_on = Move(client, server, &left);
      if (goes_on && left > 0 && waits[1].revents != 0) goes_on = Move(server, muted_ == era ? -1 : client, &left);
    }
  }
  close(server);
}

bool BreakingProxy::Move(int from, int to, int64_t* left) {
  char bytes[1 << 16];
  const ssize_t got = read(from, bytes, static_cast<size_t>(std::min<int64_t>(sizeof(bytes), *left)));
  if (got <= 0) return false;
  for (ssize_t at = 0; to >= 0 && at < got;) {
    const ssize_t written = send(to, bytes + at, static_cast<size_t>(got - at), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      // The other end may be waiting for room as well, for what it sent to be read: it is read when this has room.
      pollfd room = {.fd = to, .events = POLLOUT, .revents = 0};
      if (ends_ || (errno != EAGAIN && errno != EWOULDBLOCK)) return false;
      poll(&room, 1, kPollMs);
      continue;
    }
    at += written;
  }
  *left -= got;
  bytes_ += got;
  return true;
}

}  // namespace tensord
