#ifndef TENSORD_TESTS_UNIT_BACKENDS_CUDA_CODEGEN_PRINTED_CASES_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CUDA_CODEGEN_PRINTED_CASES_H_

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "backends/cuda/codegen/printer.h"
#include "tests/testlib/micro/micro_builder.h"
#include "tests/testlib/micro/micro_programs.h"

namespace tensord {

// A program and the options that it is printed with. The names of entries differ between the cases of one list.
struct PrintedCase {
  std::string name;
  MicroProgram program;
  CudaOptions options;
};

inline void AddCase(const NamedMicroProgram& named, CudaOptions options, std::vector<PrintedCase>* cases) {
  options.name = absl::StrCat("fused", cases->size());
  cases->push_back({.name = named.name, .program = named.program, .options = options});
}

// So few threads that some of a thousand points are neighbours, and that each thread has several.
inline CudaOptions FewThreads() { return {.max_threads_per_block = 32, .max_blocks = 3, .num_processors = 1}; }

// Every instruction with every dtype.
inline std::vector<PrintedCase> ElementwiseCases(int64_t points = 1003) {
  std::vector<PrintedCase> cases;
  for (const NamedMicroProgram& p : ElementwisePrograms({{.size = points}})) AddCase(p, FewThreads(), &cases);
  return cases;
}

// Every form of access, one element a thread and several.
inline std::vector<PrintedCase> AccessCases() {
  std::vector<PrintedCase> cases;
  for (const NamedMicroProgram& p : AccessPrograms()) {
    AddCase(p, {}, &cases);
    AddCase(p, FewThreads(), &cases);
  }
  return cases;
}

// Ways to spread a program over threads that sizes alone would choose only for large ones: as usual; few threads, which
// walk over several blocks; no room to carry anything; split ranges.
inline std::vector<CudaOptions> ReduceOptions() {
  return {{},
          {.max_threads_per_block = 64, .max_blocks = 2, .num_processors = 1},
          {.max_threads_per_block = 128, .max_shared_bytes = 2048},
          {.max_threads_per_block = 32, .max_blocks = 3, .points_per_split = 100}};
}

// Programs of several stages in F32 and those of several dtypes in every way; the others in one, in turns.
inline std::vector<PrintedCase> ReduceCases() {
  std::vector<PrintedCase> cases;
  const std::vector<NamedMicroProgram> programs = ReducePrograms();
  const std::vector<CudaOptions> options = ReduceOptions();
  for (size_t p = 0; p < programs.size(); ++p) {
    const bool is_plain = absl::StartsWith(programs[p].name, "reduce_");
    const bool in_turns = is_plain || absl::EndsWith(programs[p].name, "16") || absl::EndsWith(programs[p].name, "64");
    for (size_t o = 0; o < options.size(); ++o) {
      if (!in_turns || p % options.size() == o) AddCase(programs[p], options[o], &cases);
    }
  }
  return cases;
}

// Sums over rows that lie in columns: of squares of differences from a kept number, with a result that is there before
// the sum, and the largest.
inline MicroProgram ColumnsProgram(int64_t columns, int64_t rows, DType dtype) {
  MicroBuilder b({{.size = columns}, {.size = rows, .is_reduced = true}});
  const int32_t x = b.Load(dtype, MicroLevel::kFull), centre = b.Load(dtype, MicroLevel::kKept);
  const int32_t difference = b.Binary(CoreOp::kSubtract, x, centre);
  const int32_t sum = b.Reduce(ReduceKind::kSum, b.Binary(CoreOp::kMultiply, difference, difference));
  b.Result(b.Binary(CoreOp::kAdd, sum, centre));
  b.Result(b.Reduce(ReduceKind::kMax, x));
  b.Result(b.Unary(CoreOp::kNegate, centre));
  return b.Build();
}

// A map of networks: x (1 + erf(x c)) / 2 in a half type, behind a bias by column. `rows`: 0 for a vector.
template <typename T>
MicroProgram GeluProgram(int64_t columns, int64_t rows) {
  MicroBuilder b(rows == 0 ? std::vector<MicroAxis>{{.size = columns}}
                           : std::vector<MicroAxis>{{.size = columns}, {.size = rows}});
  using Strides = decltype(MicroAccess::strides);
  const Strides by_column = rows == 0 ? Strides{1} : Strides{1, 0}, by_row = rows == 0 ? Strides{0} : Strides{0, 1};
  const DType dtype = kDTypeOf<T>;
  const int32_t x = b.Binary(CoreOp::kSubtract, b.Load(dtype, MicroLevel::kFull),
                             b.Load(dtype, MicroLevel::kFull, {.strides = by_column}));
  const int32_t half = b.Constant(Literal::Scalar(T(0.5f))), one = b.Constant(Literal::Scalar(T(1.0f)));
  const int32_t c = b.Constant(Literal::Scalar(T(0.70703125f)));
  const int32_t erf = b.Unary(CoreOp::kErf, b.Binary(CoreOp::kMultiply, x, c));
  b.Result(b.Binary(CoreOp::kMultiply, b.Binary(CoreOp::kMultiply, x, half), b.Binary(CoreOp::kAdd, erf, one)));
  b.Result(b.Binary(CoreOp::kMaximum, x, b.Load(dtype, MicroLevel::kFull, {.strides = by_row})));
  return b.Build();
}

// A map by so many functions.
inline MicroProgram FunctionsProgram(int64_t points, int functions) {
  MicroBuilder b(std::vector<MicroAxis>{{.size = points}});
  int32_t x = b.Load(DType::kF32, MicroLevel::kFull);
  for (int i = 0; i < functions; ++i) x = b.Unary(i % 2 == 0 ? CoreOp::kTan : CoreOp::kAtan, x);
  b.Result(x);
  return b.Build();
}

// Programs whose threads take neighbours: many rows, of which a warp, a block and a large block have one, and which are
// carried in registers, in shared memory and not at all; few columns and many, whole and in parts. Of each with and
// without pointers that allow vectors.
inline std::vector<PrintedCase> NeighbourCases() {
  std::vector<PrintedCase> cases;
  const auto add = [&cases](std::string name, MicroProgram program, CudaOptions options) {
    for (const int64_t alignment : {16, 1}) {
      options.pointer_alignment_bytes = alignment;
      AddCase({.name = absl::StrCat(name, "_", alignment), .program = program}, options, &cases);
    }
  };
  const CudaOptions many = {.num_processors = 1};
  const CudaOptions roomy = {.num_processors = 1, .max_shared_bytes = 227 * 1024};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    add("warp_rows", SoftmaxProgram(1024, 9, dtype), many);
    add("short_rows", SoftmaxProgram(48, 70, dtype), many);
    add("block_rows", LayerNormProgram(4096, 5, dtype), many);
    add("large_blocks", SoftmaxProgram(32768, 4, dtype), many);
    add("split_rows", VarianceProgram(20000, 2, dtype), {.points_per_split = 1024});
    add("columns", ColumnsProgram(160, 900, dtype), many);
    add("split_columns", ColumnsProgram(1024, 700, dtype), {.num_processors = 8, .points_per_split = 1024});
    // So long that the launch needs more parts of the range than the device has room for.
    add("long_split_rows", VarianceProgram(20000, 2, dtype),
        {.num_processors = 1, .points_per_split = 512, .steps_per_launch = 50000});
    add("long_split_columns", ColumnsProgram(64, 9000, dtype),
        {.num_processors = 1, .points_per_split = 512, .steps_per_launch = 50000});
  }
  add("pairs_bf16", GeluProgram<BFloat16>(96, 50), many);
  add("ragged_pairs_bf16", GeluProgram<BFloat16>(1003, 0), many);
  add("pairs_f16", GeluProgram<Float16>(96, 50), many);
  add("ragged_pairs_f16", GeluProgram<Float16>(1003, 0), many);
  add("shared_rows", SoftmaxProgram(40960, 4, DType::kF32), roomy);
  add("long_rows", SoftmaxProgram(80000, 4, DType::kBF16), many);
  add("columns", ColumnsProgram(160, 900, DType::kI32), many);
  add("many_functions", FunctionsProgram(1000, 60), many);
  return cases;
}

// Programs by two: as usual, and with launches that are cut into as many parts as they have blocks for.
inline std::vector<PrintedCase> CutCases() {
  std::vector<PrintedCase> all = AccessCases(), cases;
  for (PrintedCase& c : NeighbourCases()) all.push_back(std::move(c));
  for (PrintedCase& c : all) {
    if (c.options.num_processors > 1 || c.options.pointer_alignment_bytes < 16) continue;
    c.options.max_blocks = CudaOptions().max_blocks;
    c.options.points_per_split = int64_t{1} << 40;  // parts of a sum would have other bits
    for (const int64_t steps : {c.options.steps_per_launch, int64_t{1}}) {
      c.options.steps_per_launch = steps;
      AddCase({.name = c.name, .program = c.program}, c.options, &cases);
    }
  }
  return cases;
}

}  // namespace tensord

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CUDA_CODEGEN_PRINTED_CASES_H_
