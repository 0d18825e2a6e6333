#include "tensord/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <utility>

#include "clients/cpp/shared_memory/broker_connection.h"

namespace tensord::client {
namespace {

// Free blocks beyond it are given back to the server.
constexpr size_t kMostFreeBytes = size_t{256} << 20;
constexpr int64_t kAlignment = 64;

// Four sizes a power of two, so that blocks fit again.
size_t RoundUp(size_t size_bytes) {
  size_t step = 4096;
  while (step * 8 < size_bytes) step *= 2;
  return (size_bytes + step - 1) / step * step;
}

// Tells whether a region has so many bytes and keeps them: a write to a missing page would end the process by SIGBUS.
bool HasForGood(int descriptor, size_t size_bytes) {
  struct stat file = {};
  const int seals = fcntl(descriptor, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(descriptor, &file) == 0 &&
         file.st_size >= static_cast<off_t>(size_bytes);
}

}  // namespace

absl::StatusOr<std::shared_ptr<SharedMemory>> SharedMemory::Connect(const std::string& socket,
                                                                    std::string authorization, absl::Time deadline) {
  absl::StatusOr<std::unique_ptr<BrokerConnection>> connection =
      BrokerConnection::Connect(socket, std::move(authorization), deadline);
  if (!connection.ok()) return connection.status();
  return std::shared_ptr<SharedMemory>(new SharedMemory(*std::move(connection)));
}

struct SharedMemory::Block {
  std::string region;
  char* bytes = nullptr;
  size_t size_bytes = 0;
  bool forgotten = false;
};

struct SharedMemory::State {
  const std::unique_ptr<BrokerConnection> connection;
  std::mutex mutex = {};
  bool is_lost = false;
  std::map<uintptr_t, Block> blocks = {};  // those in use, by address
  std::multimap<size_t, Block> free = {};  // by size
  size_t free_bytes = 0;
};

SharedMemory::SharedMemory(std::unique_ptr<BrokerConnection> connection)
    : state_(new State{.connection = std::move(connection)}) {}

SharedMemory::~SharedMemory() {
  for (const auto& [size, block] : state_->free) munmap(block.bytes, block.size_bytes);
}

absl::StatusOr<SharedMemory::Block> SharedMemory::Request(size_t size_bytes, absl::Time deadline) {
  const absl::StatusOr<BrokerConnection::Region> region = state_->connection->Allocate(size_bytes, deadline);
  if (!region.ok()) return region.status();
  void* address = MAP_FAILED;
  const bool is_large_enough =
      region->size_bytes >= static_cast<int64_t>(size_bytes) && HasForGood(region->descriptor, size_bytes);
  if (is_large_enough) {
    address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, region->descriptor, 0);
  }
  close(region->descriptor);
  if (address == MAP_FAILED) state_->connection->Free(region->id);
  if (!is_large_enough) return absl::InternalError("the server's region is too small, or may shrink");
  if (address == MAP_FAILED) return absl::ResourceExhaustedError("the system maps no more memory");
  return Block{.region = region->id, .bytes = static_cast<char*>(address), .size_bytes = size_bytes};
}

absl::StatusOr<std::shared_ptr<char>> SharedMemory::Allocate(size_t size_bytes, absl::Time deadline) {
  const size_t rounded = RoundUp(size_bytes);
  Block block;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->is_lost) return absl::UnavailableError("no shared memory: the server was started again");
    const auto found = state_->free.find(rounded);
    if (found != state_->free.end()) {
      block = std::move(found->second);
      state_->free.erase(found);
      state_->free_bytes -= rounded;
    }
  }
  if (block.bytes == nullptr) {
    absl::StatusOr<Block> made = Request(rounded, deadline);
    if (!made.ok()) return made.status();
    block = *std::move(made);
  }
  char* const bytes = block.bytes;
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->blocks.emplace(reinterpret_cast<uintptr_t>(bytes), std::move(block));
  return std::shared_ptr<char>(bytes, [self = shared_from_this()](char* given) { self->GiveBack(given); });
}

void SharedMemory::GiveBack(char* bytes) {
  Block block;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    const auto found = state_->blocks.find(reinterpret_cast<uintptr_t>(bytes));
    block = std::move(found->second);
    state_->blocks.erase(found);
    if (!block.forgotten && !state_->is_lost && state_->free_bytes + block.size_bytes <= kMostFreeBytes) {
      state_->free_bytes += block.size_bytes;
      state_->free.emplace(block.size_bytes, std::move(block));
      return;
    }
  }
  Free(block);
}

void SharedMemory::Free(const Block& block) {
  munmap(block.bytes, block.size_bytes);
  state_->connection->Free(block.region);
}

std::optional<SharedPlace> SharedMemory::Find(const char* bytes, size_t size_bytes) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(bytes);
  std::lock_guard<std::mutex> lock(state_->mutex);
  auto after = state_->blocks.upper_bound(address);
  if (state_->is_lost || after == state_->blocks.begin()) return std::nullopt;
  const Block& block = std::prev(after)->second;
  const size_t offset = static_cast<size_t>(bytes - block.bytes);
  if (offset % kAlignment != 0 || offset > block.size_bytes || size_bytes > block.size_bytes - offset) {
    return std::nullopt;
  }
  return SharedPlace{.region = block.region, .offset = static_cast<int64_t>(offset)};
}

void SharedMemory::Forget(const char* block) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  const auto found = state_->blocks.find(reinterpret_cast<uintptr_t>(block));
  if (found != state_->blocks.end()) found->second.forgotten = true;
}

void SharedMemory::SetLost() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->is_lost = true;
}

bool SharedMemory::is_lost() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->is_lost;
}

bool SharedMemory::HasGone() {
  if (is_lost()) return true;
  if (!state_->connection->HasHungUp()) return false;
  SetLost();
  return true;
}

}  // namespace tensord::client
