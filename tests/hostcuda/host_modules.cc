#include "tests/hostcuda/host_modules.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/hostcuda/host_context.h"
#include "tests/hostcuda/host_faults.h"
#include "tests/hostcuda/host_fibers.h"
#include "tests/hostcuda/host_memory.h"
#include "tests/hostcuda/host_settings.h"
#include "tests/hostcuda/host_streams.h"
#include "tests/hostcuda/waiting_kernels.h"

namespace tensord::cuda {

CuModuleObject::~CuModuleObject() {
  if (library != nullptr) dlclose(library);
}

namespace host {
namespace {

const HostServices kServices = {
    .wait = [](HostWait kind) { Fibers::Get().Wait(kind); },
    .shuffle_words = [] { return Fibers::Get().words(); },
    .reveal = [](unsigned long long address) -> void* { return DeviceMemory::Get().Reveal(address); },
    .access = nullptr,
};
const HostServices kCheckedServices = {
    .wait = kServices.wait,
    .shuffle_words = kServices.shuffle_words,
    .reveal = kServices.reveal,
    .access = [](const void* at, unsigned long bytes, HostAccess kind,
                 void* instruction) { AccessChecks::Get().Access(at, bytes, kind, instruction); },
};

// Writes the library to a file that is gone when it is open.
void* OpenLibrary(const char* bytes, size_t size) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder == nullptr ? "/tmp" : folder) + "/host_cuda_XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return nullptr;
  size_t done = 0;
  while (done < size) {
    const ssize_t n = write(file, bytes + done, size - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  close(file);
  void* library = done == size ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (library == nullptr) std::fprintf(stderr, "hostcuda: loading a module: %s\n", dlerror());
  unlink(path.c_str());
  return library;
}

// Returns the part of a library that can be written: its variables.
MemoryRange StaticsOf(void* library) {
  struct Search {
    link_map* map = nullptr;
    MemoryRange found;
  } search;
  if (dlinfo(library, RTLD_DI_LINKMAP, &search.map) != 0) return {};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* argument) {
        auto* wanted = static_cast<Search*>(argument);
        if (info->dlpi_addr != wanted->map->l_addr) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_W) == 0) continue;
          const char* begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
          MemoryRange& found = wanted->found;
          if (found.begin == nullptr || begin < found.begin) found.begin = begin;
          found.end = std::max(found.end, begin + part.p_memsz);
        }
        return 1;
      },
      &search);
  return search.found;
}

// Opens a library for its module. The module's owner, or its mutex, keeps others away.
bool OpenModule(std::string_view library, CuModuleObject* module) {
  module->library = OpenLibrary(library.data(), library.size());
  if (module->library == nullptr) return false;
  const auto state = reinterpret_cast<HostState* (*)()>(dlsym(module->library, "hostcuda_state"));
  if (state == nullptr) return false;
  module->state = state();
  module->statics = StaticsOf(module->library);
  return true;
}

// Finds a function's code in its module's library. False if it is not there.
bool FindCode(CuFunctionObject* function) {
  const CuModuleObject& module = *function->module;
  const std::string suffix = std::to_string(module.place) + "_" + function->name;
  const auto find = [&](const char* prefix) { return dlsym(module.library, (prefix + suffix).c_str()); };
  function->run = reinterpret_cast<void (*)(void**)>(find("hostcuda_run_"));
  const auto parameters = reinterpret_cast<const HostParameter* (*)()>(find("hostcuda_parameters_"));
  if (function->run == nullptr || parameters == nullptr) return false;
  function->parameters = parameters();
  return true;
}

// Opens a promised library, and finds the function's code there. False if it cannot be compiled.
bool KeepPromise(CuFunctionObject* function) {
  CuModuleObject& module = *function->module;
  std::lock_guard lock(module.mutex);
  if (function->run != nullptr) return true;
  if (module.library == nullptr) {
    const WaitingKernels::Made made = WaitingKernels::Get().Make(module.promise);
    if (made.library == nullptr) return false;
    module.place = made.place;
    if (!OpenModule(*made.library, &module)) return false;
  }
  return FindCode(function);
}

// The memory of a block that a launch sizes.
unsigned char* DynamicShared() {
  thread_local std::vector<unsigned char> memory(kMaxSharedBytes + 256);
  const size_t over = reinterpret_cast<uintptr_t>(memory.data()) % 256;
  return memory.data() + (over == 0 ? 0 : 256 - over);
}

// A launch on its way: owned by the stream's work, so that a fault leaves nothing behind.
struct Running {
  std::shared_ptr<CuFunctionObject> function;
  Launch launch;
  std::vector<std::vector<char>> values;
  std::vector<void*> arguments;
  bool reverse = false;
  const char* wrong = nullptr;
};

void RunBlock(Running* running, unsigned threads) {
  const CuModuleObject& module = *running->function->module;
  const ThreadBody body = {running->function->run, running->arguments.data(), module.state};
  std::memset(module.state->dynamic_shared, 0xCD, running->launch.shared_bytes);
  if (module.waits) {
    running->wrong = Fibers::Get().Run(body, threads, running->reverse);
    return;
  }
  for (unsigned i = 0; i < threads; ++i) {
    const unsigned thread = running->reverse ? threads - 1 - i : i;
    PlaceThread(module.state, thread);
    Position().thread = thread;
    body.run(body.arguments);
  }
}

void RunBlocks(Running* running) {
  const auto& [grid, block, shared_bytes] = running->launch;
  HostState* const state = running->function->module->state;
  Position() = {};
  state->block_size = block;
  state->grid_size = grid;
  unsigned number = 0;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x && running->wrong == nullptr; ++x) {
        state->block = {x, y, z};
        Position() = {.block = number++};
        RunBlock(running, block.x * block.y * block.z);
      }
    }
  }
}

void Run(Running* running) {
  if (Context::Get().error() != kCuSuccess) return;
  const CuFunctionObject& function = *running->function;
  CuModuleObject& module = *function.module;
  std::lock_guard lock(module.running);
  running->reverse = Settings::Get().Text("ORDER") == "reverse";
  running->wrong = nullptr;
  module.state->services = module.is_checked ? &kCheckedServices : &kServices;
  module.state->dynamic_shared = DynamicShared();
  if (module.is_checked) {
    const char* shared = reinterpret_cast<const char*>(module.state->dynamic_shared);
    AccessChecks::Get().Begin(
        {.kernel = function.name,
         .shared = {shared, shared + kMaxSharedBytes},
         .dynamic_bytes = {shared, shared + running->launch.shared_bytes},
         .statics = module.statics,
         .state = {reinterpret_cast<const char*>(module.state), reinterpret_cast<const char*>(module.state + 1)}});
  }
  if (!RunGuarded(function.name, [running] { RunBlocks(running); })) Context::Get().Fail(kCuIllegalAddress);
  if (running->wrong != nullptr) {
    const ThreadPosition& here = Position();
    std::fprintf(stderr, "hostcuda: %s, block %u, near thread %u: %s\n", function.name.c_str(), here.block, here.thread,
                 running->wrong);
    Context::Get().Fail(kCuLaunchFailed);
  }
  if (!module.is_checked) return;
  if (const long problems = AccessChecks::Get().End(); problems > 0) {
    std::fprintf(stderr, "hostcuda: %s: %ld accesses were wrong\n", function.name.c_str(), problems);
    Context::Get().Fail(kCuLaunchFailed);
  }
}

}  // namespace

Handles<CuModuleObject>& Modules() {
  static auto* const modules = new Handles<CuModuleObject>;
  return *modules;
}

Handles<CuFunctionObject>& Functions() {
  static auto* const functions = new Handles<CuFunctionObject>;
  return *functions;
}

int ComputeCapability() { return static_cast<int>(Settings::Get().Number("COMPUTE_CAPABILITY", 90)); }

CuResult LoadModule(const void* image, std::shared_ptr<CuModuleObject>* module) {
  ImageHeader header;
  if (image == nullptr || std::strncmp(static_cast<const char*>(image), kImageMagic, sizeof(header.magic)) != 0) {
    return kCuInvalidImage;
  }
  std::memcpy(&header, image, sizeof(header));
  // Machine code is for its generation, and its own or a later revision.
  const bool is_of_generation = header.is_text != 0 || header.architecture / 10 == ComputeCapability() / 10;
  if (!is_of_generation || header.architecture > ComputeCapability()) return kCuNoBinaryForGpu;
  auto loaded = std::make_shared<CuModuleObject>();
  loaded->waits = header.waits != 0;
  loaded->is_checked = header.is_checked != 0;
  const char* const body = static_cast<const char*>(image) + sizeof(header);
  if (header.is_promised != 0) {
    loaded->promise = std::string(body, header.library_bytes);
  } else if (!OpenModule({body, header.library_bytes}, loaded.get())) {
    return kCuInvalidImage;
  }
  *module = std::move(loaded);
  return kCuSuccess;
}

CuResult FindFunction(const std::shared_ptr<CuModuleObject>& module, const char* name, CuFunction* function) {
  if (name == nullptr || function == nullptr) return kCuInvalidValue;
  std::lock_guard lock(module->mutex);
  CuFunction& known = module->functions[name];
  if (known == nullptr) {
    auto found = std::make_shared<CuFunctionObject>();
    found->name = name;
    found->module = module;
    // The key of a promised library ends with the source of one that has this text alone.
    const std::string exported = "HOST_KERNEL(0, " + found->name + ")\n";
    if (!module->promise.empty() ? module->promise.find(exported) == std::string::npos : !FindCode(found.get())) {
      module->functions.erase(found->name);
      return kCuNotFound;
    }
    known = Functions().Add(std::move(found));
  }
  *function = known;
  return kCuSuccess;
}

CuResult EnqueueLaunch(const std::shared_ptr<CuFunctionObject>& function, const Launch& launch, void** arguments,
                       CuStreamObject* stream) {
  const auto& [grid, block, shared_bytes] = launch;
  const unsigned long threads = static_cast<unsigned long>(block.x) * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return kCuInvalidValue;
  }
  if (threads == 0 || threads > kMaxThreads || block.z > 64) return kCuInvalidValue;
  if (shared_bytes > static_cast<unsigned>(function->max_dynamic_shared)) return kCuInvalidValue;
  if (!KeepPromise(function.get())) return kCuInvalidImage;
  auto running = std::make_shared<Running>();
  running->function = function;
  running->launch = launch;
  for (size_t i = 0; function->parameters[i].bytes != 0; ++i) {
    if (arguments == nullptr || arguments[i] == nullptr) return kCuInvalidValue;
    const char* const at = static_cast<const char*>(arguments[i]);
    std::vector<char>& value = running->values.emplace_back(at, at + function->parameters[i].bytes);
    if (function->parameters[i].is_pointer != 0) {
      CuAddress address = 0;
      std::memcpy(&address, value.data(), sizeof(address));
      const void* const revealed = DeviceMemory::Get().Reveal(address);
      std::memcpy(value.data(), &revealed, sizeof(revealed));
    }
  }
  for (std::vector<char>& value : running->values) running->arguments.push_back(value.data());
  return stream->Push([running] { Run(running.get()); });
}

}  // namespace host
}  // namespace tensord::cuda
