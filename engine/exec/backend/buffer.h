#ifndef TENSORD_ENGINE_EXEC_BACKEND_BUFFER_H_
#define TENSORD_ENGINE_EXEC_BACKEND_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace tensord {

class Buffer;
using BufferPtr = std::shared_ptr<const Buffer>;

// A flag that all buffers share whose memory goes at once, if their device fails: true then. Null for memory that
// stays.
using MemoryLoss = std::shared_ptr<const std::atomic<bool>>;

// A piece of a device's memory. The address is the device's: only its backend knows whether the host may dereference
// it, but offsets may be added to it. Releases the memory (or what keeps it alive) when the last owner goes.
// Thread-safe as far as the bytes are not written.
class Buffer {
 public:
  using Release = std::function<void(void* address, int64_t size_bytes)>;

  Buffer(void* address, int64_t size_bytes, Release release, MemoryLoss loss = nullptr)
      : address_(address), size_bytes_(size_bytes), release_(std::move(release)), loss_(std::move(loss)) {}
  ~Buffer() {
    if (release_) release_(address_, size_bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Returns a part of `whole`, which it keeps alive; `whole` itself if the part is all of it. The part must lie inside.
  static BufferPtr View(BufferPtr whole, int64_t offset_bytes, int64_t size_bytes) {
    if (offset_bytes == 0 && size_bytes == whole->size_bytes()) return whole;
    auto view = std::make_shared<Buffer>(static_cast<char*>(whole->address()) + offset_bytes, size_bytes, nullptr);
    view->whole_ = std::move(whole);
    return view;
  }

  // Tells whether `owners` pointers to the buffer are the only way to its memory, as far as buffers are concerned. Only
  // a run that holds these pointers itself can rely on it.
  static bool HasOnlyOwners(const BufferPtr& buffer, long owners) {
    return buffer.use_count() == owners && (buffer->whole_ == nullptr || HasOnlyOwners(buffer->whole_, 1));
  }

  // Returns all of the memory that it keeps alive: itself, where it is no view.
  const Buffer& memory() const { return whole_ == nullptr ? *this : whole_->memory(); }

  // Tells whether its device has failed since, and the bytes are gone. The memory is the backend's nevertheless.
  bool is_lost() const {
    const MemoryLoss& loss = memory().loss_;
    return loss != nullptr && loss->load(std::memory_order_acquire);
  }
  const MemoryLoss& loss() const { return memory().loss_; }

  void* address() const { return address_; }
  int64_t size_bytes() const { return size_bytes_; }

 private:
  void* const address_;
  const int64_t size_bytes_;
  const Release release_;
  const MemoryLoss loss_;
  BufferPtr whole_;  // of a view
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_EXEC_BACKEND_BUFFER_H_
