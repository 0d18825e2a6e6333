#include "engine/fusion/cuda_printer.h"

#include "engine/fusion/cuda_map.h"
#include "engine/fusion/cuda_reduce.h"
#include "engine/fusion/cuda_writer.h"

namespace tensord {

CudaKernel PrintCuda(const MicroProgram& program, const CudaOptions& options) {
  CudaKernel kernel;
  CudaWriter writer(program, options);
  // A reduction along no axes is one as well.
  if (program.has_reduced_axes() || program.num_stages() > 1) {
    PrintCudaReduce(&writer, &kernel);
  } else {
    PrintCudaMap(&writer, &kernel);
  }
  kernel.source = writer.Source();
  return kernel;
}

}  // namespace tensord
