#ifndef TENSORD_CLIENTS_CPP_SHARED_MEMORY_H_
#define TENSORD_CLIENTS_CPP_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "clients/cpp/broker_connection.h"

namespace tensord::client {

// Smaller tensors go in messages, which are as fast.
inline constexpr size_t kSharedFrom = size_t{64} << 10;

// Where bytes lie in memory that client and server share.
struct SharedPlace {
  std::string region;
  int64_t offset = 0;
};

// A block into which a result is wanted.
struct ResultSpace {
  std::shared_ptr<char> bytes;  // null: none is wanted
  size_t size_bytes = 0;
};

// Memory that a server on this host gave to this process, in blocks that are used again. Blocks keep it, and with it
// the connection that they came by, alive. Thread-safe.
//
//   absl::StatusOr<std::shared_ptr<char>> block = client->shared_memory()->Allocate(1 << 26);
//   ...                                                  // written to
//   HostTensor::FromBuffer(DType::kF32, {1 << 24}, MemoryOrder::kRowMajor, *block, 1 << 26);   // sent without a copy
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // `socket` is the path that the server tells; `authorization` as in the metadata of calls, or empty. UNAVAILABLE
  // where nobody takes the connection by then. Nothing here waits longer than BrokerConnection::kMostWait.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Connect(const std::string& socket, std::string authorization,
                                                               absl::Time deadline = absl::InfiniteFuture());
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // At least that many bytes, with any content, aligned to pages. While a call reads or writes them the server works
  // with this very memory. What the server refuses; DEADLINE_EXCEEDED where it does not answer in time; UNAVAILABLE
  // where it has gone, or still owes the answer to a request that was given up.
  absl::StatusOr<std::shared_ptr<char>> Allocate(size_t size_bytes, absl::Time deadline = absl::InfiniteFuture());
  // Where the bytes lie; nothing where they are no part of one block, or no multiple of 64 into it.
  std::optional<SharedPlace> Find(const char* bytes, size_t size_bytes) const;
  // The block that begins there is not used again: a call that was given up may still write to it.
  void Forget(const char* block);

  // The server does not know its regions any more: it was started again. From now on nothing is found or allocated.
  void SetLost();
  bool is_lost() const;
  // Looks whether the server has closed the connection; then it is lost.
  bool HasGone();

 private:
  struct Block {
    std::string region;
    char* bytes = nullptr;
    size_t size_bytes = 0;
    bool forgotten = false;
  };

  explicit SharedMemory(std::unique_ptr<BrokerConnection> connection) : connection_(std::move(connection)) {}

  absl::StatusOr<Block> Request(size_t size_bytes, absl::Time deadline);
  // A block that nobody has any more.
  void GiveBack(char* bytes);
  void Free(const Block& block);

  const std::unique_ptr<BrokerConnection> connection_;
  mutable std::mutex mutex_;
  bool is_lost_ = false;
  std::map<uintptr_t, Block> blocks_;  // those in use, by address
  std::multimap<size_t, Block> free_;  // by size
  size_t free_bytes_ = 0;
};

}  // namespace tensord::client

#endif  // TENSORD_CLIENTS_CPP_SHARED_MEMORY_H_
