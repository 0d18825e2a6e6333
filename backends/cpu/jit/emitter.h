#ifndef TENSORD_BACKENDS_CPU_JIT_EMITTER_H_
#define TENSORD_BACKENDS_CPU_JIT_EMITTER_H_

#define XBYAK_NO_EXCEPTION 1

#include <array>
#include <cstdint>
#include <list>
#include <utility>

#include "backends/cpu/jit/program.h"
#include "backends/cpu/math/integer_reciprocal.h"
#include "backends/cpu/math/vector_math_calls.h"
#include "xbyak/xbyak.h"

namespace tensord::cpu {

// Writes the instructions of single nodes on vectors of `lanes` elements, into a buffer that it borrows. Values are in
// registers as long as their elements need; BOOL is a mask: all bits of a lane of mask_bytes(). The last registers,
// four of AVX-512 and three of AVX2, are a node's temporaries, as are the mask registers and rax.
//
// A result's register may be that of an operand, so that it is written last.
class JitEmitter : public Xbyak::CodeGenerator {
 public:
  using Xmm = Xbyak::Xmm;

  JitEmitter(JitIsa isa, int lanes, int mask_bytes, size_t buffer_bytes, void* buffer)
      : CodeGenerator(buffer_bytes, buffer), isa_(isa), lanes_(lanes), mask_bytes_(mask_bytes) {}

  static int NumRegisters(JitIsa isa) { return isa == JitIsa::kAvx512 ? 28 : 13; }

  bool is_avx512() const { return isa_ == JitIsa::kAvx512; }
  int lanes() const { return lanes_; }
  int mask_bytes() const { return mask_bytes_; }
  int BytesOf(DType dtype) const { return lanes_ * (dtype == DType::kBool ? mask_bytes_ : RegisterBytes(dtype)); }

  Xmm Register(int index, int bytes) const;
  Xmm Register(RegisterId id, int bytes) const { return Register(id.index, bytes); }
  Xmm RegisterOf(RegisterId id, DType dtype) const { return Register(id, BytesOf(dtype)); }
  Xmm Scratch(int k, int bytes) const { return Register(NumRegisters(isa_) + k, bytes); }

  // Returns a vector of equal elements of 4, 8 or 16 bytes, in memory behind the code.
  Xbyak::Address Constant(uint64_t low, uint64_t high, int element_bytes);
  Xbyak::Address Constant32(uint32_t bits) { return Constant(bits, 0, 4); }
  // Returns a float's bits in either size.
  Xbyak::Address FloatConstant(DType dtype, double value);
  Xbyak::Address LaneConstant(DType dtype, uint32_t bits32, uint64_t bits64);
  // Returns the bytes of a whole vector.
  Xbyak::Address Vector(const void* bytes);
  void WriteConstants();

  // An operand of a node: a register, or memory where the node takes it.
  struct Operand {
    Xmm reg;
    Xbyak::Address address = Xbyak::Address(0);
    bool is_memory = false;
    const JitNode* node = nullptr;  // that it is the value of
    const Xbyak::Operand& any() const { return is_memory ? static_cast<const Xbyak::Operand&>(address) : reg; }
  };
  using Operands = std::array<Operand, 4>;

  // Emits an op that is no call.
  void EmitOp(const JitNode& node, const Xmm& out, const Operands& in);
  void EmitCompareSelect(const JitNode& node, const Xmm& out, const Operands& in);

  // Arrays from and to user memory; halves and BOOL change their form.
  void EmitLoad(DType dtype, const Xmm& out, const Xbyak::Address& from);
  // Loads the lanes of k7, the others as 0 or false (AVX-512). EmitStore takes such an address as it is.
  void EmitPartialLoad(DType dtype, const Xmm& out, const Xbyak::Address& from);
  void EmitStore(DType dtype, const Xbyak::Address& to, const Xmm& x);
  // Rounds to numbers that the 16-bit float can hold.
  void RoundToHalf(DType half, const Xmm& x);
  // One element, which `pointer` points at, in all lanes.
  void EmitBroadcast(DType dtype, const Xmm& out, const Xbyak::Reg64& pointer);

 private:
  static constexpr int kPredicateEq = 0, kPredicateLt = 1, kPredicateLe = 2, kPredicateUnordered = 3, kPredicateNe = 4,
                       kPredicateGe = 13, kPredicateGt = 14;

  static bool IsDouble(DType dtype) { return dtype == DType::kF64 || dtype == DType::kC128; }
  static int BitsOf(const Xmm& x) { return x.getBit() / 8; }

  void EmitUnary(const JitNode& node, const Xmm& out, const Xmm& x);
  void EmitBinary(const JitNode& node, const Xmm& out, const Xmm& a, const Operand& b, const Operand& first);
  void EmitFloatUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x);
  template <typename T>
  void EmitExp(DType dtype, const ExpNumbers<T>& numbers, const Xmm& out, const Xmm& x);
  void EmitIntegerUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x);
  void EmitComplexUnary(CoreOp op, DType dtype, const Xmm& out, const Xmm& x);
  void EmitFloatBinary(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const Operand& b, const Operand& first);
  void EmitIntegerBinary(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const Operand& b);
  void EmitDivision(CoreOp op, DType dtype, const Xmm& out, const Xmm& a, const JitNode& constant);
  void EmitQuotient(const IntegerReciprocal<int32_t>& reciprocal, const Xmm& size, const Xmm& quotient, const Xmm& a);
  void EmitLongQuotient(const IntegerReciprocal<int64_t>& reciprocal, const Xmm& size, const Xmm& quotient,
                        const Xmm& a);
  void EmitBoolBinary(CoreOp op, const Xmm& out, const Xmm& a, const Xmm& b);
  void EmitComplexProduct(DType dtype, const Xmm& out, const Xmm& a, const Xmm& b);
  void EmitOrder(bool is_max, DType dtype, const Xmm& out, const Operand& a, const Operand& b);
  void EmitFloatSign(DType dtype, const Xmm& out, const Xmm& x);

  // Comparison of x and y to a mask register (AVX-512), or to lanes as long as the operands' (AVX2).
  void CompareToMask(const Xbyak::Opmask& out, CompareDirection direction, DType dtype, const Xmm& x, const Xmm& y);
  void CompareToLanes(const Xmm& out, CompareDirection direction, DType dtype, const Xmm& x, const Xmm& y);
  void EmitCompare(CompareDirection direction, DType dtype, const Xmm& out, const Xmm& x, const Xmm& y);
  // Convert between masks of values and of AVX-512.
  void MaskToValue(const Xmm& out, const Xbyak::Opmask& mask);
  void ValueToMask(const Xbyak::Opmask& out, const Xmm& mask);
  // Convert between lanes of mask_bytes() and of `element_bytes` (AVX2).
  void LanesToValue(const Xmm& out, const Xmm& lanes, int element_bytes);
  Xmm ValueToLanes(const Xmm& scratch, const Xmm& mask, int element_bytes);

  void EmitSelect(const JitNode& node, const Xmm& out, const Xmm& predicate, const Xmm& yes, const Xmm& no);
  void EmitConvert(DType from, DType to, const Xmm& out, const Xmm& x);
  void EmitFromBool(DType to, const Xmm& out, const Xmm& x);
  void EmitTruncate(DType from, DType to, const Xmm& out, const Xmm& x);
  // The upper 16 bits of each lane are the BF16 value.
  void RoundToBFloat16(const Xmm& out, const Xmm& x);
  void PackDoubleWords(const Xmm& out, const Xmm& x, int odd);

  struct PooledConstant {
    uint64_t low, high;
    int element_bytes;
    Xbyak::Label label;
  };
  struct PooledVector {
    const void* bytes;
    Xbyak::Label label;
  };

  const JitIsa isa_;
  const int lanes_;
  const int mask_bytes_;
  std::list<PooledConstant> constants_;
  std::list<PooledVector> vectors_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_EMITTER_H_
