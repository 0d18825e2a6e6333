#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_VALUES_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_VALUES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "backends/cuda/codegen/prelude.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// The spelling of a micro program's values in CUDA C++. Each function adds the callees of its text to the prelude.

// Returns the type of an element in a register, "bool", and of one in memory, "u8". A BOOL in memory is any byte, other
// than 0 for true.
absl::string_view CudaType(DType dtype);
absl::string_view CudaStorage(DType dtype);
void UseCudaType(DType dtype, CudaPrelude* prelude);

// An element of memory as it is in a register, and the other way round.
std::string CudaLoaded(DType dtype, const std::string& element);
std::string CudaStored(DType dtype, const std::string& value);

// Returns the constant's only element, to the bit.
std::string CudaConstant(const Literal& constant, CudaPrelude* prelude);

// `x` of dtype `from` as `to` (scalar::ConvertElement).
std::string CudaConvert(DType from, DType to, const std::string& x, CudaPrelude* prelude);

// Value `index` in terms of its operands, which are called "v" and their number: of the kinds kUnary, kBinary,
// kCompare, kSelect, kClamp and kConvert.
std::string CudaExpression(const MicroProgram& program, int32_t index, CudaPrelude* prelude);

// Tells whether a unary or binary op on elements of a dtype is a few instructions of the device.
bool IsCudaArithmetic(CoreOp op, DType dtype);

// Returns the type of two neighbours of a half dtype in one register.
std::string CudaPairType(DType dtype, CudaPrelude* prelude);
// Returns the value of two neighbours at once, of a unary or binary instruction from a half dtype to the same; `pairs`
// are those of its operands. The bits are those of CudaExpression.
std::string CudaPairExpression(const MicroInstruction& instruction, absl::Span<const std::string> pairs,
                               CudaPrelude* prelude);

// Returns a binary op of two values of a dtype, rounded to that dtype.
std::string CudaBinary(CoreOp op, DType dtype, const std::string& a, const std::string& b, CudaPrelude* prelude);

// Tells whether there is a function for an op on elements of a dtype: for every op and dtype that the op's definition
// takes.
bool HasCudaFunction(CoreOp op, DType dtype);

// Reductions. Halves are accumulated in F32, the others in their own dtype.
DType CudaAccumulator(DType dtype);
// Returns the function of two accumulators, added to the prelude: "AddReal".
std::string CudaCombiner(ReduceKind kind, DType dtype, CudaPrelude* prelude);
// Returns the neutral element of the function.
std::string CudaNeutral(ReduceKind kind, DType dtype, CudaPrelude* prelude);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_VALUES_H_
