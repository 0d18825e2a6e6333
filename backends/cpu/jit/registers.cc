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

// Whether the machine's instruction for it takes its second operand from memory as that lies there.
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
        next_(nodes_.size(), 0),
        reg_of_(nodes_.size(), -1),
        slot_of_(nodes_.size(), -1),
        value_in_(static_cast<size_t>(num_registers), -1) {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      schedule_.has_calls = schedule_.has_calls || nodes_[i].call != nullptr;
      for (const int32_t operand : nodes_[i].operands) {
        if (operand < 0) continue;
        std::vector<int32_t>& uses = uses_[static_cast<size_t>(operand)];
        if (uses.empty() || uses.back() != static_cast<int32_t>(i)) uses.push_back(static_cast<int32_t>(i));
      }
    }
    schedule_.pinned.assign(nodes_.size(), -1);
  }

  JitSchedule Run() {
    if (!schedule_.has_calls) Pin();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!IsLeaf(nodes_[i])) Schedule(static_cast<int32_t>(i));
    }
    return std::move(schedule_);
  }

 private:
  // Keeps those that are read most in registers that values never need all at once.
  void Pin() {
    std::vector<int32_t> change(nodes_.size() + 1, 0);
    std::vector<int32_t> invariants;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (uses_[i].empty()) continue;
      if (nodes_[i].kind == JitNode::Kind::kSingle || nodes_[i].kind == JitNode::Kind::kConstant) {
        invariants.push_back(static_cast<int32_t>(i));
        continue;
      }
      const size_t first = IsLeaf(nodes_[i]) ? static_cast<size_t>(uses_[i].front()) : i;
      ++change[first];
      --change[static_cast<size_t>(uses_[i].back())];
    }
    int32_t live = 0, most = 0;
    for (const int32_t c : change) most = std::max(most, live += c);
    const int64_t registers = static_cast<int64_t>(value_in_.size());
    int64_t free = registers - most - 4;
    std::stable_sort(invariants.begin(), invariants.end(), [&](int32_t a, int32_t b) {
      return uses_[static_cast<size_t>(a)].size() > uses_[static_cast<size_t>(b)].size();
    });
    for (const int32_t node : invariants) {
      if (free-- <= 0) break;
      const int32_t reg = static_cast<int32_t>(value_in_.size()) - 1;
      value_in_.pop_back();
      schedule_.pinned[static_cast<size_t>(node)] = reg;
      reg_of_[static_cast<size_t>(node)] = reg;
    }
  }

  bool IsPinned(int32_t node) const { return schedule_.pinned[static_cast<size_t>(node)] >= 0; }
  int32_t& RegOf(int32_t node) { return reg_of_[static_cast<size_t>(node)]; }

  // The first use after the one at hand.
  int32_t NextUse(int32_t node, int32_t position) {
    const std::vector<int32_t>& uses = uses_[static_cast<size_t>(node)];
    size_t& next = next_[static_cast<size_t>(node)];
    while (next < uses.size() && uses[next] <= position) ++next;
    return next < uses.size() ? uses[next] : kNever;
  }

  int32_t TakeSlot() {
    if (free_slots_.empty()) return schedule_.num_slots++;
    const int32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  // So that the value is in memory too.
  void Spill(int32_t node) {
    int32_t& slot = slot_of_[static_cast<size_t>(node)];
    if (IsLeaf(nodes_[static_cast<size_t>(node)]) || slot >= 0) return;
    slot = TakeSlot();
    JitInstruction spill{.kind = JitInstruction::Kind::kSpill, .node = node, .slot = slot};
    spill.operands[0] = {.node = node, .reg = RegOf(node)};
    schedule_.instructions.push_back(spill);
  }

  void Drop(int32_t node) {
    value_in_[static_cast<size_t>(RegOf(node))] = -1;
    RegOf(node) = -1;
  }

  // A register that none of `kept` is in.
  int32_t Take(int32_t position, const std::array<int32_t, 4>& kept) {
    int32_t furthest = -1, reg = -1;
    for (size_t r = 0; r < value_in_.size(); ++r) {
      const int32_t value = value_in_[r];
      if (value < 0) return static_cast<int32_t>(r);
      if (std::find(kept.begin(), kept.end(), value) != kept.end()) continue;
      const int32_t use = NextUse(value, position);
      if (use <= furthest) continue;
      furthest = use;
      reg = static_cast<int32_t>(r);
    }
    const int32_t value = value_in_[static_cast<size_t>(reg)];
    Spill(value);
    Drop(value);
    return reg;
  }

  void Put(int32_t node, int32_t reg) {
    value_in_[static_cast<size_t>(reg)] = node;
    RegOf(node) = reg;
  }

  JitOperand Where(int32_t node) {
    return {.node = node, .reg = RegOf(node), .slot = slot_of_[static_cast<size_t>(node)]};
  }

  void Load(int32_t node, int32_t position, const std::array<int32_t, 4>& kept) {
    const int32_t reg = Take(position, kept);
    JitInstruction load{.kind = JitInstruction::Kind::kLoad, .node = node, .reg = reg};
    load.operands[0] = Where(node);
    Put(node, reg);
    schedule_.instructions.push_back(load);
  }

  void Release(int32_t node, int32_t position) {
    if (IsPinned(node) || NextUse(node, position) != kNever) return;
    if (RegOf(node) >= 0) Drop(node);
    int32_t& slot = slot_of_[static_cast<size_t>(node)];
    if (slot >= 0) free_slots_.push_back(slot);
    slot = -1;
  }

  void Schedule(int32_t position) {
    const JitNode& node = nodes_[static_cast<size_t>(position)];
    const bool is_store = node.is_root();
    const bool is_call = node.call != nullptr;
    JitInstruction instruction{.kind = is_store ? JitInstruction::Kind::kStore : JitInstruction::Kind::kOp,
                               .node = position};
    for (size_t k = 0; k < 4; ++k) {
      const int32_t operand = node.operands[k];
      if (operand < 0 || RegOf(operand) >= 0) continue;
      const JitNode& from = nodes_[static_cast<size_t>(operand)];
      // What is needed once is read where it lies.
      const bool once = k == 1 && operand != node.operands[0] &&
                        (NextUse(operand, position) == kNever || from.kind != JitNode::Kind::kInput);
      const bool as_it_is = slot_of_[static_cast<size_t>(operand)] >= 0 || LiesAsInRegister(from);
      if (once && as_it_is && TakesMemory(node)) continue;
      if (is_call && as_it_is) continue;
      Load(operand, position, node.operands);
    }
    for (size_t k = 0; k < 4; ++k) {
      if (node.operands[k] >= 0) instruction.operands[k] = Where(node.operands[k]);
    }
    if (is_call) {
      for (size_t r = 0; r < value_in_.size(); ++r) {
        const int32_t value = value_in_[r];
        if (value < 0) continue;
        if (NextUse(value, position) != kNever) Spill(value);
        Drop(value);
      }
    }
    std::array<int32_t, 4> kept = {-1, -1, -1, -1};
    if (!is_store && !is_call) {
      // Slots of operands are read before they can be written again; registers may be written at once.
      for (size_t k = 0; k < 4; ++k) {
        const int32_t operand = node.operands[k];
        if (operand < 0 || IsPinned(operand) || RegOf(operand) < 0) continue;
        if (NextUse(operand, position) == kNever) {
          Drop(operand);
        } else {
          kept[k] = operand;
        }
      }
      instruction.reg = Take(position, kept);
    }
    if (is_call) instruction.reg = 0;
    schedule_.instructions.push_back(instruction);
    for (const int32_t operand : node.operands) {
      if (operand >= 0) Release(operand, position);
    }
    if (!is_store && NextUse(position, position) != kNever) Put(position, instruction.reg);
  }

  const std::vector<JitNode>& nodes_;
  std::vector<std::vector<int32_t>> uses_;  // by node: of whom, in order
  std::vector<size_t> next_;
  std::vector<int32_t> reg_of_;
  std::vector<int32_t> slot_of_;
  std::vector<int32_t> value_in_;  // by register
  std::vector<int32_t> free_slots_;
  JitSchedule schedule_;
};

}  // namespace

JitSchedule AllocateJitRegisters(const JitProgram& program, int num_registers) {
  return Allocation(program, num_registers).Run();
}

}  // namespace tensord::cpu
