#ifndef TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_CHECKS_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_CHECKS_H_

// The functions that -fsanitize=thread calls before each access to memory: here they tell the host CUDA device, and no
// sanitizer's runtime takes part. Stands behind host_kernel.h where checks are wanted. They are hidden, so that a
// runtime which the process has for itself is not called instead.

#include "tests/hostcuda/host_kernel.h"

#define HOST_CHECK_FUNCTION extern "C" __attribute__((visibility("hidden"), noinline, no_sanitize("thread"))) void

#define HOST_CHECK_ACCESS(name, bytes, kind) \
  HOST_CHECK_FUNCTION name(void* at) { host_state.services->access(at, bytes, kind, __builtin_return_address(0)); }
HOST_CHECK_ACCESS(__tsan_read1, 1, kHostRead)
HOST_CHECK_ACCESS(__tsan_read2, 2, kHostRead)
HOST_CHECK_ACCESS(__tsan_read4, 4, kHostRead)
HOST_CHECK_ACCESS(__tsan_read8, 8, kHostRead)
HOST_CHECK_ACCESS(__tsan_read16, 16, kHostRead)
HOST_CHECK_ACCESS(__tsan_write1, 1, kHostWrite)
HOST_CHECK_ACCESS(__tsan_write2, 2, kHostWrite)
HOST_CHECK_ACCESS(__tsan_write4, 4, kHostWrite)
HOST_CHECK_ACCESS(__tsan_write8, 8, kHostWrite)
HOST_CHECK_ACCESS(__tsan_write16, 16, kHostWrite)
HOST_CHECK_ACCESS(__tsan_unaligned_read2, 2, kHostRead)
HOST_CHECK_ACCESS(__tsan_unaligned_read4, 4, kHostRead)
HOST_CHECK_ACCESS(__tsan_unaligned_read8, 8, kHostRead)
HOST_CHECK_ACCESS(__tsan_unaligned_read16, 16, kHostRead)
HOST_CHECK_ACCESS(__tsan_unaligned_write2, 2, kHostWrite)
HOST_CHECK_ACCESS(__tsan_unaligned_write4, 4, kHostWrite)
HOST_CHECK_ACCESS(__tsan_unaligned_write8, 8, kHostWrite)
HOST_CHECK_ACCESS(__tsan_unaligned_write16, 16, kHostWrite)
HOST_CHECK_FUNCTION __tsan_read_range(void* at, unsigned long bytes) {
  host_state.services->access(at, bytes, kHostRead, __builtin_return_address(0));
}
HOST_CHECK_FUNCTION __tsan_write_range(void* at, unsigned long bytes) {
  host_state.services->access(at, bytes, kHostWrite, __builtin_return_address(0));
}
HOST_CHECK_FUNCTION __tsan_init() {}
HOST_CHECK_FUNCTION __tsan_func_entry(void*) {}
HOST_CHECK_FUNCTION __tsan_func_exit() {}

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_KERNEL_CHECKS_H_
