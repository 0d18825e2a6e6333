#ifndef TENSORD_ENGINE_BASE_ALLOCATOR_TUNING_H_
#define TENSORD_ENGINE_BASE_ALLOCATOR_TUNING_H_

namespace tensord {

// Lets the process keep the memory that it frees: messages and programs of megabytes come and go all the time, and
// getting their pages from the kernel anew costs several times the work on them. Once, at the start of main.
void TuneAllocator();

// Returns free memory to the system, wherever it lies. Allocations wait meanwhile, some milliseconds for each 100 MB.
// For use when much memory became free and will not be used again soon.
void ReturnFreedMemory();

}  // namespace tensord

#endif  // TENSORD_ENGINE_BASE_ALLOCATOR_TUNING_H_
