#include "clients/cpp/shared_memory.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tensord::client {
namespace {

constexpr size_t kMostReplyBytes = 65536;
// Free blocks beyond it are given back to the server.
constexpr size_t kMostFreeBytes = size_t{256} << 20;
constexpr int64_t kAlignment = 64;

// Four sizes a power of two, so that blocks fit again.
size_t RoundUp(size_t size_bytes) {
  size_t step = 4096;
  while (step * 8 < size_bytes) step *= 2;
  return (size_bytes + step - 1) / step * step;
}

absl::Status Gone(absl::string_view what) {
  return absl::UnavailableError(absl::StrCat("no shared memory: ", what, ": ", std::strerror(errno)));
}

// The descriptor that came with a message; -1: none.
int DescriptorOf(msghdr* message) {
  int descriptor = -1;
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr; header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof(descriptor));
    }
  }
  return descriptor;
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Connect(const std::string& socket_path,
                                                                    std::string authorization) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("the path of a socket is too long: ", socket_path));
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connection < 0) return Gone("socket");
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const absl::Status status = Gone(socket_path);
    close(connection);
    return status;
  }
  return std::shared_ptr<SharedMemory>(new SharedMemory(connection, std::move(authorization)));
}

SharedMemory::~SharedMemory() {
  for (const auto& [size, block] : free_) munmap(block.bytes, block.size_bytes);
  close(connection_);
}

absl::StatusOr<v1::SharedMemoryReply> SharedMemory::Ask(const v1::SharedMemoryRequest& request, int* descriptor) {
  const std::string bytes = request.SerializeAsString();
  std::string answer(kMostReplyBytes, '\0');
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  iovec part{answer.data(), answer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  ssize_t received = -1;
  {
    std::lock_guard<std::mutex> lock(asking_);
    // Who hung up may have said why.
    if (send(connection_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE) {
      return Gone("the server has gone");
    }
    do {
      received = recvmsg(connection_, &message, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
  }
  if (received <= 0) return Gone("the server has gone");
  *descriptor = DescriptorOf(&message);
  v1::SharedMemoryReply reply;
  if (!reply.ParseFromArray(answer.data(), static_cast<int>(received))) {
    return absl::InternalError("the server's answer is no SharedMemoryReply");
  }
  if (reply.has_error()) {
    return absl::Status(static_cast<absl::StatusCode>(reply.error().code()),
                        absl::StrCat(reply.error().message(), " (", reply.error().detail().reason(), ")"));
  }
  return reply;
}

absl::StatusOr<SharedMemory::Block> SharedMemory::Request(size_t size_bytes) {
  v1::SharedMemoryRequest request;
  request.set_authorization(authorization_);
  request.mutable_allocate()->set_byte_count(static_cast<int64_t>(size_bytes));
  int descriptor = -1;
  absl::StatusOr<v1::SharedMemoryReply> reply = Ask(request, &descriptor);
  void* address = MAP_FAILED;
  const bool is_region = reply.ok() && descriptor >= 0 && reply->byte_count() >= static_cast<int64_t>(size_bytes);
  if (is_region) {
    address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  }
  if (descriptor >= 0) close(descriptor);
  if (!reply.ok()) return reply.status();
  if (!is_region) return absl::InternalError("the server's answer has no region");
  if (address == MAP_FAILED) return absl::ResourceExhaustedError("the system maps no more memory");
  return Block{.region = reply->region(), .bytes = static_cast<char*>(address), .size_bytes = size_bytes};
}

absl::StatusOr<std::shared_ptr<char>> SharedMemory::Allocate(size_t size_bytes) {
  const size_t rounded = RoundUp(size_bytes);
  Block block;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (is_lost_) return absl::UnavailableError("no shared memory: the server was started again");
    const auto found = free_.find(rounded);
    if (found != free_.end()) {
      block = std::move(found->second);
      free_.erase(found);
      free_bytes_ -= rounded;
    }
  }
  if (block.bytes == nullptr) {
    absl::StatusOr<Block> made = Request(rounded);
    if (!made.ok()) return made.status();
    block = *std::move(made);
  }
  char* const bytes = block.bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  blocks_.emplace(reinterpret_cast<uintptr_t>(bytes), std::move(block));
  return std::shared_ptr<char>(bytes, [self = shared_from_this()](char* given) { self->GiveBack(given); });
}

void SharedMemory::GiveBack(char* bytes) {
  Block block;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(reinterpret_cast<uintptr_t>(bytes));
    block = std::move(found->second);
    blocks_.erase(found);
    if (!block.forgotten && !is_lost_ && free_bytes_ + block.size_bytes <= kMostFreeBytes) {
      free_bytes_ += block.size_bytes;
      free_.emplace(block.size_bytes, std::move(block));
      return;
    }
  }
  Free(block);
}

void SharedMemory::Free(const Block& block) {
  munmap(block.bytes, block.size_bytes);
  v1::SharedMemoryRequest request;
  request.mutable_free()->set_region(block.region);
  int descriptor = -1;
  // Where the server has gone, so has the region.
  static_cast<void>(Ask(request, &descriptor).ok());
  if (descriptor >= 0) close(descriptor);
}

std::optional<SharedPlace> SharedMemory::Find(const char* bytes, size_t size_bytes) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(bytes);
  std::lock_guard<std::mutex> lock(mutex_);
  auto after = blocks_.upper_bound(address);
  if (is_lost_ || after == blocks_.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  const size_t offset = static_cast<size_t>(bytes - block.bytes);
  if (offset % kAlignment != 0 || offset > block.size_bytes || size_bytes > block.size_bytes - offset) {
    return std::nullopt;
  }
  return SharedPlace{.region = block.region, .offset = static_cast<int64_t>(offset)};
}

void SharedMemory::Forget(const char* block) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<uintptr_t>(block));
  if (found != blocks_.end()) found->second.forgotten = true;
}

void SharedMemory::SetLost() {
  std::lock_guard<std::mutex> lock(mutex_);
  is_lost_ = true;
}

bool SharedMemory::is_lost() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_lost_;
}

}  // namespace tensord::client
