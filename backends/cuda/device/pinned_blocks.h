#ifndef TENSORD_BACKENDS_CUDA_DEVICE_PINNED_BLOCKS_H_
#define TENSORD_BACKENDS_CUDA_DEVICE_PINNED_BLOCKS_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "backends/cuda/device/context.h"
#include "engine/base/mutex.h"
#include "engine/exec/memory/block_observer.h"

namespace tensord::cuda {

// The blocks of a pool that are pinned: devices read and write them where they are. A block is pinned when the pool
// gives it out again, for all devices at once, by a call to the context of one; until its pages go, or that context
// does. One that cannot be pinned is no error: its bytes take the way of all others, through a lane's ring. It is tried
// again only if it lacked room and there is some now, or if a lost context has pinned it, which keeps it until it ends.
// Thread-safe.
class PinnedBlocks final : public BlockObserver {
 public:
  struct Options {
    int64_t most_bytes = 0;  // together: the system cannot take pinned memory back
    std::function<void(const absl::Status&)> on_first_refusal = {};
  };
  struct Stats {
    int64_t bytes = 0;    // now
    int64_t pinned = 0;   // blocks so far
    int64_t refused = 0;  // likewise
  };
  // Keeps a block pinned while a device may touch it.
  using Hold = std::shared_ptr<const void>;

  explicit PinnedBlocks(Options options) : options_(std::move(options)) {}

  // Adds a context that blocks may be pinned by.
  void Add(std::shared_ptr<Context> context);
  // Unpins what is pinned by a context, when no device touches it any more. The context ends after this.
  void Remove(const Context& context);

  void OnReuse(void* block, int64_t bytes) override;
  void OnReturn(void* block, int64_t bytes) override;

  // Returns null if some of the bytes are not pinned.
  Hold Find(const void* begin, int64_t bytes);
  Stats stats() const;

 private:
  struct Holder {
    std::shared_ptr<Context> context;
    int uses = 0;
    bool is_going = false;
  };
  struct Block {
    int64_t bytes = 0;
    Holder* holder = nullptr;   // null: it is not pinned, and will not be
    bool may_be_tried = false;  // again: others may make room for it, or a lost context may end
  };

  using Blocks = std::map<const char*, Block>;  // by their begin

  void Reuse(void* block, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the context to pin a block by, in use, and takes room for it, and a place in `made`; null if there is none,
  // or the block needs none. `refusal`: of a block that lacks room for the first time.
  Holder* Begin(void* block, int64_t bytes, Blocks* made, absl::Status* refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  // Says in `tried` what has become of the block.
  static absl::Status Pin(Holder* holder, void* block, Block* tried);
  // Keeps what Begin has made, and ends its use. Returns false if the block was known. Does not throw.
  bool End(Holder* holder, Blocks* made) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts a refusal, and tells of the first one.
  void Refuse(const absl::Status& refusal) ABSL_LOCKS_EXCLUDED(mutex_);
  static void Unpin(Holder* holder, void* block);
  void EndUse(Holder* holder) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  CondVar unused_;
  std::list<Holder> holders_ ABSL_GUARDED_BY(mutex_);
  Blocks blocks_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_DEVICE_PINNED_BLOCKS_H_
