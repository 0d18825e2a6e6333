#include "backends/cuda/codegen/printer.h"

#include <string>
#include <vector>

#include "backends/cuda/codegen/map.h"
#include "backends/cuda/codegen/reduce.h"
#include "backends/cuda/codegen/values.h"
#include "backends/cuda/codegen/writer.h"

namespace tensord {
namespace {

// With more, NVRTC takes seconds for a kernel, and minutes for a thousand.
constexpr size_t kMostInlinedFunctions = 48;

}  // namespace

KernelText PrintCuda(const MicroProgram& program, const CudaOptions& options) {
  KernelText kernel;
  CudaWriter writer(program, options);
  // A reduction along no axes is one as well.
  if (program.has_reduced_axes() || program.num_stages() > 1) {
    PrintCudaReduce(&writer, &kernel);
  } else {
    PrintCudaMap(&writer, &kernel);
  }
  const std::vector<std::string> functions = CudaFunctions(program);
  if (functions.size() > kMostInlinedFunctions) {
    for (const std::string& function : functions) writer.prelude().CallOutOfLine(function);
  }
  kernel.source = writer.Source();
  return kernel;
}

}  // namespace tensord
