#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_MAP_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_MAP_H_

#include "backends/cuda/codegen/writer.h"

namespace tensord {

// Prints a program without reduced axes as one launch: a loop over the points, several neighbours a thread. Neighbours
// cross the memory as one vector if an access allows it.
void PrintCudaMap(CudaWriter* writer, KernelText* kernel);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_MAP_H_
