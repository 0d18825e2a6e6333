#include "backends/cuda/device/pinned_blocks.h"

#include <iterator>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"

namespace tensord::cuda {

void PinnedBlocks::Add(std::shared_ptr<Context> context) {
  MutexLock lock(&mutex_);
  holders_.push_back({.context = std::move(context)});
}

void PinnedBlocks::Remove(const Context& context) {
  MutexLock lock(&mutex_);
  auto holder = holders_.begin();
  while (holder != holders_.end() && holder->context.get() != &context) ++holder;
  if (holder == holders_.end()) return;
  holder->is_going = true;
  while (holder->uses > 0) unused_.Wait(&mutex_);
  for (auto block = blocks_.begin(); block != blocks_.end();) {
    if (block->second.holder != nullptr && block->second.holder != &*holder) {
      ++block;
      continue;
    }
    if (block->second.holder != nullptr) {
      Unpin(&*holder, const_cast<char*>(block->first));
      stats_.bytes -= block->second.bytes;
    }
    block = blocks_.erase(block);  // those that were refused too: another context may pin them
  }
  holders_.erase(holder);
}

PinnedBlocks::Holder* PinnedBlocks::Begin(void* block, int64_t bytes, absl::Status* refusal) {
  MutexLock lock(&mutex_);
  const auto known = blocks_.find(static_cast<const char*>(block));
  if (known != blocks_.end() && !known->second.may_be_tried) return nullptr;
  for (Holder& holder : holders_) {
    if (holder.is_going || holder.context->is_lost()) continue;
    if (bytes <= options_.most_bytes - stats_.bytes) {
      ++holder.uses;
      stats_.bytes += bytes;
      return &holder;
    }
    if (known != blocks_.end()) return nullptr;
    blocks_[static_cast<const char*>(block)] = {.bytes = bytes, .may_be_tried = true};
    *refusal = absl::ResourceExhaustedError(
        absl::StrCat(stats_.bytes + bytes, " bytes would be pinned, and ", options_.most_bytes, " may be"));
    return nullptr;
  }
  return nullptr;
}

void PinnedBlocks::OnReuse(void* block, int64_t bytes) {
  absl::Status refusal;
  if (Holder* const holder = Begin(block, bytes, &refusal); holder != nullptr) {
    const absl::Cleanup end_use = [&] { EndUse(holder); };
    bool is_pinned = false;
    refusal = Pin(holder, block, bytes, &is_pinned);
    const Block tried{.bytes = bytes, .holder = refusal.ok() ? holder : nullptr, .may_be_tried = is_pinned};
    MutexLock lock(&mutex_);
    if (refusal.ok()) {
      ++stats_.pinned;
    } else {
      stats_.bytes -= bytes;
    }
    const bool is_new = blocks_.insert_or_assign(static_cast<const char*>(block), tried).second;
    if (!is_new) refusal = absl::OkStatus();  // it was told of when it was new
  }
  if (!refusal.ok()) Refuse(refusal);
}

absl::Status PinnedBlocks::Pin(Holder* holder, void* block, int64_t bytes, bool* is_pinned) {
  Context& context = *holder->context;
  return context.Visit([&] {
    const CuResult result =
        context.driver().cuMemHostRegister_v2(block, static_cast<size_t>(bytes), kCuMemHostRegisterPortable);
    *is_pinned = result == kCuHostMemoryAlreadyRegistered;
    return context.Check(result, "cuMemHostRegister");
  });
}

void PinnedBlocks::Refuse(const absl::Status& refusal) {
  {
    MutexLock lock(&mutex_);
    if (stats_.refused++ > 0) return;
  }
  if (options_.on_first_refusal != nullptr) options_.on_first_refusal(refusal);
}

void PinnedBlocks::OnReturn(void* block, int64_t) {
  Holder* holder = nullptr;
  {
    MutexLock lock(&mutex_);
    const auto found = blocks_.find(static_cast<const char*>(block));
    if (found == blocks_.end()) return;
    holder = found->second.holder;
    if (holder != nullptr) {
      ++holder->uses;
      stats_.bytes -= found->second.bytes;
    }
    blocks_.erase(found);
  }
  if (holder == nullptr) return;
  Unpin(holder, block);
  EndUse(holder);
}

// Nobody could do anything about an error. A lost context's memory is unpinned when that ends.
void PinnedBlocks::Unpin(Holder* holder, void* block) {
  Context& context = *holder->context;
  context.Visit([&] { return context.Check(context.driver().cuMemHostUnregister(block), "cuMemHostUnregister"); })
      .IgnoreError();
}

PinnedBlocks::Hold PinnedBlocks::Find(const void* begin, int64_t bytes) {
  const char* const first = static_cast<const char*>(begin);
  Holder* holder = nullptr;
  {
    MutexLock lock(&mutex_);
    auto block = blocks_.upper_bound(first);
    if (block == blocks_.begin()) return nullptr;
    block = std::prev(block);
    holder = block->second.holder;
    if (holder == nullptr || first + bytes > block->first + block->second.bytes) return nullptr;
    if (holder->is_going || holder->context->is_lost()) return nullptr;
    ++holder->uses;
  }
  // Without the lock: where there is no memory for it, the use ends at once.
  return Hold(begin, [this, holder](const void*) { EndUse(holder); });
}

void PinnedBlocks::EndUse(Holder* holder) {
  MutexLock lock(&mutex_);
  if (--holder->uses == 0) unused_.SignalAll();
}

PinnedBlocks::Stats PinnedBlocks::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace tensord::cuda
