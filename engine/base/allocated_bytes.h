#ifndef TENSORD_ENGINE_BASE_ALLOCATED_BYTES_H_
#define TENSORD_ENGINE_BASE_ALLOCATED_BYTES_H_

#include <cstdint>

namespace tensord {

// Counts the bytes that its thread takes from operator new, less those it gives back, while the object lives. After
// temporary objects are gone, that is the memory of the objects made meanwhile, kernels of plugins included. The binary
// that links it has an operator new of its own, which asks malloc and costs one more look at a variable of the thread.
// Confined to its thread; objects nest.
class AllocatedBytes {
 public:
  AllocatedBytes();
  ~AllocatedBytes();
  AllocatedBytes(const AllocatedBytes&) = delete;
  AllocatedBytes& operator=(const AllocatedBytes&) = delete;

  int64_t bytes() const { return bytes_; }
  // Memory of another kind, such as pages of code, that the thread takes.
  static void Add(int64_t bytes);

  // Leaves out what its thread takes and gives back while it lives. A cache drops what others took in its scope.
  // Confined to its thread, and to a block.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    AllocatedBytes* const counting_;
  };

 private:
  AllocatedBytes* const outer_;
  int64_t bytes_ = 0;
};

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ALLOCATED_BYTES_H_
