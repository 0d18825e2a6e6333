#ifndef TENSORD_BACKENDS_CPU_JIT_TURN_EMITTER_H_
#define TENSORD_BACKENDS_CPU_JIT_TURN_EMITTER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/jit/emitter.h"
#include "backends/cpu/jit/program.h"
#include "backends/cpu/jit/registers.h"

namespace tensord::cpu {

// Elements of a turn: as many as fit the widest values.
struct TurnShape {
  int lanes = 1;
  int mask_bytes = 4;
};
// Returns the shape for values of up to `widest_bytes`; WidestRegister gives a program's.
TurnShape ShapeOf(int widest_bytes, JitIsa isa);
int WidestRegister(const JitProgram& program);

// Writes the scheduled instructions of programs, a turn of their loops at a time. In the code rsp is the frame, r13 the
// elements done and r15 twice that if elements have 16 bytes; rax is free to be used.
class JitTurnEmitter : public JitEmitter {
 protected:
  JitTurnEmitter(JitIsa isa, TurnShape shape, size_t buffer_bytes, void* buffer)
      : JitEmitter(isa, shape.lanes, shape.mask_bytes, buffer_bytes, buffer) {}

  struct Array {
    PlaceId place;
    int element_bytes = 0;  // in memory
    int pointer = -1;       // the register that holds its address
    int address = 0;        // in the frame
    bool is_read = false;
    bool is_written = false;
  };
  // The program that is being written: all but the registers of arrays is known.
  struct Scene {
    const JitProgram* program = nullptr;
    JitSchedule schedule;
    std::vector<Array> arrays;
    IdVector<JitNodeId, int> array_of;  // -1: none
    IdVector<JitNodeId, int> homes;     // single elements, as vectors in the frame
    bool has_doubled_index = false;
    bool streams = false;
    bool is_partial = false;  // only the lanes of k7 are there (AVX-512)
  };

  // Returns the scene with its arrays, in registers as far as these last.
  static Scene SceneOf(const JitProgram& program, JitSchedule schedule);

  void LoadPointers(const Scene& scene);
  void LoadPinned(const Scene& scene);
  // Returns the address of the elements of turn t of an array. May write rax.
  Xbyak::Address ArrayAddress(const Scene& scene, size_t array, int t);
  // Returns the address of a leaf that is no array.
  Xbyak::Address HomeOf(const Scene& scene, JitNodeId node);
  // Returns an operand that is in memory, as a vector.
  Xbyak::Address MemoryOf(const Scene& scene, const JitOperand& operand, int t);
  void WriteInstruction(const Scene& scene, const JitInstruction& instruction, int t);

 private:
  static int BytesIn(const Xmm& x) { return x.getBit() / 8; }
  bool IsArray(const Scene& scene, const JitOperand& operand) const;
  void MoveToRegister(const Scene& scene, const Xmm& out, const JitOperand& operand, int t);
  void WriteCall(const Scene& scene, const JitNode& node, const JitInstruction& instruction, int t);
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_JIT_TURN_EMITTER_H_
