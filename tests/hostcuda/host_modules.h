#ifndef TENSORD_TESTS_HOSTCUDA_HOST_MODULES_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_MODULES_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "backends/cuda/abi/driver.h"
#include "tests/hostcuda/access_checks.h"
#include "tests/hostcuda/handles.h"
#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_services.h"

namespace tensord::cuda {

// A library of kernels that the device's NVRTC has made, or has promised: then it is opened for the first launch. Runs
// one launch at a time, as its HostState is one.
struct CuModuleObject {
  CuModuleObject() = default;
  CuModuleObject(const CuModuleObject&) = delete;
  CuModuleObject& operator=(const CuModuleObject&) = delete;
  ~CuModuleObject();

  host::Context* const context = &host::Context::Get();  // that of the thread that made it
  std::string promise;                                   // WaitingKernels knows the library by it; empty: it is open
  size_t place = 0;                                      // of the text in the library
  void* library = nullptr;
  bool waits = false;  // some kernel has barriers or shuffles
  bool is_checked = false;
  HostState* state = nullptr;
  host::MemoryRange statics;
  std::mutex running;
  std::mutex mutex;  // of the next
  std::map<std::string, CuFunction> functions;
};

struct CuFunctionObject {
  host::Context* const context = &host::Context::Get();  // that of the thread that made it
  std::string name;
  std::shared_ptr<CuModuleObject> module;
  void (*run)(void** arguments) = nullptr;
  const HostParameter* parameters = nullptr;
  int max_dynamic_shared = 48 * 1024;
};

namespace host {

inline constexpr int kMaxSharedBytes = 227 * 1024, kSharedBytes = 48 * 1024;

// The bytes of an image are this, then the library, whose one text is at place 0.
struct ImageHeader {
  char magic[8];  // kImageMagic
  int architecture;
  int waits, is_checked;
  int is_text;      // PTX, for its architecture and all later ones
  int is_promised;  // the key of a waiting kernel comes in the library's place
  unsigned long library_bytes;
};
inline constexpr char kImageMagic[9] = "HOSTCUDA";

// Returns the device's generation and revision: 90.
int ComputeCapability();

Handles<CuModuleObject>& Modules();
Handles<CuFunctionObject>& Functions();

// Opens an image's library. CUDA_ERROR_INVALID_IMAGE, or NO_BINARY_FOR_GPU for machine code of another architecture.
CuResult LoadModule(const void* image, std::shared_ptr<CuModuleObject>* module);

// Finds a kernel. CUDA_ERROR_NOT_FOUND if there is none of the name.
CuResult FindFunction(const std::shared_ptr<CuModuleObject>& module, const char* name, CuFunction* function);

// A launch, and the values of the arguments as they were when it was called.
struct Launch {
  HostDim3 grid, block;
  unsigned shared_bytes = 0;
};
CuResult EnqueueLaunch(const std::shared_ptr<CuFunctionObject>& function, const Launch& launch, void** arguments,
                       CuStreamObject* stream);

}  // namespace host
}  // namespace tensord::cuda

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_MODULES_H_
