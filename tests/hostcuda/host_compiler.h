#ifndef TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_
#define TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_

#include <string>
#include <vector>

namespace tensord::cuda::host {

std::string ReadFile(const std::string& path);

// Returns the words that call the host's compiler, up to the files; `is_checked` as HOST_CUDA_CHECK.
std::vector<std::string> CompilerCommand(const std::vector<std::string>& definitions, bool is_checked);

// Makes a shared library of a source. False, with the compiler's words added to `log`, if it refuses it.
bool CompileLibrary(std::vector<std::string> command, const std::string& source, std::string* library,
                    std::string* log);

}  // namespace tensord::cuda::host

#endif  // TENSORD_TESTS_HOSTCUDA_HOST_COMPILER_H_
