#include "backends/cuda/device/pinned_blocks.h"

#include <iterator>
#include <new>
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

PinnedBlocks::Holder* PinnedBlocks::Begin(void* block, int64_t bytes, Blocks* made, absl::Status* refusal) {
  const char* const begin = static_cast<const char*>(block);
  MutexLock lock(&mutex_);
  const auto known = blocks_.find(begin);
  if (known != blocks_.end() && !known->second.may_be_tried) return nullptr;
  for (Holder& holder : holders_) {
    if (holder.is_going || holder.context->is_lost()) continue;
    if (bytes <= options_.most_bytes - stats_.bytes) {
      made->emplace(begin, Block{.bytes = bytes, .may_be_tried = true});
      ++holder.uses;
      stats_.bytes += bytes;
      return &holder;
    }
    if (known != blocks_.end()) return nullptr;
    blocks_[begin] = {.bytes = bytes, .may_be_tried = true};
    *refusal = absl::ResourceExhaustedError(
        absl::StrCat(stats_.bytes + bytes, " bytes would be pinned, and ", options_.most_bytes, " may be"));
    return nullptr;
  }
  return nullptr;
}

// Where the host lacks memory to pin a block, its bytes take the way of all others.
void PinnedBlocks::OnReuse(void* block, int64_t bytes) {
  try {
    Reuse(block, bytes);
  } catch (const std::bad_alloc&) {
  }
}

void PinnedBlocks::Reuse(void* block, int64_t bytes) {
  absl::Status refusal;
  Blocks made;
  if (Holder* const holder = Begin(block, bytes, &made, &refusal); holder != nullptr) {
    absl::Cleanup end = [&] { End(holder, &made); };
    refusal = Pin(holder, block, &made.begin()->second);
    std::move(end).Cancel();
    if (!End(holder, &made)) refusal = absl::OkStatus();  // it was told of when it was new
  }
  if (!refusal.ok()) Refuse(refusal);
}

absl::Status PinnedBlocks::Pin(Holder* holder, void* block, Block* tried) {
  Context& context = *holder->context;
  bool is_others = false;
  const absl::Status pinned = context.Visit([&] {
    const CuResult result =
        context.driver().cuMemHostRegister_v2(block, static_cast<size_t>(tried->bytes), kCuMemHostRegisterPortable);
    if (result == kCuSuccess) tried->holder = holder;
    is_others = result == kCuHostMemoryAlreadyRegistered;
    return context.Check(result, "cuMemHostRegister");
  });
  tried->may_be_tried = is_others;
  return pinned;
}

bool PinnedBlocks::End(Holder* holder, Blocks* made) {
  MutexLock lock(&mutex_);
  const Block tried = made->begin()->second;
  if (tried.holder != nullptr) {
    ++stats_.pinned;
  } else {
    stats_.bytes -= tried.bytes;
  }
  const auto kept = blocks_.insert(made->extract(made->begin()));
  if (!kept.inserted) kept.position->second = tried;
  if (--holder->uses == 0) unused_.SignalAll();
  return kept.inserted;
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
