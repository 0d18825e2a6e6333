#include "tests/e2e/server/shared_memory/broker_socket.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "gtest/gtest.h"

namespace tensord {
namespace {

std::string ReasonOf(const v1::SharedMemoryReply& reply) {
  return reply.has_error() ? reply.error().detail().reason() : "OK";
}

}  // namespace

BrokerSocket::Region::Region(std::string id, int descriptor, int64_t size_bytes)
    : id_(std::move(id)), descriptor_(descriptor), size_bytes_(size_bytes) {
  void* const address =
      mmap(nullptr, static_cast<size_t>(size_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  EXPECT_NE(address, MAP_FAILED);
  bytes_ = static_cast<char*>(address);
}

BrokerSocket::Region::Region(Region&& other) noexcept
    : id_(std::move(other.id_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, nullptr)),
      size_bytes_(other.size_bytes_) {}

BrokerSocket::Region::~Region() {
  if (bytes_ != nullptr) munmap(bytes_, static_cast<size_t>(size_bytes_));
  if (descriptor_ >= 0) close(descriptor_);
}

BrokerSocket::BrokerSocket(const std::string& path) : socket_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) Close();
}

void BrokerSocket::Close() {
  if (socket_ >= 0) close(std::exchange(socket_, -1));
}

v1::SharedMemoryReply BrokerSocket::Ask(absl::string_view packet, int* descriptor) {
  send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL);
  return Read(descriptor);
}

v1::SharedMemoryReply BrokerSocket::Read(int* descriptor) {
  *descriptor = -1;
  std::string bytes(65536, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t received = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
  v1::SharedMemoryReply reply;
  if (received <= 0) return reply;
  EXPECT_TRUE(reply.ParseFromArray(bytes.data(), static_cast<int>(received)));
  if (const cmsghdr* const header = CMSG_FIRSTHDR(&message)) {
    std::memcpy(descriptor, CMSG_DATA(header), sizeof(*descriptor));
  }
  return reply;
}

std::string BrokerSocket::Allocate(int64_t size_bytes, const std::string& authorization, v1::SharedMemoryReply* reply) {
  v1::SharedMemoryRequest request;
  request.set_authorization(authorization);
  request.mutable_allocate()->set_byte_count(size_bytes);
  int descriptor = -1;
  v1::SharedMemoryReply answer = Ask(request.SerializeAsString(), &descriptor);
  if (descriptor >= 0) close(descriptor);
  std::string reason = ReasonOf(answer);
  if (reply != nullptr) *reply = std::move(answer);
  return reason;
}

std::string BrokerSocket::Free(const std::string& region) {
  v1::SharedMemoryRequest request;
  request.mutable_free()->set_region(region);
  int descriptor = -1;
  return ReasonOf(Ask(request.SerializeAsString(), &descriptor));
}

BrokerSocket::Region BrokerSocket::Take(int64_t size_bytes, const std::string& authorization) {
  v1::SharedMemoryRequest request;
  request.set_authorization(authorization);
  request.mutable_allocate()->set_byte_count(size_bytes);
  int descriptor = -1;
  const v1::SharedMemoryReply reply = Ask(request.SerializeAsString(), &descriptor);
  EXPECT_FALSE(reply.has_error()) << reply.error().message();
  EXPECT_GE(reply.byte_count(), size_bytes);
  return Region(reply.region(), descriptor, reply.byte_count());
}

}  // namespace tensord
