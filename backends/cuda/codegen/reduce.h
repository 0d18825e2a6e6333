#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_

#include "backends/cuda/codegen/writer.h"

namespace tensord {

// Prints a program with reduced axes. With enough kept indices it is one launch: the stages follow one another in a
// block, and a thread keeps its values of one pass over the reduced axes for the next if there is room, or computes
// them again. With few kept indices and a long reduced range it is a launch for each pass, which leaves the parts'
// accumulators in the scratch memory, and one that joins them.
void PrintCudaReduce(CudaWriter* writer, KernelText* kernel);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_H_
