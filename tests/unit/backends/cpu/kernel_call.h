#ifndef TENSORD_TESTS_UNIT_BACKENDS_CPU_KERNEL_CALL_H_
#define TENSORD_TESTS_UNIT_BACKENDS_CPU_KERNEL_CALL_H_

#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "backends/cpu/kernel/kernel.h"
#include "backends/cpu/machine/thread_pool.h"
#include "engine/ops/core_ops.h"
#include "engine/tensor/literal.h"
#include "gtest/gtest.h"

// One kernel run by itself, against the reference.

namespace tensord::cpu {

using Ints = std::vector<int64_t>;

// Distinct bytes; BOOL stays 0 or 1.
inline Literal Numbered(DType dtype, const Ints& shape) {
  Literal literal = *Literal::Create({dtype, Shape(shape.begin(), shape.end())});
  std::mt19937 random(3);
  for (size_t i = 0; i < literal.bytes().size(); ++i) {
    literal.mutable_data()[i] = static_cast<char>(dtype == DType::kBool ? random() % 2 : random());
  }
  return literal;
}

struct Call {
  CoreOp op;
  Attributes attrs;
  std::vector<Literal> operands;
  Ints result_shape;
  DType result_dtype = DType::kInvalid;  // kInvalid: the first operand's

  Call(CoreOp called, std::vector<Literal> with, Ints shape)
      : op(called), attrs(Def(called).attrs), operands(std::move(with)), result_shape(std::move(shape)) {}

  ConcreteType result_type() const {
    return {result_dtype == DType::kInvalid ? operands[0].dtype() : result_dtype,
            Shape(result_shape.begin(), result_shape.end())};
  }
};

inline BoundInstruction Bind(const Call& call) {
  BoundInstruction bound;
  bound.op = &Def(call.op);
  bound.attrs = &call.attrs;
  for (const Literal& operand : call.operands) bound.operands.push_back(operand.type());
  bound.results.push_back(call.result_type());
  return bound;
}

inline Literal Reference(const Call& call) {
  Literal result = *Literal::Create(call.result_type());
  std::vector<const Literal*> operands;
  for (const Literal& operand : call.operands) operands.push_back(&operand);
  const absl::Status status = Def(call.op).reference.get()({call.attrs, operands, absl::MakeSpan(&result, 1)});
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

inline Literal RunKernel(MakeKernel* make, const Call& call, int threads) {
  Literal result = *Literal::Create(call.result_type());
  if (!result.bytes().empty()) std::memset(result.mutable_data(), 0x5a, result.bytes().size());
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = make(Bind(call));
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return result;
  std::vector<char> storage(static_cast<size_t>((*kernel)->scratch_bytes()) + 64);
  char* scratch = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64);
  std::vector<const void*> operands;
  for (const Literal& operand : call.operands) operands.push_back(operand.bytes().data());
  void* results[] = {result.mutable_data()};
  ThreadPool pool(threads);
  (*kernel)->Run({.operands = operands, .results = results, .scratch = scratch, .pool = &pool});
  return result;
}

inline void ExpectReference(const Call& call, MakeKernel* make) {
  const Literal expected = Reference(call);
  for (int threads : {1, 3}) {
    EXPECT_TRUE(RunKernel(make, call, threads) == expected)
        << Def(call.op).name << " " << ToString(call.operands[0].type()) << " to " << ToString(call.result_type());
  }
}

inline Ints RandomShape(std::mt19937& random, size_t rank) {
  Ints shape(rank);
  for (int64_t& size : shape) size = random() % 25 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 7);
  return shape;
}

inline DType RandomDType(std::mt19937& random) { return kAllDTypes[random() % kAllDTypes.size()]; }

}  // namespace tensord::cpu

#endif  // TENSORD_TESTS_UNIT_BACKENDS_CPU_KERNEL_CALL_H_
