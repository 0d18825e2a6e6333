#include "backends/cuda/codegen/printer.h"

#include "backends/cuda/codegen/launch_parts.h"
#include "backends/cuda/codegen/map.h"
#include "backends/cuda/codegen/reduce.h"
#include "backends/cuda/codegen/writer.h"

namespace tensord {

KernelText PrintCuda(const MicroProgram& program, const CudaOptions& options) {
  KernelText kernel;
  CudaWriter writer(program, options);
  // A reduction along no axes is one as well.
  if (program.has_reduced_axes() || program.num_stages() > 1) {
    PrintCudaReduce(&writer, &kernel);
  } else {
    PrintCudaMap(&writer, &kernel);
  }
  kernel.varies = CudaVaries(program, options);
  kernel.source = writer.Source();
  return kernel;
}

}  // namespace tensord
