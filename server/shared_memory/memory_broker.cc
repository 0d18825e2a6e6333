#include "server/shared_memory/memory_broker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/refusal.h"
#include "engine/base/status_macros.h"

namespace tensord::server {
namespace {

constexpr int kWithoutDescriptorsMs = 100;
constexpr int kAfterFailureMs = 100;
// So many connections that are refused, and for so long, stay until their first request has come.
constexpr size_t kMostDismissed = 64;
constexpr std::chrono::milliseconds kDismissedStay(1000);
// So many regions are made at once, and one more that is small.
constexpr int kAnsweringThreads = 3;

absl::Status SystemError(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(what, " ", path, ": ", std::strerror(errno)));
}

// Sends an answer; false if not all of it went out. The broker hangs up on a client that does not read its answers.
bool Send(int connection, BrokerClient::Answer answer) {
  const std::string bytes = answer.reply.SerializeAsString();
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  const int descriptor = answer.region == nullptr ? -1 : answer.region->TakeDescriptor();
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
  }
  const ssize_t sent = sendmsg(connection, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (descriptor >= 0) close(descriptor);
  return sent == static_cast<ssize_t>(bytes.size());
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryBroker>> MemoryBroker::Start(Options options, const BrokerParts& parts) {
  std::unique_ptr<MemoryBroker> broker(new MemoryBroker(std::move(options), parts));
  RETURN_IF_ERROR(broker->Listen());
  for (int i = 0; i <= kAnsweringThreads; ++i) {
    broker->answering_.emplace_back([self = broker.get(), small_only = i == 0] { self->AnswerLoop(small_only); });
  }
  broker->thread_ = std::thread([self = broker.get()] { self->Loop(); });
  return broker;
}

absl::Status MemoryBroker::Listen() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (options_.path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket is too long: ", options_.path));
  }
  std::memcpy(address.sun_path, options_.path.data(), options_.path.size());
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (wake_ < 0 || listener < 0) return SystemError("cannot make a socket for", options_.path);
  // Closed to others from the moment on in which it is there; whom it is opened to is looked at one by one.
  if (fchmod(listener, 0600) != 0 ||
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      (!options_.uids.empty() && !OpenPath(true)) || listen(listener, SOMAXCONN) != 0) {
    const absl::Status status = SystemError("cannot listen at", options_.path);
    close(listener);
    return status;
  }
  listener_ = listener;
  file_.emplace(options_.path);
  packet_.resize(kMaxBrokerPacketBytes + 1);
  return absl::OkStatus();
}

bool MemoryBroker::OpenPath(bool to_others) const { return chmod(options_.path.c_str(), to_others ? 0666 : 0600) == 0; }

void MemoryBroker::SetAllowed(std::vector<uid_t> uids, int64_t max_connections) {
  MutexLock lock(&mutex_);
  // A client that gets through a socket that stays open, or open too long, is checked all the same.
  if (uids.empty() != allowed_.uids.empty()) OpenPath(!uids.empty());
  allowed_.uids = std::move(uids);
  allowed_.max_connections = max_connections;
}

std::vector<uid_t> MemoryBroker::uids() const {
  MutexLock lock(&mutex_);
  return allowed_.uids;
}

int64_t MemoryBroker::max_connections() const {
  MutexLock lock(&mutex_);
  return allowed_.max_connections;
}

MemoryBroker::~MemoryBroker() {
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  if (thread_.joinable()) {
    Wake();
    thread_.join();
  }
  std::vector<BrokerRequest> left = turns_.Close();
  for (std::thread& thread : answering_) thread.join();
  parts_.regions->LeaveToClients();
  for (BrokerRequest& request : left) {
    if (request.gone == nullptr) continue;
    request.gone.reset();
    close(request.connection);
  }
  for (const auto& [connection, until] : dismissed_) close(connection);
  for (auto& [connection, from] : clients_) {
    from.client.reset();
    close(connection);
  }
  file_.reset();
  if (listener_ >= 0) close(listener_);
  if (wake_ >= 0) close(wake_);
}

void MemoryBroker::Loop() {
  std::vector<pollfd> waited;
  while (true) {
    if (!Await(&waited)) {
      // The system may be able to later; the end and answers are looked for meanwhile.
      waited = {{.fd = wake_, .events = POLLIN, .revents = 0}, {.fd = -1, .events = 0, .revents = 0}};
      poll(waited.data(), 1, kAfterFailureMs);
    }
    if (waited[0].revents != 0) {
      uint64_t count = 0;
      [[maybe_unused]] const ssize_t cleared = read(wake_, &count, sizeof(count));
      MutexLock lock(&mutex_);
      if (ending_) return;
    }
    TakeAnswered();
    EndDismissed(waited);
    for (size_t i = 2; i < waited.size(); ++i) {
      const auto client = clients_.find(waited[i].fd);
      if (waited[i].revents == 0 || client == clients_.end()) continue;
      if (!Read(client->first, &client->second)) HangUp(client);
    }
    if (waited[1].revents != 0) Accept();
  }
}

bool MemoryBroker::Await(std::vector<pollfd>* waited) {
  using std::chrono::milliseconds;
  const auto wanted = [](int descriptor) { return pollfd{.fd = descriptor, .events = POLLIN, .revents = 0}; };
  *waited = {wanted(wake_), wanted(listener_)};
  for (const auto& [connection, from] : clients_) {
    if (!from.is_busy) waited->push_back(wanted(connection));
  }
  milliseconds longest(-1);
  for (const auto& [connection, until] : dismissed_) {
    waited->push_back(wanted(connection));
    const milliseconds left = std::chrono::ceil<milliseconds>(until - std::chrono::steady_clock::now());
    if (longest.count() < 0 || left < longest) longest = std::max(left, milliseconds(0));
  }
  if (poll(waited->data(), waited->size(), static_cast<int>(longest.count())) >= 0) {
    failed_ = false;
    return true;
  }
  if (errno != EINTR && !std::exchange(failed_, true)) {
    parts_.refusals->Count(BrokerRefusal::kInternal);
    if (options_.warn) {
      options_.warn(absl::StrCat("shared memory is not handed out: the system cannot wait for ", waited->size(),
                                 " connections: ", std::strerror(errno), "; it is tried again"));
    }
  }
  return false;
}

void MemoryBroker::Dismiss(int connection) {
  if (dismissed_.size() >= kMostDismissed) {
    close(connection);
  } else {
    dismissed_.emplace(connection, std::chrono::steady_clock::now() + kDismissedStay);
  }
}

void MemoryBroker::EndDismissed(const std::vector<pollfd>& waited) {
  const auto now = std::chrono::steady_clock::now();
  for (const pollfd& connection : waited) {
    const auto dismissed = dismissed_.find(connection.fd);
    if (dismissed == dismissed_.end() || (connection.revents == 0 && dismissed->second > now)) continue;
    while (recv(connection.fd, packet_.data(), packet_.size(), MSG_DONTWAIT) > 0) {
    }
    close(connection.fd);
    dismissed_.erase(dismissed);
  }
}

void MemoryBroker::HangUp(Connections::iterator client) {
  BrokerRequest request{.connection = client->first, .gone = std::move(client->second.client)};
  request.wanted = {.tenant = request.gone->tenant(), .size_bytes = request.gone->held_bytes(), .freed = ""};
  clients_.erase(client);
  turns_.Push(std::move(request));
}

void MemoryBroker::Wake() {
  const uint64_t one = 1;
  while (write(wake_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

void MemoryBroker::AnswerLoop(bool small_only) {
  while (std::optional<BrokerRequest> request = turns_.Take(small_only)) {
    if (request->gone != nullptr) {
      request->gone.reset();  // its regions first: who sees the end of the connection sees their end
      close(request->connection);
      continue;
    }
    request->goes_on = Send(request->connection, request->client->Finish(request->wanted));
    {
      MutexLock lock(&mutex_);
      answered_.push_back(*std::move(request));
    }
    Wake();
  }
}

void MemoryBroker::TakeAnswered() {
  std::vector<BrokerRequest> answered;
  {
    MutexLock lock(&mutex_);
    answered.swap(answered_);
  }
  for (const BrokerRequest& request : answered) {
    const auto client = clients_.find(request.connection);
    client->second.is_busy = false;
    if (!request.goes_on) HangUp(client);
  }
}

absl::Status MemoryBroker::AdmitUser(int connection, std::string* peer) const {
  ucred who{};
  socklen_t size = sizeof(who);
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return Refuse(Refusal::kInternal, "the system does not say who connects");
  }
  *peer = absl::StrCat("unix: process ", who.pid, " of user ", who.uid);
  const std::vector<uid_t> others = uids();
  if (who.uid == geteuid() || std::find(others.begin(), others.end(), who.uid) != others.end()) return absl::OkStatus();
  return Refuse(Refusal::kPermissionDenied,
                absl::StrCat("user ", who.uid, " may have no shared memory; shared_memory.uids names who may"));
}

void MemoryBroker::Accept() {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) {
    // If there are no descriptors left, somebody still waits and poll would return at once for ever.
    if (errno == EMFILE || errno == ENFILE) {
      pollfd wake{.fd = wake_, .events = POLLIN, .revents = 0};
      poll(&wake, 1, kWithoutDescriptorsMs);
    }
    return;
  }
  std::string peer;
  absl::Status admitted = AdmitUser(connection, &peer);
  if (!admitted.ok()) {
    parts_.refusals->Count(absl::IsInternal(admitted) ? BrokerRefusal::kInternal : BrokerRefusal::kUser);
  } else if (const int64_t most = max_connections(); static_cast<int64_t>(clients_.size()) >= most) {
    parts_.refusals->Count(BrokerRefusal::kLimit);
    admitted = RefuseLimit("shared_memory.connections", most, static_cast<int64_t>(clients_.size()) + 1,
                           "connections for shared memory");
  }
  if (!admitted.ok()) {
    Send(connection, BrokerClient::Refused(admitted));
    return Dismiss(connection);
  }
  clients_[connection].client = std::make_unique<BrokerClient>(parts_, std::move(peer));
}

bool MemoryBroker::Read(int connection, Connection* from) {
  // Descriptors that a client sends along are closed by the kernel: nobody takes them.
  const ssize_t received = recv(connection, packet_.data(), packet_.size(), MSG_DONTWAIT);
  if (received < 0) return errno == EAGAIN || errno == EINTR;
  if (received == 0) return false;
  absl::StatusOr<BrokerClient::Wanted> wanted = from->client->Begin({packet_.data(), static_cast<size_t>(received)});
  if (!wanted.ok()) return Send(connection, from->client->Refuse(wanted.status()));
  from->is_busy = true;
  turns_.Push({.connection = connection, .client = from->client.get(), .wanted = *std::move(wanted)});
  return true;
}

}  // namespace tensord::server
