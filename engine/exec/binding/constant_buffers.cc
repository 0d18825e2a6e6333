#include "engine/exec/binding/constant_buffers.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/base/stop_signal.h"

namespace tensord {

absl::StatusOr<BufferPtr> ConstantBuffers::Import(const LiteralPtr& literal) const {
  const absl::string_view bytes = literal->bytes();
  return backend_->Import(bytes.data(), static_cast<int64_t>(bytes.size()), literal);
}

absl::StatusOr<BufferPtr> ConstantBuffers::Get(const LiteralPtr& literal) {
  if (!copies_) return Import(literal);
  const size_t hash = absl::HashOf(literal->bytes());
  ASSIGN_OR_RETURN(const Entry entry, Claim(hash));
  // Also where memory ends on the way: others wait for this.
  const absl::Cleanup give_back = [this, hash] {
    MutexLock lock(&mutex_);
    claimed_.erase(hash);
    returned_.SignalAll();
  };
  const LiteralPtr other = entry.literal.lock();
  BufferPtr buffer = entry.buffer.lock();
  const bool is_here = other != nullptr && buffer != nullptr && !buffer->is_lost() &&
                       (other == literal || other->bytes() == literal->bytes());
  if (!is_here) {
    ASSIGN_OR_RETURN(buffer, Import(literal));
  }
  MutexLock lock(&mutex_);
  if (entries_.size() >= most_) ForgetGoneLocked();
  entries_[hash] = {.literal = literal, .buffer = buffer};  // who came last stays longest
  return buffer;
}

absl::StatusOr<ConstantBuffers::Entry> ConstantBuffers::Claim(size_t hash) {
  MutexLock lock(&mutex_);
  while (claimed_.contains(hash)) RETURN_IF_ERROR(WaitUnlessStopped(&returned_, &mutex_));
  claimed_.insert(hash);
  const auto found = entries_.find(hash);
  return found == entries_.end() ? Entry() : found->second;
}

void ConstantBuffers::ForgetGoneLocked() {
  absl::erase_if(entries_, [](const auto& entry) { return entry.second.buffer.expired(); });
  most_ = std::max(most_, 2 * entries_.size());
}

}  // namespace tensord
