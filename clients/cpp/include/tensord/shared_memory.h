#ifndef TENSORD_SHARED_MEMORY_H_
#define TENSORD_SHARED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tensord::client {

class BrokerConnection;

// Least size of a tensor in shared memory. Messages are as fast for smaller ones.
inline constexpr size_t kSharedFrom = size_t{64} << 10;

// Place of bytes in shared memory.
struct SharedPlace {
  std::string region = {};
  int64_t offset = 0;
};

// Block for a result.
struct ResultSpace {
  std::shared_ptr<char> bytes = {};  // null: none is wanted
  size_t size_bytes = 0;
};

// Memory that a server on this host shares with this process, in reusable blocks. Blocks keep it and its connection
// alive. Thread-safe.
//
//   absl::StatusOr<std::shared_ptr<char>> block = client->shared_memory()->Allocate(1 << 26);
//   ...                                                  // written to
//   HostTensor::FromBuffer(DType::kF32, {1 << 24}, MemoryOrder::kRowMajor, *block, 1 << 26);   // sent without a copy
class SharedMemory : public std::enable_shared_from_this<SharedMemory> {
 public:
  // Connects to `socket`, the server's path, with the `authorization` of calls or an empty one. UNAVAILABLE if the
  // connection is not taken by the deadline. No function here waits longer than ten seconds.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Connect(const std::string& socket, std::string authorization,
                                                               absl::Time deadline = absl::InfiniteFuture());
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  // Allocates at least `size_bytes` with any content, aligned to pages. During a call the server works in this very
  // memory. The server's refusals; DEADLINE_EXCEEDED without an answer in time; UNAVAILABLE if the server has gone, or
  // still owes the answer to an abandoned request.
  absl::StatusOr<std::shared_ptr<char>> Allocate(size_t size_bytes, absl::Time deadline = absl::InfiniteFuture());
  // Finds the place of bytes; nullopt unless they lie in one block, at a multiple of 64.
  std::optional<SharedPlace> Find(const char* bytes, size_t size_bytes) const;
  // Takes the block out of reuse, because an abandoned call may still write to it.
  void Forget(const char* block);

  // Marks the memory as lost after a restart of the server: nothing is found or allocated any more.
  void SetLost();
  bool is_lost() const;
  // Checks whether the server has closed the connection, and marks the memory as lost if so.
  bool HasGone();

 private:
  struct Block;
  struct State;

  explicit SharedMemory(std::unique_ptr<BrokerConnection> connection);

  absl::StatusOr<Block> Request(size_t size_bytes, absl::Time deadline);
  // Returns a block without users to the pool.
  void GiveBack(char* bytes);
  void Free(const Block& block);

  const std::unique_ptr<State> state_;
};

}  // namespace tensord::client

#endif  // TENSORD_SHARED_MEMORY_H_
