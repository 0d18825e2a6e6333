#include "engine/fusion/cuda_printer.h"

#include "engine/fusion/cuda_map.h"
#include "engine/fusion/cuda_writer.h"

namespace tensord {

CudaKernel PrintCuda(const MicroProgram& program, const CudaOptions& options) {
  CudaKernel kernel;
  CudaWriter writer(program, options);
  PrintCudaMap(&writer, &kernel);
  kernel.source = writer.Source();
  return kernel;
}

}  // namespace tensord
