#ifndef TENSORD_BACKENDS_CUDA_LINALG_MATRIX_TEXT_H_
#define TENSORD_BACKENDS_CUDA_LINALG_MATRIX_TEXT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/kernel_text.h"
#include "engine/tensor/dtype.h"

namespace tensord::cuda {

// CUDA C++ over batches of column-major matrices, while it grows: T is the element, R the real type of its precision,
// Wide the element in double precision, and each number that a text is made for is a constant.
//
//   MatrixText text(DType::kC64, most_blocks);
//   text.Constant("kN", n);
//   text.Each("scale", "T* a, const R* by", batch * n * n, "a[i] = Times(a[i], by[i / (kN * kN)]);");
//   text.Take()
class MatrixText {
 public:
  MatrixText(DType dtype, int64_t most_blocks);

  void Constant(absl::string_view name, int64_t value);
  // Adds functions or types.
  void Add(absl::string_view text);
  // Adds functions by which the lanes of a matrix join their numbers, and arithmetic for them.
  void AddGroup();
  // Adds an entry that does `body` for each i below `count`, and its launch.
  void Each(absl::string_view entry, absl::string_view parameters, int64_t count, absl::string_view body);
  // Adds an entry of which a block of kThreads threads does `body` for each i below `count`, and its launch. All
  // threads come to every barrier in it.
  void EachByBlock(absl::string_view entry, absl::string_view parameters, int64_t count, absl::string_view body);
  // Does the same `turns` times, a launch each, for bodies that take long: `turn` counts them.
  void EachByBlockInTurns(absl::string_view entry, absl::string_view parameters, int64_t count, int64_t turns,
                          absl::string_view body);
  // Adds an entry of which `group` threads in a row of a warp do `body` for each i below `count`, and its launch; group
  // is a power of two up to 32, and `lane` the place among them. A warp goes through `body` as one: groups that are
  // left over do the last i again, where `is_here` is false.
  void EachByGroup(absl::string_view entry, absl::string_view parameters, int64_t count, int group,
                   absl::string_view body);

  // Returns the kernel, whose entries take the same pointers. Launches of very many matrices are cut.
  KernelText Take() { return std::move(text_); }

  static constexpr int kThreads = 128;
  static constexpr int kWarp = 32;                    // the threads of a block of EachByGroup
  static constexpr int64_t kBlocksPerProcessor = 16;  // at most

 private:
  struct Spread {
    int64_t count = 0;
    int32_t threads = kThreads;
    int64_t per_block = 1;  // that a block takes at once
    int64_t most = 0;       // that a launch takes
  };
  // Adds an entry and its launch, up to where `first_of_part` and `end_of_part` are declared. Returns what all its
  // blocks take at once.
  int64_t OpenEntry(absl::string_view entry, absl::string_view parameters, const Spread& spread);

  const int64_t most_blocks_;
  KernelText text_;
};

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_MATRIX_TEXT_H_
