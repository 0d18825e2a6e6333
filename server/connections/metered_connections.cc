#include "server/connections/metered_connections.h"

#include <dlfcn.h>
#include <linux/sockios.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/base/dynamic_annotations.h"
#include "server/connections/connection_peer.h"

namespace tensord::server {
namespace {

// A span of work on gRPC's memory, which its threads hand on in an order that ThreadSanitizer does not see:
// deploy/dev/tsan.supp silences gRPC's own accesses.
struct OrderedByGrpc {
  OrderedByGrpc() { ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_BEGIN(); }
  ~OrderedByGrpc() { ABSL_ANNOTATE_IGNORE_READS_AND_WRITES_END(); }
};

// The encrypted connection that this thread has received from last; bytes decrypted since belong to it.
thread_local int decrypting = -1;

// Tells whether the socket has room for more answers to the client.
bool Reads(int descriptor) {
  pollfd writable{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&writable, 1, 0) > 0;
}

}  // namespace

MeteredConnections& MeteredConnections::OfProcess() {
  static MeteredConnections* const instance = new MeteredConnections;  // libraries read until the very end
  return *instance;
}

void MeteredConnections::Add(int descriptor, bool is_encrypted, std::string peer,
                             std::shared_ptr<ConnectionBounds> bounds) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return;
  const FrameMeter meter(bounds->limits(), FrameMeter::Clock::now());
  Shard& shard = ShardOf(descriptor);
  MutexLock lock(&shard.mutex);
  shard.connections.erase(descriptor);
  shard.connections.emplace(
      descriptor, Connection{info.st_dev, info.st_ino, is_encrypted, std::move(peer), std::move(bounds), meter, {}});
}

bool MeteredConnections::Received(int descriptor, absl::Span<const iovec> parts, size_t bytes) {
  Shard& shard = ShardOf(descriptor);
  ConnectionExcess excess = ConnectionExcess::kNone;
  {
    MutexLock lock(&shard.mutex);
    const auto found = shard.connections.find(descriptor);
    if (found == shard.connections.end()) return true;
    if (found->second.is_encrypted) decrypting = descriptor;
    if (found->second.is_encrypted) return true;
    const auto now = FrameMeter::Clock::now();
    const OrderedByGrpc ordered;
    for (const iovec& part : parts) {
      const size_t count = std::min(part.iov_len, bytes);
      excess = found->second.meter.Read({static_cast<const char*>(part.iov_base), count}, now,
                                        [descriptor] { return Reads(descriptor); });
      bytes -= count;
      if (bytes == 0 || excess != ConnectionExcess::kNone) break;
    }
  }
  return excess == ConnectionExcess::kNone || !End(descriptor, excess);
}

void MeteredConnections::Sends(int descriptor) {
  Shard& shard = ShardOf(descriptor);
  MutexLock lock(&shard.mutex);
  const auto found = shard.connections.find(descriptor);
  if (found != shard.connections.end()) found->second.meter.Sends();
}

void MeteredConnections::Sent(int descriptor, size_t wanted, size_t sent) {
  Shard& shard = ShardOf(descriptor);
  MutexLock lock(&shard.mutex);
  const auto found = shard.connections.find(descriptor);
  if (found == shard.connections.end()) return;
  found->second.meter.Sent(static_cast<int64_t>(sent));
  SendProgress& sending = found->second.sending;
  if (sent < wanted || sending.is_stalled()) sending.Sent(wanted, sent, SendProgress::Clock::now());
}

void MeteredConnections::EndUnread(SendProgress::Clock::time_point now) {
  std::vector<int> unread;
  for (Shard& shard : shards_) {
    MutexLock lock(&shard.mutex);
    for (auto& [descriptor, connection] : shard.connections) {
      if (!connection.sending.is_stalled()) continue;
      int waiting_bytes = 0;
      if (ioctl(descriptor, SIOCOUTQ, &waiting_bytes) == 0) connection.sending.Looked(waiting_bytes, now);
      const std::chrono::milliseconds most = connection.bounds->most_unread();
      if (most > most.zero() && connection.sending.Stalled(now) > most) unread.push_back(descriptor);
    }
  }
  for (const int descriptor : unread) End(descriptor, ConnectionExcess::kUnread);
}

bool MeteredConnections::End(int descriptor, ConnectionExcess excess) {
  Shard& shard = ShardOf(descriptor);
  std::string peer;
  std::shared_ptr<ConnectionBounds> bounds;
  {
    MutexLock lock(&shard.mutex);
    const auto found = shard.connections.find(descriptor);
    if (found == shard.connections.end()) return false;
    Connection& connection = found->second;
    struct stat info {};
    // A closed connection is not reported, and its number may belong to anybody by now, with bytes of any kind.
    if (fstat(descriptor, &info) != 0 || info.st_dev != connection.device || info.st_ino != connection.inode) {
      shard.connections.erase(found);
      return false;
    }
    if (std::exchange(connection.is_over, true)) return true;
    peer = connection.peer;
    bounds = connection.bounds;
  }
  if (excess == ConnectionExcess::kUnread) {
    const linger drop{.l_onoff = 1, .l_linger = 0};  // nor is the kernel to keep what it has until it is read
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &drop, sizeof(drop));
  }
  shutdown(descriptor, SHUT_RDWR);  // gRPC would wait until the client has read what it is sent
  bounds->Exceeded(excess, peer);
  return true;
}

std::string MeteredConnections::UnixPeerOf(int descriptor) {
  {
    Shard& shard = ShardOf(descriptor);
    MutexLock lock(&shard.mutex);
    if (!shard.connections.contains(descriptor)) return "";
  }
  return UnixPeerName(descriptor);
}

MeteredConnections::Decrypted::Decrypted(int descriptor, std::shared_ptr<ConnectionBounds> bounds)
    : descriptor_(descriptor), bounds_(std::move(bounds)), meter_(bounds_->limits(), FrameMeter::Clock::now()) {}

std::unique_ptr<MeteredConnections::Decrypted> MeteredConnections::NewDecrypted() {
  if (decrypting < 0) return nullptr;
  Shard& shard = ShardOf(decrypting);
  MutexLock lock(&shard.mutex);
  const auto found = shard.connections.find(decrypting);
  if (found == shard.connections.end() || !found->second.is_encrypted) return nullptr;
  return std::make_unique<Decrypted>(decrypting, found->second.bounds);
}

bool MeteredConnections::Decrypted::Received(absl::string_view bytes, int64_t sent_bytes) {
  if (sent_bytes > 0) meter_.Sends();
  meter_.Sent(sent_bytes - std::exchange(sent_bytes_, sent_bytes));
  // The thread that received bytes decrypts them before it receives from another connection.
  const bool is_current = decrypting == descriptor_;
  const ConnectionExcess excess =
      meter_.Read(bytes, FrameMeter::Clock::now(), [this, is_current] { return !is_current || Reads(descriptor_); });
  if (excess == ConnectionExcess::kNone) return true;
  if (is_current) OfProcess().End(descriptor_, excess);
  return false;
}

namespace {

void FreeDecrypted(void* /*ssl*/, void* decrypted, CRYPTO_EX_DATA* /*data*/, int /*index*/, long /*number*/,
                   void* /*argument*/) {
  delete static_cast<MeteredConnections::Decrypted*>(decrypted);
}

// Returns null if nobody looks at the connection.
MeteredConnections::Decrypted* DecryptedOf(SSL* ssl) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, &FreeDecrypted);
  auto* decrypted = static_cast<MeteredConnections::Decrypted*>(SSL_get_ex_data(ssl, index));
  if (decrypted != nullptr) return decrypted;
  std::unique_ptr<MeteredConnections::Decrypted> made = MeteredConnections::OfProcess().NewDecrypted();
  if (made == nullptr || SSL_set_ex_data(ssl, index, made.get()) != 1) return nullptr;
  return made.release();
}

// Counts the bytes that are sent over an encrypted connection; returns how many these are, with `bytes` more.
int64_t SentBytes(SSL* ssl, int bytes) {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  const intptr_t sent = reinterpret_cast<intptr_t>(SSL_get_ex_data(ssl, index)) + bytes;
  if (bytes > 0) SSL_set_ex_data(ssl, index, reinterpret_cast<void*>(sent));
  return sent;
}

}  // namespace
}  // namespace tensord::server

extern "C" {

// In place of the system's, for all that is in the process: docs/why/0049.
ssize_t recvmsg(int descriptor, msghdr* message, int flags) {
  static const auto read = reinterpret_cast<ssize_t (*)(int, msghdr*, int)>(dlsym(RTLD_NEXT, "recvmsg"));
  const ssize_t count = [&] {
    const tensord::server::OrderedByGrpc ordered;
    return read(descriptor, message, flags);
  }();
  if (count <= 0 || (flags & (MSG_PEEK | MSG_ERRQUEUE)) != 0) return count;
  if (tensord::server::MeteredConnections::OfProcess().Received(descriptor, {message->msg_iov, message->msg_iovlen},
                                                                static_cast<size_t>(count))) {
    return count;
  }
  errno = ECONNRESET;
  return -1;
}

// Likewise.
ssize_t sendmsg(int descriptor, const msghdr* message, int flags) {
  static const auto write = reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
  // The other side may answer before it returns.
  tensord::server::MeteredConnections::OfProcess().Sends(descriptor);
  const ssize_t count = [&] {
    const tensord::server::OrderedByGrpc ordered;
    return write(descriptor, message, flags);
  }();
  const int error = errno;
  if (count < 0 && error != EAGAIN && error != EWOULDBLOCK) return count;
  size_t wanted = 0;
  for (size_t i = 0; i < message->msg_iovlen; ++i) wanted += message->msg_iov[i].iov_len;
  tensord::server::MeteredConnections::OfProcess().Sent(descriptor, wanted,
                                                        static_cast<size_t>(std::max<ssize_t>(count, 0)));
  errno = error;
  return count;
}

// Likewise: gRPC names the peer of a call by it. A peer of a unix socket has no name that it did not choose itself, and
// gets one that tells its process and user: docs/why/0060.
int getpeername(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  static const auto ask = reinterpret_cast<int (*)(int, sockaddr*, socklen_t*)>(dlsym(RTLD_NEXT, "getpeername"));
  const socklen_t most = *size;
  const int asked = ask(descriptor, address, size);
  if (asked != 0 || *size < sizeof(address->sa_family) || address->sa_family != AF_UNIX) return asked;
  const std::string name = tensord::server::MeteredConnections::OfProcess().UnixPeerOf(descriptor);
  const size_t length = offsetof(sockaddr_un, sun_path) + name.size() + 1;
  if (name.empty() || length > most) return asked;
  std::memcpy(reinterpret_cast<sockaddr_un*>(address)->sun_path, name.c_str(), name.size() + 1);
  *size = static_cast<socklen_t>(length);
  return asked;
}

// Likewise.
int SSL_read(SSL* ssl, void* buffer, int most) {
  static const auto read = reinterpret_cast<int (*)(SSL*, void*, int)>(dlsym(RTLD_NEXT, "SSL_read"));
  const tensord::server::OrderedByGrpc ordered;
  const int count = read(ssl, buffer, most);
  if (count <= 0 || SSL_is_server(ssl) != 1) return count;
  tensord::server::MeteredConnections::Decrypted* const decrypted = tensord::server::DecryptedOf(ssl);
  if (decrypted == nullptr || decrypted->Received({static_cast<const char*>(buffer), static_cast<size_t>(count)},
                                                  tensord::server::SentBytes(ssl, 0))) {
    return count;
  }
  ERR_raise(ERR_LIB_USER, ERR_R_PASSED_INVALID_ARGUMENT);  // without an error it is asked again
  return -1;
}

// Likewise: the handshake goes another way, and the first bytes that go this way are the server's settings.
int SSL_write(SSL* ssl, const void* buffer, int size) {
  static const auto write = reinterpret_cast<int (*)(SSL*, const void*, int)>(dlsym(RTLD_NEXT, "SSL_write"));
  const tensord::server::OrderedByGrpc ordered;
  if (SSL_is_server(ssl) == 1) tensord::server::SentBytes(ssl, size);
  return write(ssl, buffer, size);
}

}  // extern "C"
