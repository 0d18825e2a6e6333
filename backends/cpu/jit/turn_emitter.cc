#if TENSORD_HAS_JIT

#include "backends/cpu/jit/turn_emitter.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace tensord::cpu {

using Xbyak::Address;
using Xbyak::Reg64;

TurnShape ShapeOf(int widest_bytes, JitIsa isa) {
  return {.lanes = VectorBytes(isa) / widest_bytes, .mask_bytes = std::min(widest_bytes, 8)};
}

int WidestRegister(const JitProgram& program) {
  int widest = 4;
  for (const JitNode& node : program.nodes) widest = std::max(widest, RegisterBytes(node.dtype));
  return widest;
}

JitTurnEmitter::Scene JitTurnEmitter::SceneOf(const JitProgram& program, JitSchedule schedule) {
  Scene scene{.program = &program, .schedule = std::move(schedule)};
  const JitNodes& nodes = program.nodes;
  std::vector<Array>& arrays = scene.arrays;
  scene.array_of.assign(nodes.size(), -1);
  scene.homes.assign(nodes.size(), -1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const JitNode& node = nodes[JitNodes::id(i)];
    const bool is_store = node.kind == JitNode::Kind::kStore;
    if (node.kind != JitNode::Kind::kInput && !is_store) continue;
    size_t a = 0;
    while (a < arrays.size() && arrays[a].place != node.place) ++a;
    if (a == arrays.size()) {
      arrays.push_back({.place = node.place, .element_bytes = static_cast<int>(SizeOf(node.dtype))});
    }
    (is_store ? arrays[a].is_written : arrays[a].is_read) = true;
    scene.array_of[JitNodes::id(i)] = static_cast<int>(a);
    scene.has_doubled_index = scene.has_doubled_index || arrays[a].element_bytes == 16;
  }
  // Calls leave but few registers.
  using Xbyak::Operand;
  std::vector<int> registers = {Operand::R14};
  if (!scene.has_doubled_index) registers.push_back(Operand::R15);
  if (!scene.schedule.has_calls) {
    registers.insert(registers.end(), {Operand::RCX, Operand::RDX, Operand::RSI, Operand::RDI, Operand::R8, Operand::R9,
                                       Operand::R10, Operand::R11});
  }
  for (size_t a = 0; a < std::min(arrays.size(), registers.size()); ++a) arrays[a].pointer = registers[a];
  return scene;
}

void JitTurnEmitter::LoadPointers(const Scene& scene) {
  for (const Array& array : scene.arrays) {
    if (array.pointer >= 0) mov(Reg64(array.pointer), ptr[rsp + array.address]);
  }
}

void JitTurnEmitter::LoadPinned(const Scene& scene) {
  const JitNodes& nodes = scene.program->nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const JitNodeId id = JitNodes::id(i);
    const RegisterId pinned = scene.schedule.pinned[id];
    if (pinned.index >= 0) vmovups(RegisterOf(pinned, nodes[id].dtype), HomeOf(scene, id));
  }
}

Address JitTurnEmitter::ArrayAddress(const Scene& scene, size_t array, int t) {
  const Array& a = scene.arrays[array];
  const int offset = t * lanes() * a.element_bytes;
  if (a.pointer < 0) mov(rax, ptr[rsp + a.address]);
  const Reg64 base = a.pointer < 0 ? rax : Reg64(a.pointer);
  if (a.element_bytes == 16) return ptr[base + r15 * 8 + offset];
  return ptr[base + r13 * a.element_bytes + offset];
}

Address JitTurnEmitter::HomeOf(const Scene& scene, JitNodeId id) {
  const JitNode& node = scene.program->nodes[id];
  if (node.kind == JitNode::Kind::kSingle) return ptr[rsp + scene.homes[id]];
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

bool JitTurnEmitter::IsArray(const Scene& scene, const JitOperand& operand) const {
  return operand.slot.index < 0 && scene.array_of[operand.node] >= 0;
}

Address JitTurnEmitter::MemoryOf(const Scene& scene, const JitOperand& operand, int t) {
  if (operand.slot.index >= 0) return ptr[rsp + operand.slot.index * 64];
  if (!IsArray(scene, operand)) return HomeOf(scene, operand.node);
  return ArrayAddress(scene, static_cast<size_t>(scene.array_of[operand.node]), t);
}

void JitTurnEmitter::WriteInstruction(const Scene& scene, const JitInstruction& instruction, int t) {
  const JitNodes& nodes = scene.program->nodes;
  const JitNode& node = nodes[instruction.node];
  const JitOperand& first = instruction.operands[0];
  switch (instruction.kind) {
    case JitInstruction::Kind::kLoad: {
      const Xmm out = RegisterOf(instruction.reg, node.dtype);
      if (!IsArray(scene, first)) return vmovups(out, MemoryOf(scene, first, t));
      const Address from = MemoryOf(scene, first, t);
      return scene.is_partial ? EmitPartialLoad(node.dtype, out, from) : EmitLoad(node.dtype, out, from);
    }
    case JitInstruction::Kind::kSpill:
      return vmovups(ptr[rsp + instruction.slot.index * 64], RegisterOf(first.reg, node.dtype));
    case JitInstruction::Kind::kStore: {
      const Address to = ArrayAddress(scene, static_cast<size_t>(scene.array_of[instruction.node]), t);
      const Xmm x = RegisterOf(first.reg, node.dtype);
      if (scene.is_partial) return EmitStore(node.dtype, to | k7, x);
      if (scene.streams && node.streams) return vmovntps(to, x);
      return EmitStore(node.dtype, to, x);
    }
    case JitInstruction::Kind::kOp:
      break;
  }
  if (node.call != nullptr) return WriteCall(scene, node, instruction, t);
  Operands in;
  for (size_t k = 0; k < 4; ++k) {
    const JitOperand& operand = instruction.operands[k];
    if (operand.node.index < 0) continue;
    const JitNode& from = nodes[operand.node];
    in[k].node = &from;
    in[k].is_memory = !operand.in_register();
    if (!in[k].is_memory) {
      in[k].reg = RegisterOf(operand.reg, from.dtype);
    } else if (scene.is_partial && IsArray(scene, operand)) {
      in[k].is_memory = false;
      in[k].reg = Scratch(2, BytesOf(from.dtype));  // which no op needs that takes its operand from memory
      EmitPartialLoad(from.dtype, in[k].reg, MemoryOf(scene, operand, t));
    } else {
      in[k].address = MemoryOf(scene, operand, t);
    }
  }
  const Xmm out = RegisterOf(instruction.reg, node.dtype);
  node.kind == JitNode::Kind::kCompareSelect ? EmitCompareSelect(node, out, in) : EmitOp(node, out, in);
}

void JitTurnEmitter::MoveToRegister(const Scene& scene, const Xmm& out, const JitOperand& operand, int t) {
  if (operand.in_register()) {
    if (operand.reg.index != out.getIdx()) vmovaps(out, Register(operand.reg, BytesIn(out)));
  } else if (scene.is_partial && IsArray(scene, operand)) {
    EmitPartialLoad(scene.program->nodes[operand.node].dtype, out, MemoryOf(scene, operand, t));
  } else {
    vmovups(out, MemoryOf(scene, operand, t));
  }
}

void JitTurnEmitter::WriteCall(const Scene& scene, const JitNode& node, const JitInstruction& instruction, int t) {
  const int bytes = BytesOf(node.dtype);
  const JitOperand& a = instruction.operands[0];
  const JitOperand& b = instruction.operands[1];
  if (b.node.index < 0) {
    MoveToRegister(scene, Register(0, bytes), a, t);
  } else if (a.reg.index == 1) {  // the second operand must wait until the first one has left
    MoveToRegister(scene, Scratch(0, bytes), b, t);
    MoveToRegister(scene, Register(0, bytes), a, t);
    vmovaps(Register(1, bytes), Scratch(0, bytes));
  } else {
    MoveToRegister(scene, Register(1, bytes), b, t);
    MoveToRegister(scene, Register(0, bytes), a, t);
  }
  mov(rax, reinterpret_cast<uint64_t>(node.call));
  call(rax);
  if (RegisterDType(node.dtype) != node.dtype) RoundToHalf(node.dtype, Register(0, bytes));
}

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
