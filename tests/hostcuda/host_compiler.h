#ifndef TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_

#include <string>
#include <vector>

namespace tensord::cuda::host {

std::string ReadFile(const std::string& path);

// Returns the words that call the host's compiler, up to the files; `is_checked` as HOST_CUDA_CHECK.
std::vector<std::string> CompilerCommand(const std::vector<std::string>& definitions, bool is_checked);

// A kernel's text as ordinary C++.
struct HostText {
  std::string source;
  std::vector<std::string> kernels;
  std::string undefined;  // ends what the source has defined for itself
};
HostText HostTextOf(const std::string& source, const std::string& name);

// Returns the source of a library of these texts: between our headers and the exports, each in a namespace of its own.
std::string LibrarySource(const std::vector<const HostText*>& texts, bool is_checked);

// Makes a shared library of a source. False, with the compiler's words added to `log`, if it refuses it.
bool CompileLibrary(std::vector<std::string> command, const std::string& source, std::string* library,
                    std::string* log);

// Returns how often this process has run the compiler.
long Compilations();

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_
