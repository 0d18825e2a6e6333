#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_

#include "backends/cuda/codegen/writer.h"

namespace tensord {

// Prints a program with reduced axes. Where there are kept indices enough, one launch: the stages follow one another
// in a block, and what a thread computes in one pass over the reduced axes it keeps for the next where there is room,
// or computes again. Where there are few and the reduced range is long, a launch for each pass, which leaves the parts'
// accumulators in the scratch memory, and one that joins them.
void PrintCudaReduce(CudaWriter* writer, CudaKernel* kernel);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_
