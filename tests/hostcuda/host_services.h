#ifndef TENSORD_TESTS_HOSTCUDA_HOST_SERVICES_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_SERVICES_H_

// The interface between the host CUDA device and a library of kernels that its NVRTC has made. Includes no header: it
// stands before each kernel's text.

struct HostDim3 {
  unsigned x, y, z;
};

// Kinds of HostServices::access.
enum HostAccess { kHostRead, kHostWrite, kHostAtomic };

// Kinds of HostServices::wait.
enum HostWait { kHostBarrier, kHostWarp };

// Functions of the device for a thread of a kernel.
struct HostServices {
  // Returns when the other threads of the block, or of the warp, have come to the same place.
  void (*wait)(HostWait kind);
  // Returns a word for each thread of the block, through which the threads of a warp hand on values.
  unsigned long long* (*shuffle_words)();
  // Returns where the bytes of a device address are.
  void* (*reveal)(unsigned long long address);
  // Is told of each access to memory. Null unless the kernel is compiled with checks.
  void (*access)(const void* at, unsigned long bytes, HostAccess kind, void* instruction);
};

// A library's one state: a module runs one launch at a time.
struct HostState {
  const HostServices* services;
  HostDim3 thread, block, block_size, grid_size;  // threadIdx, blockIdx, blockDim, gridDim
  unsigned char* dynamic_shared;
};

// A parameter of a kernel. The last one of a list has no bytes.
struct HostParameter {
  unsigned bytes;
  unsigned is_pointer;
};

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_SERVICES_H_
