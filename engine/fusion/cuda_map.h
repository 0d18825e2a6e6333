#ifndef TENSORD_ENGINE_FUSION_CUDA_MAP_H_
#define TENSORD_ENGINE_FUSION_CUDA_MAP_H_

#include "engine/fusion/cuda_writer.h"

namespace tensord {

// Prints a program without reduced axes as one launch: a loop over the points, several neighbours a thread, which cross
// the memory as one vector where an access allows it.
void PrintCudaMap(CudaWriter* writer, CudaKernel* kernel);

}  // namespace tensord

#endif  // TENSORD_ENGINE_FUSION_CUDA_MAP_H_
