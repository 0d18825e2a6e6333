#include "backends/cpu/jit/compiler.h"

#if TENSORD_HAS_JIT

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backends/cpu/jit/code.h"
#include "backends/cpu/jit/registers.h"
#include "backends/cpu/jit/turn_emitter.h"

namespace tensord::cpu {
namespace {

using Xbyak::Address;
using Xbyak::Reg64;

// The frame, from rsp up: slots and single elements as vectors, copies of the arrays' last elements, the addresses of
// the arrays, a few numbers. rbx: `at`; r12: n; r13: elements done, r15: twice that if elements have 16 bytes.
//
// The elements after the last whole turn are copied to the frame, go through a turn there, and are copied back.
class Compiler : public JitTurnEmitter {
 public:
  Compiler(const JitProgram& program, JitIsa isa, bool streams, TurnShape shape, size_t buffer_bytes, void* buffer)
      : JitTurnEmitter(isa, shape, buffer_bytes, buffer),
        nodes_(program.nodes),
        scene_(SceneOf(program, AllocateJitRegisters(program, NumRegisters(isa)))) {
    scene_.streams = streams;
    PlanFrame();
    const JitSchedule& schedule = scene_.schedule;
    turns_ = schedule.has_calls || schedule.instructions.size() > 24 ? 1 : schedule.instructions.size() > 10 ? 2 : 4;
  }

  void Write() {
    Xbyak::Label reload, after_turns, finish, end;
    Enter();
    L(reload);
    LoadPointers(scene_);
    if (turns_ > 1) WriteLoop(turns_);
    WriteLoop(1);
    cmp(qword[rsp + rest_], 0);
    jne(finish, T_NEAR);
    mov(rax, r12);
    sub(rax, r13);
    je(end, T_NEAR);
    mov(ptr[rsp + rest_], rax);
    mov(ptr[rsp + begin_], r13);
    for (size_t a = 0; a < scene_.arrays.size(); ++a) {
      if (scene_.arrays[a].is_read) CopyRest(a, true);
      lea(rax, ptr[rsp + BufferOffset(a)]);
      mov(TableAddress(a), rax);
    }
    SetDone(0);
    mov(r12d, lanes());
    jmp(reload, T_NEAR);
    L(finish);
    mov(r13, ptr[rsp + begin_]);
    for (size_t a = 0; a < scene_.arrays.size(); ++a) {
      if (scene_.arrays[a].is_written) CopyRest(a, false);
    }
    L(end);
    vzeroupper();
    lea(rsp, ptr[rbp - 5 * 8]);
    for (const Reg64& reg : {r15, r14, r13, r12, rbx, rbp}) pop(reg);
    ret();
    WriteConstants();
  }

 private:
  void PlanFrame() {
    int offset = scene_.schedule.num_slots * 64;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNodeId id = JitNodes::id(i);
      if (nodes_[id].kind != JitNode::Kind::kSingle || scene_.schedule.pinned[id].index >= 0) continue;
      scene_.homes[id] = offset;
      offset += 64;
    }
    std::vector<Array>& arrays = scene_.arrays;
    buffers_ = offset;
    const int table = buffers_ + static_cast<int>(arrays.size()) * 64;
    for (size_t a = 0; a < arrays.size(); ++a) arrays[a].address = table + static_cast<int>(a) * 8;
    rest_ = table + static_cast<int>(arrays.size()) * 8;
    begin_ = rest_ + 8;
    limit_ = begin_ + 8;
    frame_bytes_ = (limit_ + 8 + 63) / 64 * 64;
  }

  int BufferOffset(size_t array) const { return buffers_ + static_cast<int>(array) * 64; }
  Address TableAddress(size_t array) { return ptr[rsp + scene_.arrays[array].address]; }

  void Enter() {
    push(rbp);
    mov(rbp, rsp);
    for (const Reg64& reg : {rbx, r12, r13, r14, r15}) push(reg);
    sub(rsp, frame_bytes_);
    and_(rsp, -64);
    mov(rbx, rdi);
    mov(r12, rsi);
    for (size_t a = 0; a < scene_.arrays.size(); ++a) {
      mov(rax, ptr[rbx + scene_.arrays[a].place.index * 8]);
      mov(TableAddress(a), rax);
    }
    mov(qword[rsp + rest_], 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNodeId id = JitNodes::id(i);
      const JitNode& node = nodes_[id];
      const RegisterId pinned = scene_.schedule.pinned[id];
      if (node.kind == JitNode::Kind::kSingle) {
        mov(rdx, ptr[rbx + node.place.index * 8]);
        const int bytes = BytesOf(node.dtype);
        const Xmm reg = pinned.index >= 0 ? Register(pinned, bytes) : Scratch(0, bytes);
        EmitBroadcast(node.dtype, reg, rdx);
        if (pinned.index < 0) vmovups(ptr[rsp + scene_.homes[id]], reg);
      } else if (pinned.index >= 0) {
        vmovups(RegisterOf(pinned, node.dtype), HomeOf(scene_, id));
      }
    }
    SetDone(0);
  }

  void SetDone(int value) {
    mov(r13d, value);
    if (scene_.has_doubled_index) mov(r15d, 2 * value);
  }

  // While `turns` whole turns are left.
  void WriteLoop(int turns) {
    Xbyak::Label turn, done;
    mov(rax, r12);
    sub(rax, turns * lanes());
    mov(ptr[rsp + limit_], rax);
    cmp(r13, rax);
    jg(done, T_NEAR);
    align(32);
    L(turn);
    for (int t = 0; t < turns; ++t) {
      for (const JitInstruction& instruction : scene_.schedule.instructions) WriteInstruction(scene_, instruction, t);
    }
    add(r13, turns * lanes());
    if (scene_.has_doubled_index) add(r15, 2 * turns * lanes());
    cmp(r13, ptr[rsp + limit_]);
    jle(turn, T_NEAR);
    L(done);
  }

  // The elements after the last whole turn: to the frame, or from there to where the array is.
  void CopyRest(size_t array, bool to_frame) {
    const Array& a = scene_.arrays[array];
    const int shift = std::countr_zero(static_cast<unsigned>(a.element_bytes));
    const Address buffer = ptr[rsp + BufferOffset(array)];
    mov(rdx, r13);
    shl(rdx, shift);
    add(rdx, ptr[rbx + a.place.index * 8]);
    mov(rcx, ptr[rsp + rest_]);
    shl(rcx, shift);
    if (is_avx512()) {
      const Xbyak::Zmm t0(NumRegisters(JitIsa::kAvx512));
      mov(rax, -1);
      bzhi(rax, rax, rcx);
      kmovq(k1, rax);
      vmovdqu8(t0 | k1 | T_z, to_frame ? ptr[rdx] : buffer);
      return to_frame ? vmovups(buffer, t0) : vmovdqu8(ptr[rdx] | k1, t0);
    }
    if (to_frame) {
      const Xbyak::Ymm t0(NumRegisters(JitIsa::kAvx2));
      vxorps(t0, t0, t0);
      vmovups(buffer, t0);
      mov(rsi, rdx);
      lea(rdi, buffer);
    } else {
      lea(rsi, buffer);
      mov(rdi, rdx);
    }
    rep();
    movsb();
  }

  const JitNodes& nodes_;
  Scene scene_;
  int turns_ = 1;
  int buffers_ = 0, rest_ = 0, begin_ = 0, limit_ = 0, frame_bytes_ = 0;
};

}  // namespace

std::string CompileJitProgram(const JitProgram& program, JitIsa isa, bool streams) {
  const size_t bytes = 8192 + program.nodes.size() * 1024;
  const JitBuffer buffer = MakeJitBuffer(bytes);
  Xbyak::ClearError();
  Compiler compiler(program, isa, streams, ShapeOf(WidestRegister(program), isa), bytes, buffer.get());
  compiler.Write();
  if (Xbyak::GetError() != Xbyak::ERR_NONE) return "";
  return std::string(reinterpret_cast<const char*>(compiler.getCode()), compiler.getSize());
}

}  // namespace tensord::cpu

#else

namespace tensord::cpu {

std::string CompileJitProgram(const JitProgram& /*program*/, JitIsa /*isa*/, bool /*streams*/) { return ""; }

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
