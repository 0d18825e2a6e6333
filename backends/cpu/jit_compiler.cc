#include "backends/cpu/jit_compiler.h"

#if TENSORD_HAS_JIT

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "backends/cpu/jit_emitter.h"
#include "backends/cpu/jit_registers.h"

namespace tensord::cpu {
namespace {

using Xbyak::Address;
using Xbyak::Reg64;

// Elements of a turn: as many as fit the widest values.
struct TurnShape {
  int lanes = 1;
  int mask_bytes = 4;
};

TurnShape ShapeOf(const JitProgram& program, JitIsa isa) {
  int widest = 4;
  for (const JitNode& node : program.nodes) widest = std::max(widest, RegisterBytes(node.dtype));
  return {.lanes = VectorBytes(isa) / widest, .mask_bytes = std::min(widest, 8)};
}

// The frame, from rsp up: slots and single elements as vectors, copies of the arrays' last elements, the addresses of
// the arrays, a few numbers. rbx: `at`; r12: n; r13: elements done, r15: twice that where elements have 16 bytes.
//
// The elements after the last whole turn are copied to the frame, go through a turn there, and are copied back.
class Compiler : public JitEmitter {
 public:
  Compiler(const JitProgram& program, JitIsa isa, bool streams, TurnShape shape, size_t buffer_bytes, void* buffer)
      : JitEmitter(isa, shape.lanes, shape.mask_bytes, buffer_bytes, buffer),
        nodes_(program.nodes),
        streams_(streams),
        schedule_(AllocateJitRegisters(program, NumRegisters(isa))) {
    FindArrays();
    PlanFrame();
    turns_ = schedule_.has_calls || schedule_.instructions.size() > 24 ? 1 : schedule_.instructions.size() > 10 ? 2 : 4;
  }

  void Write() {
    Xbyak::Label reload, after_turns, finish, end;
    Enter();
    L(reload);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      if (arrays_[a].pointer >= 0) mov(Reg64(arrays_[a].pointer), TableAddress(a));
    }
    if (turns_ > 1) WriteLoop(turns_);
    WriteLoop(1);
    cmp(qword[rsp + rest_], 0);
    jne(finish, T_NEAR);
    mov(rax, r12);
    sub(rax, r13);
    je(end, T_NEAR);
    mov(ptr[rsp + rest_], rax);
    mov(ptr[rsp + begin_], r13);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      if (arrays_[a].is_read) CopyRest(a, true);
      lea(rax, ptr[rsp + BufferOffset(a)]);
      mov(TableAddress(a), rax);
    }
    SetDone(0);
    mov(r12d, lanes());
    jmp(reload, T_NEAR);
    L(finish);
    mov(r13, ptr[rsp + begin_]);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      if (arrays_[a].is_written) CopyRest(a, false);
    }
    L(end);
    vzeroupper();
    lea(rsp, ptr[rbp - 5 * 8]);
    for (const Reg64& reg : {r15, r14, r13, r12, rbx, rbp}) pop(reg);
    ret();
    WriteConstants();
  }

 private:
  struct Array {
    int32_t place = -1;
    int element_bytes = 0;  // in memory
    int pointer = -1;       // the register that holds its address
    bool is_read = false;
    bool is_written = false;
  };

  void FindArrays() {
    array_of_.assign(nodes_.size(), -1);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNode& node = nodes_[i];
      const bool is_store = node.kind == JitNode::Kind::kStore;
      if (node.kind != JitNode::Kind::kInput && !is_store) continue;
      size_t a = 0;
      while (a < arrays_.size() && arrays_[a].place != node.place) ++a;
      if (a == arrays_.size()) {
        arrays_.push_back({.place = node.place, .element_bytes = static_cast<int>(SizeOf(node.dtype))});
      }
      (is_store ? arrays_[a].is_written : arrays_[a].is_read) = true;
      array_of_[i] = static_cast<int32_t>(a);
      has_doubled_index_ = has_doubled_index_ || arrays_[a].element_bytes == 16;
    }
    // Calls leave but few registers.
    using Xbyak::Operand;
    std::vector<int> registers = {Operand::R14};
    if (!has_doubled_index_) registers.push_back(Operand::R15);
    if (!schedule_.has_calls) {
      registers.insert(registers.end(), {Operand::RCX, Operand::RDX, Operand::RSI, Operand::RDI, Operand::R8,
                                         Operand::R9, Operand::R10, Operand::R11});
    }
    for (size_t a = 0; a < std::min(arrays_.size(), registers.size()); ++a) arrays_[a].pointer = registers[a];
  }

  void PlanFrame() {
    singles_.assign(nodes_.size(), -1);
    int offset = schedule_.num_slots * 64;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].kind != JitNode::Kind::kSingle || schedule_.pinned[i] >= 0) continue;
      singles_[i] = offset;
      offset += 64;
    }
    buffers_ = offset;
    table_ = buffers_ + static_cast<int>(arrays_.size()) * 64;
    rest_ = table_ + static_cast<int>(arrays_.size()) * 8;
    begin_ = rest_ + 8;
    limit_ = begin_ + 8;
    frame_bytes_ = (limit_ + 8 + 63) / 64 * 64;
  }

  int BufferOffset(size_t array) const { return buffers_ + static_cast<int>(array) * 64; }
  Address TableAddress(size_t array) { return ptr[rsp + (table_ + static_cast<int>(array) * 8)]; }

  void Enter() {
    push(rbp);
    mov(rbp, rsp);
    for (const Reg64& reg : {rbx, r12, r13, r14, r15}) push(reg);
    sub(rsp, frame_bytes_);
    and_(rsp, -64);
    mov(rbx, rdi);
    mov(r12, rsi);
    for (size_t a = 0; a < arrays_.size(); ++a) {
      mov(rax, ptr[rbx + arrays_[a].place * 8]);
      mov(TableAddress(a), rax);
    }
    mov(qword[rsp + rest_], 0);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNode& node = nodes_[i];
      const int32_t pinned = schedule_.pinned[i];
      if (node.kind == JitNode::Kind::kSingle) {
        mov(rdx, ptr[rbx + node.place * 8]);
        const int bytes = BytesOf(node.dtype);
        const Xmm reg = pinned >= 0 ? Register(pinned, bytes) : Scratch(0, bytes);
        EmitBroadcast(node.dtype, reg, rdx);
        if (pinned < 0) vmovups(ptr[rsp + singles_[i]], reg);
      } else if (pinned >= 0) {
        vmovups(RegisterOf(pinned, node.dtype), HomeOf(static_cast<int32_t>(i)));
      }
    }
    SetDone(0);
  }

  void SetDone(int value) {
    mov(r13d, value);
    if (has_doubled_index_) mov(r15d, 2 * value);
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
      for (const JitInstruction& instruction : schedule_.instructions) WriteInstruction(instruction, t);
    }
    add(r13, turns * lanes());
    if (has_doubled_index_) add(r15, 2 * turns * lanes());
    cmp(r13, ptr[rsp + limit_]);
    jle(turn, T_NEAR);
    L(done);
  }

  // Where the elements of turn t of an array lie. May write rax.
  Address ArrayAddress(size_t array, int t) {
    const Array& a = arrays_[array];
    const int offset = t * lanes() * a.element_bytes;
    if (a.pointer < 0) mov(rax, TableAddress(array));
    const Reg64 base = a.pointer < 0 ? rax : Reg64(a.pointer);
    if (a.element_bytes == 16) return ptr[base + r15 * 8 + offset];
    return ptr[base + r13 * a.element_bytes + offset];
  }

  // Of a leaf that is no array.
  Address HomeOf(int32_t node_index) {
    const JitNode& node = nodes_[static_cast<size_t>(node_index)];
    if (node.kind == JitNode::Kind::kSingle) return ptr[rsp + singles_[static_cast<size_t>(node_index)]];
    uint64_t low = 0, high = 0;
    std::memcpy(&low, node.constant.data(), 8);
    std::memcpy(&high, node.constant.data() + 8, 8);
    switch (node.dtype) {
      case DType::kBool:
        return Constant32((low & 0xff) != 0 ? 0xffffffff : 0);
      case DType::kF16:
        return Constant32(std::bit_cast<uint32_t>(static_cast<float>(Float16::FromBits(static_cast<uint16_t>(low)))));
      case DType::kBF16:
        return Constant32(static_cast<uint32_t>(low & 0xffff) << 16);
      case DType::kI32:
      case DType::kF32:
        return Constant32(static_cast<uint32_t>(low));
      case DType::kC128:
        return Constant(low, high, 16);
      default:
        return Constant(low, 0, 8);
    }
  }

  // An operand that is in memory, as a vector.
  Address MemoryOf(const JitOperand& operand, int t) {
    if (operand.slot >= 0) return ptr[rsp + operand.slot * 64];
    const int32_t array = array_of_[static_cast<size_t>(operand.node)];
    return array >= 0 ? ArrayAddress(static_cast<size_t>(array), t) : HomeOf(operand.node);
  }

  void WriteInstruction(const JitInstruction& instruction, int t) {
    const size_t index = static_cast<size_t>(instruction.node);
    const JitNode& node = nodes_[index];
    const JitOperand& first = instruction.operands[0];
    switch (instruction.kind) {
      case JitInstruction::Kind::kLoad: {
        const Xmm out = RegisterOf(instruction.reg, node.dtype);
        const int32_t array = array_of_[index];
        if (first.slot >= 0 || array < 0) return vmovups(out, MemoryOf(first, t));
        return EmitLoad(node.dtype, out, ArrayAddress(static_cast<size_t>(array), t));
      }
      case JitInstruction::Kind::kSpill:
        return vmovups(ptr[rsp + instruction.slot * 64], RegisterOf(first.reg, node.dtype));
      case JitInstruction::Kind::kStore: {
        const Address to = ArrayAddress(static_cast<size_t>(array_of_[index]), t);
        if (streams_ && node.streams) return vmovntps(to, RegisterOf(first.reg, node.dtype));
        return EmitStore(node.dtype, to, RegisterOf(first.reg, node.dtype));
      }
      case JitInstruction::Kind::kOp:
        break;
    }
    if (node.call != nullptr) return WriteCall(node, instruction, t);
    Operands in;
    for (size_t k = 0; k < 4; ++k) {
      const JitOperand& operand = instruction.operands[k];
      if (operand.node < 0) continue;
      const JitNode& from = nodes_[static_cast<size_t>(operand.node)];
      in[k].node = &from;
      in[k].is_memory = !operand.in_register();
      if (in[k].is_memory) {
        in[k].address = MemoryOf(operand, t);
      } else {
        in[k].reg = RegisterOf(operand.reg, from.dtype);
      }
    }
    const Xmm out = RegisterOf(instruction.reg, node.dtype);
    node.kind == JitNode::Kind::kCompareSelect ? EmitCompareSelect(node, out, in) : EmitOp(node, out, in);
  }

  void MoveToRegister(const Xmm& out, const JitOperand& operand, int t) {
    if (!operand.in_register()) return vmovups(out, MemoryOf(operand, t));
    if (operand.reg != out.getIdx()) vmovaps(out, Register(operand.reg, BitsOf(out)));
  }
  static int BitsOf(const Xmm& x) { return x.getBit() / 8; }

  void WriteCall(const JitNode& node, const JitInstruction& instruction, int t) {
    const int bytes = BytesOf(node.dtype);
    const JitOperand& a = instruction.operands[0];
    const JitOperand& b = instruction.operands[1];
    if (b.node < 0) {
      MoveToRegister(Register(0, bytes), a, t);
    } else if (a.reg == 1) {  // the second operand must wait until the first one has left
      MoveToRegister(Scratch(0, bytes), b, t);
      MoveToRegister(Register(0, bytes), a, t);
      vmovaps(Register(1, bytes), Scratch(0, bytes));
    } else {
      MoveToRegister(Register(1, bytes), b, t);
      MoveToRegister(Register(0, bytes), a, t);
    }
    mov(rax, reinterpret_cast<uint64_t>(node.call));
    call(rax);
    if (RegisterDType(node.dtype) != node.dtype) RoundToHalf(node.dtype, Register(0, bytes));
  }

  // The elements after the last whole turn: to the frame, or from there to where the array is.
  void CopyRest(size_t array, bool to_frame) {
    const Array& a = arrays_[array];
    const int shift = std::countr_zero(static_cast<unsigned>(a.element_bytes));
    const Address buffer = ptr[rsp + BufferOffset(array)];
    mov(rdx, r13);
    shl(rdx, shift);
    add(rdx, ptr[rbx + a.place * 8]);
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

  const std::vector<JitNode>& nodes_;
  const bool streams_;
  const JitSchedule schedule_;
  int turns_ = 1;
  std::vector<Array> arrays_;
  std::vector<int32_t> array_of_;  // by node
  std::vector<int> singles_;       // by node: in the frame
  bool has_doubled_index_ = false;
  int buffers_ = 0, table_ = 0, rest_ = 0, begin_ = 0, limit_ = 0, frame_bytes_ = 0;
};

// Aligned as the code will be, which its own alignments count on.
struct AlignedDelete {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
};

}  // namespace

std::string CompileJitProgram(const JitProgram& program, JitIsa isa, bool streams) {
  const size_t bytes = 8192 + program.nodes.size() * 1024;
  const std::unique_ptr<uint8_t[], AlignedDelete> buffer(new (std::align_val_t(64)) uint8_t[bytes]);
  Xbyak::ClearError();
  Compiler compiler(program, isa, streams, ShapeOf(program, isa), bytes, buffer.get());
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
