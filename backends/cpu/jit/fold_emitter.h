#ifndef TENSORD_BACKENDS_CPU_JIT_FOLD_EMITTER_H_
#define TENSORD_BACKENDS_CPU_JIT_FOLD_EMITTER_H_

#include <cstddef>

#include "backends/cpu/jit/turn_emitter.h"

namespace tensord::cpu {

// Writes folds with vectors of 64 bytes (AVX-512); their nodes give op and dtype. A guarded fold is the machine's
// maximum or minimum of floats, beside a sum. It is wrong only if there is a NaN; then the sum is NaN.
class JitFoldEmitter : public JitTurnEmitter {
 protected:
  JitFoldEmitter(JitIsa isa, TurnShape shape, size_t buffer_bytes, void* buffer)
      : JitTurnEmitter(isa, shape, buffer_bytes, buffer) {}

  // out = a and b combined, in the lanes of k7 where it is partial. May write the first three scratch registers.
  void Combine(const JitNode& fold, bool is_guarded, bool is_partial, const Xmm& out, const Xmm& a, const Xmm& b);
  void AddGuard(const JitNode& fold, bool is_partial, const Xmm& out, const Xmm& a, const Xmm& b);
  // Returns the neutral element; for a sum -0.
  Xbyak::Address StartOf(const JitNode& fold);
  // The lanes of x to one, its first: halves of them, or neighbours with the identity of a sum before them, as runs are
  // folded (reduce/runs-inl.h).
  void FoldHalves(const JitNode& fold, bool is_guarded, const Xmm& x, const Xmm& other);
  void FoldNeighbours(const JitNode& fold, bool is_guarded, const Xmm& x, const Xmm& other);

 private:
  void UpperHalf(const Xmm& out, const Xmm& x, int bytes);
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_FOLD_EMITTER_H_
