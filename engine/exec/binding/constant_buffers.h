#ifndef TENSORD_ENGINE_EXEC_BINDING_CONSTANT_BUFFERS_H_
#define TENSORD_ENGINE_EXEC_BINDING_CONSTANT_BUFFERS_H_

#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "engine/base/mutex.h"
#include "engine/exec/backend/backend.h"
#include "engine/exec/backend/buffer.h"
#include "engine/tensor/literal.h"

namespace tensord {

// The constants of a program on its device, for all bindings, stages and programs for sizes that need them at a time:
// equal bytes lie there once. They belong to those who got them, and leave the device with the last of these.
// Thread-safe. The backend must outlive it.
class ConstantBuffers {
 public:
  explicit ConstantBuffers(Backend* backend)
      : backend_(backend), copies_(!backend->Describe().computes_in_host_memory) {}

  // Returns a buffer with the literal's bytes. Imports them where they are not on the device, or it has lost them;
  // fails as Backend::Import does. Who needs bytes that another thread imports waits for it, and leaves early as
  // CheckStopped says.
  absl::StatusOr<BufferPtr> Get(const LiteralPtr& literal);

 private:
  struct Entry {
    std::weak_ptr<const Literal> literal;
    std::weak_ptr<const Buffer> buffer;
  };

  absl::StatusOr<BufferPtr> Import(const LiteralPtr& literal) const;
  // Waits until nobody has the bytes of a hash in hand, and takes them. Returns their entry.
  absl::StatusOr<Entry> Claim(size_t hash);
  void ForgetGoneLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Backend* const backend_;
  const bool copies_;  // else there is nothing to share
  Mutex mutex_;
  CondVar returned_;
  absl::flat_hash_set<size_t> claimed_ ABSL_GUARDED_BY(mutex_);         // each by one thread
  absl::flat_hash_map<size_t, Entry> entries_ ABSL_GUARDED_BY(mutex_);  // by hash of the bytes
  size_t most_ ABSL_GUARDED_BY(mutex_) = 64;  // entries, until those are forgotten that nobody has any more
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BINDING_CONSTANT_BUFFERS_H_
