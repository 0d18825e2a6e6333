#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_FUSED_CALL_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_FUSED_CALL_H_

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/elementwise/elementwise.h"
#include "backends/cpu/fused/kernel.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/fusion/fused_op.h"
#include "engine/fusion/micro_program.h"
#include "engine/tensor/literal.h"
#include "gtest/gtest.h"
#include "tests/unit/backends/cpu/sample_values.h"

// One fused kernel run by itself.

namespace tensord::cpu {

// A result at an address with nothing behind it, so that sanitizers see what is written past it.
struct Storage {
  explicit Storage(int64_t bytes) : memory(new char[static_cast<size_t>(bytes) + 64]), size(bytes) {
    std::memset(memory.get(), 0x5a, static_cast<size_t>(bytes) + 64);
    data = memory.get() + (64 - reinterpret_cast<uintptr_t>(memory.get()) % 64) % 64;
  }
  bool IsIntact() const {
    for (const char* p = data + size; p < memory.get() + size + 64; ++p) {
      if (*p != 0x5a) return false;
    }
    return true;
  }
  std::unique_ptr<char[]> memory;
  int64_t size;
  char* data;
};

// For random programs.
inline bool Takes(CoreOp op, DType dtype) { return FindElementwise(op, dtype) != nullptr; }

class Fused {
 public:
  explicit Fused(const MicroProgram& program, const JitOptions& jit = JitOptions()) : program_(program) {
    BoundInstruction bound;
    bound.op = &FusedOp();
    bound.micro = &program_;
    auto kernel = MakeFusedKernel(bound, jit);
    EXPECT_TRUE(kernel.ok()) << kernel.status() << "\n" << ToString(program_);
    if (kernel.ok()) kernel_ = *std::move(kernel);
  }
  bool ok() const { return kernel_ != nullptr; }
  std::string Describe() const { return kernel_->Describe(); }

  // The results' bytes. With a pair {result, operand} that result lies in a copy of that operand.
  std::vector<std::string> Run(const std::vector<Literal>& tensors, int threads,
                               std::pair<int32_t, int32_t> in_place = {-1, -1}) const {
    std::vector<std::string> bytes;
    if (!ok()) return bytes;
    std::vector<const void*> operands;
    for (const Literal& tensor : tensors) operands.push_back(tensor.bytes().data());
    std::vector<Storage> storage;
    std::vector<void*> results;
    for (const MicroResult& result : program_.results) {
      const MicroInstruction& value = program_.instructions[static_cast<size_t>(result.value)];
      storage.emplace_back(program_.num_points(value.level) * SizeOf(value.dtype));
      results.push_back(storage.back().data);
    }
    if (in_place.first >= 0) {
      const absl::string_view operand = tensors[static_cast<size_t>(in_place.second)].bytes();
      void* const place = results[static_cast<size_t>(in_place.first)];
      if (!operand.empty()) std::memcpy(place, operand.data(), operand.size());
      operands[static_cast<size_t>(in_place.second)] = place;
    }
    const Storage scratch(kernel_->scratch_bytes());
    ThreadPool pool(threads);
    kernel_->Run({.operands = operands, .results = absl::MakeSpan(results), .scratch = scratch.data, .pool = &pool});
    EXPECT_TRUE(scratch.IsIntact()) << ToString(program_);
    for (const Storage& result : storage) {
      EXPECT_TRUE(result.IsIntact()) << ToString(program_);
      bytes.emplace_back(result.data, static_cast<size_t>(result.size));
    }
    return bytes;
  }

 private:
  const MicroProgram program_;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_FUSED_CALL_H_
