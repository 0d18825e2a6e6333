#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_INDEX_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_INDEX_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/fusion/micro_program.h"

namespace tensord {

// A linear index that a kernel has in a variable, over some axes of the program, the first the fastest.
//
//   CudaIndex index("i", program, CudaIndex::Axes::kAll);
//   index.Offset(access, CudaIndexCast(program, access))  // "i1 * 3 + i2"
//   index.TakeDeclarations()  // the lines that declare i1 and i2: to be printed before the offsets are used
class CudaIndex {
 public:
  // The axes of an index: all, the kept ones, or the reduced ones. `variable` holds the index: an unsigned integer of
  // type().
  enum class Axes : uint8_t { kAll, kKept, kReduced };
  CudaIndex(std::string variable, const MicroProgram& program, Axes axes);

  // "u32" where the index and its steps fit, else "u64".
  absl::string_view type() const { return type_; }

  // Returns the sum of coordinates times strides over the index's axes, without the access's offset: "0" where there is
  // none. Each coordinate is converted by `cast`.
  std::string Offset(const MicroAccess& access, absl::string_view cast);

  // Takes lines that declare the coordinates first used by offsets since the last call.
  std::vector<std::string> TakeDeclarations();

 private:
  // A run of axes that one stride goes over: index / before % size.
  struct Coordinate {
    int64_t before = 1;
    int64_t size = 1;
    std::string name;
  };
  const std::string& CoordinateName(int64_t before, int64_t size);

  std::string variable_;
  absl::string_view type_;
  int64_t points_ = 1;
  std::vector<size_t> axes_;    // of the program
  std::vector<int64_t> sizes_;  // of those axes
  std::vector<Coordinate> coordinates_;
  std::vector<std::string> declarations_;
};

// Returns the cast that coordinates need so that no sum of an access overflows: "" if unsigned 32 bits suffice, else
// "(i32)" or "(i64)".
absl::string_view CudaIndexCast(const MicroProgram& program, const MicroAccess& access);

// Returns a stride as a factor of the place of a neighbour in a vector, an int: wide where the product needs it.
std::string CudaNeighbourStride(int64_t stride);

// Returns the sum of up to three terms of an index: "5 + x0 * 3 + r"; "0" of none. Terms that are "0" are left out.
std::string CudaSum(int64_t offset, const std::string& a, const std::string& b);

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_INDEX_H_
