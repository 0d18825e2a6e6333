#ifndef TENSORD_ENGINE_BASE_COPY_ON_WRITE_H_
#define TENSORD_ENGINE_BASE_COPY_ON_WRITE_H_

#include <atomic>
#include <cstdint>
#include <utility>

namespace tensord {

// A value of which copies are free until one of them changes: they share it. One that was never set takes no memory and
// reads as T(). A value type; thread-compatible as T is, and copies may be used by several threads.
template <typename T>
class CopyOnWrite {
 public:
  CopyOnWrite() = default;
  CopyOnWrite(T value) : block_(new Block(std::move(value))) {}  // NOLINT: a value is its own first copy
  CopyOnWrite(const CopyOnWrite& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  CopyOnWrite(CopyOnWrite&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  CopyOnWrite& operator=(CopyOnWrite other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~CopyOnWrite() {
    if (block_ != nullptr) Release();
  }

  bool is_set() const { return block_ != nullptr; }
  const T& operator*() const { return block_ == nullptr ? kDefault : block_->value; }
  const T* operator->() const { return &**this; }

  // Returns the value as this copy's own, to be changed. References from before may name the value of the others.
  T& Mutable() {
    if (block_ == nullptr) {
      block_ = new Block(T());
    } else if (block_->owners.load(std::memory_order_acquire) != 1) {
      *this = CopyOnWrite(T(block_->value));
    }
    return block_->value;
  }

  // Tells whether both are one value; equal values may be two.
  bool IsSameAs(const CopyOnWrite& other) const { return block_ == other.block_; }

  friend bool operator==(const CopyOnWrite& a, const CopyOnWrite& b) { return a.IsSameAs(b) || *a == *b; }

 private:
  struct Block {
    explicit Block(T v) : value(std::move(v)) {}
    std::atomic<int32_t> owners{1};
    T value;
  };

  void Release() {
    // A sole owner has nobody to tell.
    if (block_->owners.load(std::memory_order_acquire) == 1 ||
        block_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete block_;
    }
  }

  static inline const T kDefault{};

  Block* block_ = nullptr;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_COPY_ON_WRITE_H_
