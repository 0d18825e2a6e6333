#include "clients/cpp/shared_memory/broker_connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "clients/cpp/connection/steady_time.h"
#include "tensord/error_detail.h"

namespace tensord::client {
namespace {

constexpr size_t kMostReplyBytes = 65536;

// Bounds a deadline; it then counts by SteadyNow.
absl::Time Bounded(absl::Time deadline) {
  return std::min(SteadyTimeOf(deadline), SteadyNow() + BrokerConnection::kMostWait);
}

// Waits for bytes; false: the deadline came first.
bool WaitForBytes(int socket, absl::Time deadline) {
  while (true) {
    const absl::Duration left = std::max(deadline - SteadyNow(), absl::ZeroDuration());
    pollfd waits = {.fd = socket, .events = POLLIN, .revents = 0};
    // Rounded up: not to wait in turns of no time.
    const int ready =
        poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
    if (ready != 0 && (ready > 0 || errno != EINTR)) return true;
    if (left == absl::ZeroDuration()) return false;
  }
}

// Returns the descriptor that came with a message; -1: none.
int DescriptorOf(msghdr* message) {
  int descriptor = -1;
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
    }
  }
  return descriptor;
}

v1::SharedMemoryRequest FreeRequest(std::string region) {
  v1::SharedMemoryRequest request;
  request.mutable_free()->set_region(std::move(region));
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BrokerConnection>> BrokerConnection::Connect(const std::string& path,
                                                                            std::string authorization,
                                                                            absl::Time deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket is too long: ", path));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int connected = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  std::unique_ptr<BrokerConnection> connection(new BrokerConnection(path, connected, std::move(authorization)));
  if (connected < 0) return connection->Gone(std::strerror(errno));
  // A connection waits where too many others do already. No time at all would be no end.
  const absl::Duration left = std::max(Bounded(deadline) - SteadyNow(), absl::Milliseconds(1));
  const timeval timeout = absl::ToTimeval(left);
  setsockopt(connected, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
  if (connect(connected, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return connection->Gone(errno == EAGAIN ? "nobody takes the connection" : std::strerror(errno));
  }
  return connection;
}

BrokerConnection::~BrokerConnection() {
  if (socket_ >= 0) close(socket_);
}

absl::StatusOr<BrokerConnection::Region> BrokerConnection::Allocate(size_t size_bytes, absl::Time deadline) {
  deadline = Bounded(deadline);
  if (!Enter(deadline)) return Late();
  if (owes_) TakeOwedAnswer();
  v1::SharedMemoryRequest request;
  request.set_authorization(authorization_);
  request.mutable_allocate()->set_byte_count(static_cast<int64_t>(size_bytes));
  const absl::StatusOr<Answer> answer = owes_ ? Gone("the server still owes an answer") : Exchange(request, deadline);
  Leave(deadline);
  if (!answer.ok()) return answer.status();
  if (answer->descriptor < 0) return absl::InternalError("the server's answer has no region");
  return Region{
      .id = answer->reply.region(), .descriptor = answer->descriptor, .size_bytes = answer->reply.byte_count()};
}

void BrokerConnection::Free(const std::string& region) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    unwanted_.push_back(region);
    if (is_asking_) return;
    is_asking_ = true;
  }
  if (owes_) TakeOwedAnswer();
  Leave(Bounded(absl::InfiniteFuture()));
}

bool BrokerConnection::Enter(absl::Time deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!left_.wait_until(lock, ToSteadyClock(deadline), [this] { return !is_asking_; })) return false;
  is_asking_ = true;
  return true;
}

void BrokerConnection::Leave(absl::Time deadline) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!owes_ && !unwanted_.empty() && SteadyNow() < deadline) {
      const v1::SharedMemoryRequest request = FreeRequest(std::move(unwanted_.back()));
      unwanted_.pop_back();
      lock.unlock();
      // If the server has gone, so has the region.
      const absl::StatusOr<Answer> answer = Exchange(request, deadline);
      if (answer.ok() && answer->descriptor >= 0) close(answer->descriptor);
      lock.lock();
    }
    is_asking_ = false;
  }
  left_.notify_one();
}

void BrokerConnection::TakeOwedAnswer() {
  const absl::StatusOr<Answer> answer = Receive(absl::InfinitePast());
  if (absl::IsDeadlineExceeded(answer.status())) return;
  owes_ = false;
  if (!answer.ok() || answer->descriptor < 0) return;
  close(answer->descriptor);
  const std::lock_guard<std::mutex> lock(mutex_);
  unwanted_.push_back(answer->reply.region());
}

absl::StatusOr<BrokerConnection::Answer> BrokerConnection::Exchange(const v1::SharedMemoryRequest& request,
                                                                    absl::Time deadline) {
  const std::string bytes = request.SerializeAsString();
  // There is room: nothing else is under way. A server that hung up may have given a reason.
  if (send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE) {
    return Gone(std::strerror(errno));
  }
  absl::StatusOr<Answer> answer = Receive(deadline);
  owes_ = absl::IsDeadlineExceeded(answer.status());
  if (!answer.ok() || !answer->reply.has_error()) return answer;
  if (answer->descriptor >= 0) close(answer->descriptor);
  const v1::Error& error = answer->reply.error();
  return absl::Status(ToAbslStatus(error).code(), absl::StrCat(error.message(), " (", error.detail().reason(), ")"));
}

absl::StatusOr<BrokerConnection::Answer> BrokerConnection::Receive(absl::Time deadline) {
  std::string bytes(kMostReplyBytes, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // a second descriptor would fit into the padding, and stay open
  if (!WaitForBytes(socket_, deadline)) return Late();
  const ssize_t received = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received <= 0) return Gone(received == 0 ? "the server has gone" : std::strerror(errno));
  Answer answer{.reply = {}, .descriptor = DescriptorOf(&message)};
  if (!answer.reply.ParseFromArray(bytes.data(), static_cast<int>(received))) {
    if (answer.descriptor >= 0) close(answer.descriptor);
    return absl::InternalError("the server's answer is no SharedMemoryReply");
  }
  return answer;
}

absl::Status BrokerConnection::Late() const {
  return absl::DeadlineExceededError(absl::StrCat("no shared memory: the server did not answer at ", path_,
                                                  " in time; send the tensor in a message, or see what holds it up"));
}

absl::Status BrokerConnection::Gone(const char* why) const {
  return absl::UnavailableError(absl::StrCat("no shared memory at ", path_, ": ", why));
}

bool BrokerConnection::HasHungUp() const {
  pollfd hung_up = {.fd = socket_, .events = 0, .revents = 0};
  return poll(&hung_up, 1, 0) > 0;
}

}  // namespace tensord::client
