#include "backends/cpu/jit/registers.h"

#include <algorithm>
#include <limits>

namespace tensord::cpu {
namespace {

constexpr int32_t kNever = std::numeric_limits<int32_t>::max();

bool IsLeaf(const JitNode& node) {
  return node.kind == JitNode::Kind::kInput || node.kind == JitNode::Kind::kSingle ||
         node.kind == JitNode::Kind::kConstant;
}

// Tells whether the machine's instruction for it takes its second operand from memory in the form that it has there.
bool TakesMemory(const JitNode& node) {
  if (node.kind != JitNode::Kind::kOp || node.op_kind != MicroKind::kBinary || node.call != nullptr) return false;
  if (node.computed == DType::kBool) return false;
  if (node.computed == DType::kC64 || node.computed == DType::kC128) {
    return node.op == CoreOp::kAdd || node.op == CoreOp::kSubtract;
  }
  return node.op == CoreOp::kAdd || node.op == CoreOp::kSubtract || node.op == CoreOp::kMultiply ||
         node.op == CoreOp::kDivide;
}

bool LiesAsInRegister(const JitNode& node) {
  if (node.kind != JitNode::Kind::kInput) return true;  // the frame and the constants are vectors
  return node.dtype == RegisterDType(node.dtype) && node.dtype != DType::kBool;
}

class Allocation {
 public:
  Allocation(const JitProgram& program, int num_registers)
      : nodes_(program.nodes),
        uses_(nodes_.size()),
        next_(nodes_.size()),
        reg_of_(nodes_.size()),
        slot_of_(nodes_.size()),
        value_in_(static_cast<size_t>(num_registers)) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNode& node = nodes_[JitNodes::id(i)];
      schedule_.has_calls = schedule_.has_calls || node.call != nullptr;
      for (const JitNodeId operand : node.operands) {
        if (operand.index < 0) continue;
        std::vector<int32_t>& uses = uses_[operand];
        if (uses.empty() || uses.back() != static_cast<int32_t>(i)) uses.push_back(static_cast<int32_t>(i));
      }
    }
    schedule_.pinned.assign(nodes_.size(), {});
  }

  JitSchedule Run() {
    if (!schedule_.has_calls) Pin();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!IsLeaf(nodes_[JitNodes::id(i)])) Schedule(JitNodes::id(i));
    }
    return std::move(schedule_);
  }

 private:
  // Keeps the most read ones in registers that values never need all at once.
  void Pin() {
    std::vector<int> change(nodes_.size() + 1, 0);
    std::vector<JitNodeId> invariants;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const JitNodeId id = JitNodes::id(i);
      const JitNode& node = nodes_[id];
      const std::vector<int32_t>& uses = uses_[id];
      if (uses.empty()) continue;
      if (node.kind == JitNode::Kind::kSingle || node.kind == JitNode::Kind::kConstant) {
        invariants.push_back(id);
        continue;
      }
      const size_t first = IsLeaf(node) ? static_cast<size_t>(uses.front()) : i;
      ++change[first];
      --change[static_cast<size_t>(uses.back())];
    }
    int live = 0, most = 0;
    for (const int c : change) most = std::max(most, live += c);
    const int64_t registers = static_cast<int64_t>(value_in_.size());
    int64_t free = registers - most - 4;
    std::stable_sort(invariants.begin(), invariants.end(),
                     [&](JitNodeId a, JitNodeId b) { return uses_[a].size() > uses_[b].size(); });
    for (const JitNodeId node : invariants) {
      if (free-- <= 0) break;
      const RegisterId reg = value_in_.id(value_in_.size() - 1);
      value_in_.resize(value_in_.size() - 1);
      schedule_.pinned[node] = reg;
      reg_of_[node] = reg;
    }
  }

  bool IsPinned(JitNodeId node) const { return schedule_.pinned[node].index >= 0; }

  // Returns the position of the first use after `position`.
  int32_t NextUse(JitNodeId node, JitNodeId position) {
    const std::vector<int32_t>& uses = uses_[node];
    size_t& next = next_[node];
    while (next < uses.size() && uses[next] <= position.index) ++next;
    return next < uses.size() ? uses[next] : kNever;
  }

  SlotId TakeSlot() {
    if (free_slots_.empty()) return {schedule_.num_slots++};
    const SlotId slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  // So that the value is in memory too.
  void Spill(JitNodeId node) {
    SlotId& slot = slot_of_[node];
    if (IsLeaf(nodes_[node]) || slot.index >= 0) return;
    slot = TakeSlot();
    JitInstruction spill{.kind = JitInstruction::Kind::kSpill, .node = node, .slot = slot};
    spill.operands[0] = {.node = node, .reg = reg_of_[node]};
    schedule_.instructions.push_back(spill);
  }

  void Drop(JitNodeId node) {
    value_in_[reg_of_[node]] = {};
    reg_of_[node] = {};
  }

  // Returns a register that none of `kept` is in.
  RegisterId Take(JitNodeId position, const std::array<JitNodeId, 4>& kept) {
    int32_t furthest = -1;
    RegisterId taken;
    for (size_t r = 0; r < value_in_.size(); ++r) {
      const RegisterId reg = value_in_.id(r);
      const JitNodeId value = value_in_[reg];
      if (value.index < 0) return reg;
      if (std::find(kept.begin(), kept.end(), value) != kept.end()) continue;
      const int32_t use = NextUse(value, position);
      if (use <= furthest) continue;
      furthest = use;
      taken = reg;
    }
    const JitNodeId value = value_in_[taken];
    Spill(value);
    Drop(value);
    return taken;
  }

  void Put(JitNodeId node, RegisterId reg) {
    value_in_[reg] = node;
    reg_of_[node] = reg;
  }

  JitOperand Where(JitNodeId node) { return {.node = node, .reg = reg_of_[node], .slot = slot_of_[node]}; }

  void Load(JitNodeId node, JitNodeId position, const std::array<JitNodeId, 4>& kept) {
    const RegisterId reg = Take(position, kept);
    JitInstruction load{.kind = JitInstruction::Kind::kLoad, .node = node, .reg = reg};
    load.operands[0] = Where(node);
    Put(node, reg);
    schedule_.instructions.push_back(load);
  }

  void Release(JitNodeId node, JitNodeId position) {
    if (IsPinned(node) || NextUse(node, position) != kNever) return;
    if (reg_of_[node].index >= 0) Drop(node);
    SlotId& slot = slot_of_[node];
    if (slot.index >= 0) free_slots_.push_back(slot);
    slot = {};
  }

  void Schedule(JitNodeId position) {
    const JitNode& node = nodes_[position];
    const bool is_store = node.is_root();
    const bool is_call = node.call != nullptr;
    JitInstruction instruction{.kind = is_store ? JitInstruction::Kind::kStore : JitInstruction::Kind::kOp,
                               .node = position};
    for (size_t k = 0; k < 4; ++k) {
      const JitNodeId operand = node.operands[k];
      if (operand.index < 0 || reg_of_[operand].index >= 0) continue;
      const JitNode& from = nodes_[operand];
      // An operand needed once is read in place.
      const bool once = k == 1 && operand != node.operands[0] &&
                        (NextUse(operand, position) == kNever || from.kind != JitNode::Kind::kInput);
      const bool as_it_is = slot_of_[operand].index >= 0 || LiesAsInRegister(from);
      if (once && as_it_is && TakesMemory(node)) continue;
      if (is_call && as_it_is) continue;
      Load(operand, position, node.operands);
    }
    for (size_t k = 0; k < 4; ++k) {
      if (node.operands[k].index >= 0) instruction.operands[k] = Where(node.operands[k]);
    }
    if (is_call) {
      for (size_t r = 0; r < value_in_.size(); ++r) {
        const JitNodeId value = value_in_[value_in_.id(r)];
        if (value.index < 0) continue;
        if (NextUse(value, position) != kNever) Spill(value);
        Drop(value);
      }
    }
    std::array<JitNodeId, 4> kept;
    if (!is_store && !is_call) {
      // Slots of operands are read before they can be written again; registers may be written at once.
      for (size_t k = 0; k < 4; ++k) {
        const JitNodeId operand = node.operands[k];
        if (operand.index < 0 || IsPinned(operand) || reg_of_[operand].index < 0) continue;
        if (NextUse(operand, position) == kNever) {
          Drop(operand);
        } else {
          kept[k] = operand;
        }
      }
      instruction.reg = Take(position, kept);
    }
    if (is_call) instruction.reg = {0};
    schedule_.instructions.push_back(instruction);
    for (const JitNodeId operand : node.operands) {
      if (operand.index >= 0) Release(operand, position);
    }
    if (!is_store && NextUse(position, position) != kNever) Put(position, instruction.reg);
  }

  const JitNodes& nodes_;
  IdVector<JitNodeId, std::vector<int32_t>> uses_;  // the positions of the nodes that read it, in order
  IdVector<JitNodeId, size_t> next_;
  IdVector<JitNodeId, RegisterId> reg_of_;
  IdVector<JitNodeId, SlotId> slot_of_;
  IdVector<RegisterId, JitNodeId> value_in_;
  std::vector<SlotId> free_slots_;
  JitSchedule schedule_;
};

}  // namespace

JitSchedule AllocateJitRegisters(const JitProgram& program, int num_registers) {
  return Allocation(program, num_registers).Run();
}

}  // namespace tensord::cpu
