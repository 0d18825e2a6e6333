#include "tests/testlib/cuda/cuda_emulator.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace tensord {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kFenceBytes = 256;
constexpr char kFence = 0x5a;
constexpr int64_t kSharedBytes = 228 * 1024;

// Memory that begins aligned, with a fence behind it.
class Memory {
 public:
  explicit Memory(size_t bytes) : bytes_(bytes), storage_(bytes + kFenceBytes + kAlignment, kFence) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    begin_ = (address + kAlignment - 1) / kAlignment * kAlignment - address;
  }
  char* data() { return storage_.data() + begin_; }
  bool is_fence_whole() const { return storage_.find_first_not_of(kFence, begin_ + bytes_) == std::string::npos; }

 private:
  size_t bytes_ = 0;
  size_t begin_ = 0;
  std::string storage_;
};

std::string SourceOf(absl::Span<const KernelText> kernels) {
  std::string source = "#include \"tests/testlib/cuda/cuda_emulation.h\"\n";
  for (size_t k = 0; k < kernels.size(); ++k) {
    absl::StrAppend(&source, "namespace kernel", k, " {\n__align__(16) unsigned char tensord_shared[", kSharedBytes,
                    "];\n", kernels[k].source);
    for (const CudaLaunch& launch : kernels[k].launches) {
      absl::StrAppend(&source, "extern \"C\" const char* launch_", launch.entry,
                      "(void** arguments, unsigned blocks, unsigned threads) {\n  return cuda_emulation::Launch(&",
                      launch.entry, ", arguments, blocks, threads);\n}\n");
    }
    absl::StrAppend(&source, "}  // namespace kernel", k, "\n");
  }
  return source;
}

std::string Quoted(const std::string& text) { return absl::StrCat("'", text, "'"); }

// A folder that is gone when its owner is.
struct TemporaryFolder {
  std::string path;
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

// Writes, compiles and opens a library at a path without its ending.
absl::StatusOr<std::shared_ptr<void>> Compile(absl::Span<const KernelText> kernels, const std::string& compiler,
                                              const std::string& path) {
  std::ofstream(path + ".cc") << SourceOf(kernels);
  const std::string command =
      absl::StrCat(Quoted(compiler), " -std=c++20 -O1 -w -ffp-contract=off -fno-strict-aliasing -fPIC -shared -I. -o ",
                   Quoted(path + ".so"), " ", Quoted(path + ".cc"), " > ", Quoted(path + ".log"), " 2>&1");
  if (std::system(command.c_str()) != 0) {
    std::stringstream log;
    log << std::ifstream(path + ".log").rdbuf();
    return absl::InvalidArgumentError(absl::StrCat(command, "\n", log.str()));
  }
  void* library = dlopen((path + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::InternalError(dlerror());
  return std::shared_ptr<void>(library, [](void* opened) { dlclose(opened); });
}

}  // namespace

absl::StatusOr<CudaEmulator> CudaEmulator::Build(const std::vector<KernelText>& kernels, const std::string& compiler,
                                                 const std::string& folder) {
  if (std::system(absl::StrCat(Quoted(compiler), " --version > /dev/null 2>&1").c_str()) != 0) {
    return absl::UnavailableError(absl::StrCat(compiler, " does not run"));
  }
  TemporaryFolder own{.path = absl::StrCat(folder, "/cuda_emulator_XXXXXX")};
  if (mkdtemp(own.path.data()) == nullptr) {
    return absl::UnavailableError(absl::StrCat("no folder can be made in ", folder));
  }
  std::vector<std::future<absl::StatusOr<std::shared_ptr<void>>>> halves;
  const size_t middle = (kernels.size() + 1) / 2;
  for (size_t half = 0; half < 2; ++half) {
    const auto part = absl::MakeConstSpan(kernels).subspan(half * middle, middle);
    halves.push_back(std::async(std::launch::async, [part, &compiler, path = absl::StrCat(own.path, "/", half)] {
      return Compile(part, compiler, path);
    }));
  }
  CudaEmulator emulator;
  absl::Status status;
  for (auto& half : halves) {
    absl::StatusOr<std::shared_ptr<void>> library = half.get();
    status.Update(library.status());
    if (library.ok()) emulator.libraries_.push_back(*std::move(library));
  }
  if (!status.ok()) return status;
  for (size_t k = 0; k < kernels.size(); ++k) {
    Entries& entries = emulator.kernels_.emplace_back(Entries{.kernel = kernels[k]});
    for (const CudaLaunch& launch : kernels[k].launches) {
      entries.launches.push_back(reinterpret_cast<LaunchFunction>(
          dlsym(emulator.libraries_[k < middle ? 0 : 1].get(), absl::StrCat("launch_", launch.entry).c_str())));
    }
  }
  return emulator;
}

absl::Status CudaEmulator::Run(size_t kernel, const std::vector<Literal>& operands,
                               std::vector<Literal>* results) const {
  const Entries& entries = kernels_[kernel];
  std::vector<Memory> memory;
  for (const Literal& operand : operands) {
    memory.emplace_back(operand.bytes().size());
    std::memcpy(memory.back().data(), operand.bytes().data(), operand.bytes().size());
  }
  for (const Literal& result : *results) memory.emplace_back(result.bytes().size());
  memory.emplace_back(static_cast<size_t>(entries.kernel.scratch_bytes));
  std::vector<void*> arguments;
  for (Memory& m : memory) arguments.push_back(m.data());

  for (size_t l = 0; l < entries.launches.size(); ++l) {
    const CudaLaunch& launch = entries.kernel.launches[l];
    if (launch.dynamic_shared_bytes > kSharedBytes) return absl::InternalError("more shared memory than there is");
    for (int64_t first = 0; first < launch.blocks; first += launch.blocks_of_part()) {
      std::vector<void*> all = arguments;
      if (launch.parts > 1) all.insert(all.begin(), reinterpret_cast<void*>(first));
      const int64_t blocks = std::min(launch.blocks_of_part(), launch.blocks - first);
      const char* error = entries.launches[l](all.data(), static_cast<unsigned>(blocks),
                                              static_cast<unsigned>(launch.threads_per_block));
      if (error != nullptr) return absl::InternalError(absl::StrCat(launch.entry, ": ", error));
    }
  }
  for (size_t m = 0; m < memory.size(); ++m) {
    if (!memory[m].is_fence_whole()) return absl::InternalError(absl::StrCat("written past argument ", m));
  }
  for (size_t r = 0; r < results->size(); ++r) {
    std::memcpy((*results)[r].mutable_data(), memory[operands.size() + r].data(), (*results)[r].bytes().size());
  }
  return absl::OkStatus();
}

}  // namespace tensord
