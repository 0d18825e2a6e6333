#include "backends/cpu/jit/rows.h"

#if TENSORD_HAS_JIT

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "backends/cpu/jit/code.h"
#include "backends/cpu/jit/fold_emitter.h"
#include "backends/cpu/jit/jitted_rows.h"
#include "backends/cpu/jit/registers.h"

namespace tensord::cpu {

namespace {

using Xbyak::Address;
using Xbyak::Label;
using Xbyak::Reg64;

constexpr int64_t kShortRunBytes = 1024;  // as reduce/runs-inl.h has them
// The row of the loops in reduce/, whose order of terms this is, is four vectors of AVX-512.
constexpr int kMaxTurns = 4;
// Two guarded folds, or four others; of 32 registers the rest is for the values that are folded.
constexpr int kFoldRegisters = 16;

// Writes a loop over rows, in which the stages follow one another. Code that needs masks of elements is written for
// AVX-512 only: parts of vectors, folds, and results of single elements. The frame, from rsp up: slots of all
// schedules, one after the other; single elements as vectors; accumulators of folds that are not in registers;
// addresses; the rows that are left. rbx: `at`; r13: elements done, r15: twice that if elements have 16 bytes.
//
// A maximum or minimum of floats is the machine's, which is wrong only if there is a NaN: the sum of the elements
// tells, and the row is folded again then. A loop with stores must not be gone through twice, so that it looks for NaN
// at once.
class RowsCompiler : public JitFoldEmitter {
 public:
  RowsCompiler(const JitRows& rows, JitIsa isa, bool streams, size_t buffer_bytes, void* buffer)
      : JitFoldEmitter(isa, ShapeOf(WidestRegister(rows), isa), buffer_bytes, buffer), rows_(rows), isa_(isa) {
    FindHomes();
    for (const JitRows::Stage& stage : rows.stages) {
      StageScene scene;
      scene.kept = MakeScene(stage.kept, 0, streams);
      FindFolds(stage.loop, &scene);
      scene.loop = MakeScene(stage.loop, scene.folds_in_registers ? kFoldRegisters : 0, streams);
      if (scene.loop.schedule.has_calls) scene.folds_in_registers = false;
      scenes_.push_back(std::move(scene));
    }
    PlanFrame();
  }

  void Write() {
    Label row, end;
    Enter();
    test(rsi, rsi);
    jle(end, T_NEAR);
    L(row);
    for (const JitRows::Element& load : rows_.loads) {
      mov(rdx, ptr[rsp + addresses_.at(load.from)]);
      EmitBroadcast(load.dtype, Scratch(0, BytesOf(load.dtype)), rdx);
      vmovups(ptr[rsp + homes_.at(load.to)], Scratch(0, BytesOf(load.dtype)));
    }
    for (size_t s = 0; s < scenes_.size(); ++s) {
      WriteKept(scenes_[s].kept);
      for (const JitRows::Element& result : rows_.stages[s].results) StoreElement(result);
      if (!rows_.stages[s].loop.nodes.empty()) WriteLoop(scenes_[s], static_cast<int>(s));
    }
    for (const JitRows::Moving& moving : rows_.moving) {
      if (moving.row_bytes == 0) continue;
      mov(rax, moving.row_bytes);
      add(ptr[rsp + addresses_.at(moving.place)], rax);
    }
    dec(qword[rsp + rows_left_]);
    jg(row, T_NEAR);
    L(end);
    vzeroupper();
    lea(rsp, ptr[rbp - 5 * 8]);
    for (const Reg64& reg : {r15, r14, r13, r12, rbx, rbp}) pop(reg);
    ret();
    for (StageScene& scene : scenes_) {
      if (scene.again != nullptr) WriteAgain(scene);
    }
    WriteConstants();
  }

 private:
  struct Fold {
    const JitNode* node = nullptr;
    int number = 0;           // of the stage
    bool is_guarded = false;  // an order of floats that takes no care of NaN
  };
  struct StageScene {
    Scene kept;
    Scene loop;
    std::vector<Fold> folds;
    bool folds_in_registers = false;
    int accumulators = 0;  // in the frame, where they are not
    std::unique_ptr<Label> again, resume;
  };

  Scene MakeScene(const JitProgram& program, int reserved, bool streams) {
    JitSchedule schedule = AllocateJitRegisters(program, NumRegisters(isa_) - reserved);
    num_slots_ = std::max(num_slots_, schedule.num_slots);
    Scene scene = SceneOf(program, std::move(schedule));
    scene.streams = streams;
    return scene;
  }

  void FindHomes() {
    const auto add = [&](PlaceId place) { homes_.try_emplace(place, 0); };
    for (const JitRows::Element& load : rows_.loads) {
      add(load.to);
      set_.push_back(load.to);
    }
    for (const JitRows::Stage& stage : rows_.stages) {
      for (const JitProgram* program : {&stage.kept, &stage.loop}) {
        for (const JitNode& node : program->nodes) {
          const bool is_set =
              node.kind == JitNode::Kind::kFold || (program == &stage.kept && node.kind == JitNode::Kind::kStore);
          if (is_set || node.kind == JitNode::Kind::kSingle) add(node.place);
          if (is_set) set_.push_back(node.place);
        }
      }
    }
  }

  static int AccumulatorsOf(const StageScene& scene) {
    int count = 0;
    for (const Fold& fold : scene.folds) count += kMaxTurns * (fold.is_guarded ? 2 : 1);
    return count;
  }

  void FindFolds(const JitProgram& loop, StageScene* scene) {
    bool stores = false;
    for (const JitNode& node : loop.nodes) {
      stores = stores || node.kind == JitNode::Kind::kStore;
      if (node.kind == JitNode::Kind::kFold) {
        scene->folds.push_back({.node = &node, .number = static_cast<int>(scene->folds.size())});
      }
    }
    for (Fold& fold : scene->folds) {
      const bool is_order = fold.node->op == CoreOp::kMaximum || fold.node->op == CoreOp::kMinimum;
      fold.is_guarded = is_order && kLaneFloats.Contains(fold.node->dtype) && !stores;
      if (fold.is_guarded && scene->again == nullptr) {
        scene->again = std::make_unique<Label>();
        scene->resume = std::make_unique<Label>();
      }
    }
    scene->folds_in_registers = !scene->folds.empty() && AccumulatorsOf(*scene) <= kFoldRegisters;
  }

  void PlanFrame() {
    int offset = num_slots_ * 64;
    for (auto& [place, home] : homes_) {
      home = offset;
      offset += 64;
    }
    for (StageScene& scene : scenes_) {
      scene.accumulators = offset;
      if (!scene.folds_in_registers) offset += AccumulatorsOf(scene) * 64;
    }
    const auto address_of = [&](PlaceId place) {
      const auto [found, is_new] = addresses_.try_emplace(place, offset);
      if (is_new) offset += 8;
      return found->second;
    };
    for (StageScene& scene : scenes_) {
      for (Array& array : scene.loop.arrays) array.address = address_of(array.place);
      for (Scene* part : {&scene.kept, &scene.loop}) {
        for (size_t i = 0; i < part->homes.size(); ++i) {
          const JitNode& node = part->program->nodes[JitNodes::id(i)];
          if (node.kind == JitNode::Kind::kSingle) part->homes[JitNodes::id(i)] = homes_.at(node.place);
        }
      }
    }
    for (const JitRows::Element& load : rows_.loads) address_of(load.from);
    for (const JitRows::Stage& stage : rows_.stages) {
      for (const JitRows::Element& result : stage.results) address_of(result.to);
    }
    for (const JitRows::Moving& moving : rows_.moving) address_of(moving.place);
    rows_left_ = offset;
    frame_bytes_ = (offset + 8 + 63) / 64 * 64;
  }

  void Enter() {
    push(rbp);
    mov(rbp, rsp);
    for (const Reg64& reg : {rbx, r12, r13, r14, r15}) push(reg);
    sub(rsp, frame_bytes_);
    and_(rsp, -64);
    mov(rbx, rdi);
    mov(ptr[rsp + rows_left_], rsi);
    for (const auto& [place, address] : addresses_) {
      mov(rax, ptr[rbx + place.index * 8]);
      mov(ptr[rsp + address], rax);
    }
    // Sets the values that are the same for all rows.
    for (const JitRows::Stage& stage : rows_.stages) {
      for (const JitProgram* program : {&stage.kept, &stage.loop}) {
        for (const JitNode& node : program->nodes) {
          if (node.kind != JitNode::Kind::kSingle) continue;
          if (std::find(set_.begin(), set_.end(), node.place) != set_.end()) continue;
          const Xmm value = Scratch(0, BytesOf(node.dtype));
          mov(rdx, ptr[rbx + node.place.index * 8]);
          EmitBroadcast(node.dtype, value, rdx);
          vmovups(ptr[rsp + homes_.at(node.place)], value);
        }
      }
    }
  }

  void WriteKept(const Scene& scene) {
    LoadPinned(scene);
    for (const JitInstruction& instruction : scene.schedule.instructions) {
      const JitNode& node = scene.program->nodes[instruction.node];
      if (node.kind == JitNode::Kind::kStore && instruction.kind == JitInstruction::Kind::kStore) {
        vmovups(ptr[rsp + homes_.at(node.place)], RegisterOf(instruction.operands[0].reg, node.dtype));
      } else {
        WriteInstruction(scene, instruction, 0);
      }
    }
  }

  // Sets the mask, which calls do not keep.
  void SetMask(int64_t count) {
    mov(eax, static_cast<uint32_t>((uint64_t{1} << count) - 1));
    kmovw(k7, eax);
  }

  void StoreElement(const JitRows::Element& result) {
    const Xmm x = Register(0, BytesOf(result.dtype));
    vmovups(x, ptr[rsp + homes_.at(result.from)]);
    mov(rdx, ptr[rsp + addresses_.at(result.to)]);
    SetMask(1);
    EmitStore(result.dtype, ptr[rdx] | k7, x);
  }

  bool IsShort(const Fold& fold) const { return rows_.length * SizeOf(fold.node->dtype) <= kShortRunBytes; }
  // Short runs are folded into one vector.
  int WidthOf(const Fold& fold) const { return IsShort(fold) ? 1 : kMaxTurns; }

  int Index(const StageScene& scene, const Fold& fold, int k, bool is_guard) const {
    int index = 0;
    for (int f = 0; f < fold.number; ++f) index += kMaxTurns * (scene.folds[static_cast<size_t>(f)].is_guarded ? 2 : 1);
    return index + k + (is_guard ? kMaxTurns : 0);
  }
  // Returns the accumulator, in its register or brought into one.
  Xmm Accumulator(const StageScene& scene, const Fold& fold, int k, bool is_guard, int scratch) {
    const int index = Index(scene, fold, k, is_guard);
    if (scene.folds_in_registers) {
      return Register(NumRegisters(JitIsa::kAvx512) - kFoldRegisters + index, 64);
    }
    const Xmm reg = Scratch(scratch, 64);
    vmovups(reg, ptr[rsp + (scene.accumulators + index * 64)]);
    return reg;
  }
  void PutAccumulator(const StageScene& scene, const Fold& fold, int k, bool is_guard, const Xmm& value) {
    if (scene.folds_in_registers) return;
    vmovups(ptr[rsp + (scene.accumulators + Index(scene, fold, k, is_guard) * 64)], value);
  }

  void StartFolds(const StageScene& scene) {
    for (const Fold& fold : scene.folds) {
      for (int k = 0; k < WidthOf(fold); ++k) {
        const Xmm start = Accumulator(scene, fold, k, false, 0);
        vmovups(start, StartOf(*fold.node));
        PutAccumulator(scene, fold, k, false, start);
        if (!fold.is_guarded) continue;
        const Xmm guard = Accumulator(scene, fold, k, true, 0);
        vpxord(guard, guard, guard);
        PutAccumulator(scene, fold, k, true, guard);
      }
    }
  }

  void WriteFold(const StageScene& scene, const JitInstruction& instruction, int t, bool is_guarded, bool is_partial) {
    const JitNode* const node = &scene.loop.program->nodes[instruction.node];
    const auto found =
        std::find_if(scene.folds.begin(), scene.folds.end(), [&](const Fold& f) { return f.node == node; });
    const Fold& fold = *found;
    const Xmm x = RegisterOf(instruction.operands[0].reg, node->dtype);
    const int k = t % WidthOf(fold);
    // EmitOp may take the first three scratch registers.
    const Xmm accumulator = Accumulator(scene, fold, k, false, 3);
    Combine(*fold.node, is_guarded && fold.is_guarded, is_partial, accumulator, accumulator, x);
    PutAccumulator(scene, fold, k, false, accumulator);
    if (!is_guarded || !fold.is_guarded) return;
    const Xmm guard = Accumulator(scene, fold, k, true, 3);
    AddGuard(*fold.node, is_partial, guard, guard, x);
    PutAccumulator(scene, fold, k, true, guard);
  }

  void WriteTurn(const StageScene& scene, int t, bool is_guarded) {
    for (const JitInstruction& instruction : scene.loop.schedule.instructions) {
      const JitNode& node = scene.loop.program->nodes[instruction.node];
      if (node.kind == JitNode::Kind::kFold && instruction.kind == JitInstruction::Kind::kStore) {
        WriteFold(scene, instruction, t, is_guarded, scene.loop.is_partial);
      } else {
        WriteInstruction(scene.loop, instruction, t);
        if (node.call != nullptr && scene.loop.is_partial) SetMask(rows_.length % lanes());
      }
    }
  }

  // Lines of the next row: all stages together ask for each once.
  void Fetch(const StageScene& scene, int stage) {
    const int stages = static_cast<int>(scenes_.size());
    for (const JitRows::Moving& moving : rows_.moving) {
      if (!moving.is_fetched || moving.row_bytes <= 0) continue;
      const auto& arrays = scene.loop.arrays;
      const auto array =
          std::find_if(arrays.begin(), arrays.end(), [&](const Array& a) { return a.place == moving.place; });
      const int lines = std::max(1, kMaxTurns * lanes() * moving.element_bytes / 64);
      for (int line = stage * lines / stages; line < (stage + 1) * lines / stages; ++line) {
        Reg64 base = rax;
        if (array != arrays.end() && array->pointer >= 0) {
          base = Reg64(array->pointer);
        } else {
          mov(rax, ptr[rsp + addresses_.at(moving.place)]);
        }
        const int offset = static_cast<int>(moving.row_bytes) + line * 64;
        if (moving.element_bytes == 16) {
          lea(rax, ptr[base + r13 * 8]);
          prefetcht0(ptr[rax + r13 * 8 + offset]);
        } else {
          prefetcht0(ptr[base + r13 * moving.element_bytes + offset]);
        }
      }
    }
  }

  void WriteLoop(StageScene& scene, int stage) {
    LoadPointers(scene.loop);
    LoadPinned(scene.loop);
    WriteElements(scene, stage, true);
    for (const Fold& fold : scene.folds) FinishFold(scene, fold, true);
    if (scene.resume != nullptr) L(*scene.resume);
  }

  // The row that has NaN.
  void WriteAgain(StageScene& scene) {
    L(*scene.again);
    LoadPointers(scene.loop);
    LoadPinned(scene.loop);
    WriteElements(scene, -1, false);
    for (const Fold& fold : scene.folds) FinishFold(scene, fold, false);
    jmp(*scene.resume, T_NEAR);
  }

  // All elements of the row. The sums' identity is added where whole rows of lanes end, as there.
  void WriteElements(StageScene& scene, int stage, bool is_guarded) {
    StartFolds(scene);
    xor_(r13d, r13d);
    if (scene.loop.has_doubled_index) xor_(r15d, r15d);
    const int64_t turn = int64_t{kMaxTurns} * lanes();
    const int64_t whole = rows_.length / turn * turn;
    if (whole > 0) {
      Label again;
      align(32);
      L(again);
      if (stage >= 0) Fetch(scene, stage);
      for (int t = 0; t < kMaxTurns; ++t) WriteTurn(scene, t, is_guarded);
      add(r13, static_cast<int>(turn));
      if (scene.loop.has_doubled_index) add(r15, static_cast<int>(2 * turn));
      cmp(r13, static_cast<int>(whole));
      jl(again, T_NEAR);
    }
    for (const Fold& fold : scene.folds) {
      if (!IsShort(fold)) AddIdentity(scene, fold);
    }
    const int64_t left = rows_.length - whole;
    if (left > 0 && stage >= 0) Fetch(scene, stage);
    int t = 0;
    for (; (t + 1) * lanes() <= left; ++t) WriteTurn(scene, t, is_guarded);
    if (t * lanes() < left) {
      scene.loop.is_partial = true;
      SetMask(rows_.length % lanes());
      WriteTurn(scene, t, is_guarded);
      scene.loop.is_partial = false;
    }
  }

  void AddIdentity(const StageScene& scene, const Fold& fold) {
    if (fold.node->op != CoreOp::kAdd || !kLaneFloats.Contains(fold.node->dtype)) return;
    for (int k = 0; k < WidthOf(fold); ++k) {
      const Xmm x = Accumulator(scene, fold, k, false, 0);
      const Address zero = FloatConstant(fold.node->dtype, 0);
      fold.node->dtype == DType::kF64 ? vaddpd(x, x, zero) : vaddps(x, x, zero);
      PutAccumulator(scene, fold, k, false, x);
    }
  }

  // The accumulators to one element, in all lanes of the fold's home.
  void FinishFold(const StageScene& scene, const Fold& fold, bool is_guarded) {
    const bool guards = is_guarded && fold.is_guarded;
    const DType dtype = fold.node->dtype;
    // Registers of values are free here.
    Xmm v[kMaxTurns], sum[kMaxTurns];
    const int width = WidthOf(fold);
    for (int k = 0; k < width; ++k) {
      v[k] = Register(k, 64);
      vmovups(v[k], Accumulator(scene, fold, k, false, 3));
      if (!guards) continue;
      sum[k] = Register(kMaxTurns + k, 64);
      vmovups(sum[k], Accumulator(scene, fold, k, true, 3));
    }
    for (int half = width / 2; half >= 1; half /= 2) {
      for (int k = 0; k < half; ++k) {
        Combine(*fold.node, guards, false, v[k], v[k], v[k + half]);
        if (guards) AddGuard(*fold.node, false, sum[k], sum[k], sum[k + half]);
      }
    }
    const Xmm upper = Register(8, 64);
    IsShort(fold) ? FoldNeighbours(*fold.node, guards, v[0], upper) : FoldHalves(*fold.node, guards, v[0], upper);
    if (guards) {
      dtype == DType::kF64 ? vcmppd(k1, sum[0], sum[0], 3) : vcmpps(k1, sum[0], sum[0], 3);
      kortestw(k1, k1);
      jnz(*scene.again, T_NEAR);
    }
    const Xbyak::Zmm all(0);
    SizeOf(dtype) == 8 ? vbroadcastsd(all, Xmm(0)) : vbroadcastss(all, Xmm(0));
    vmovups(ptr[rsp + homes_.at(fold.node->place)], all);
  }

  const JitRows& rows_;
  const JitIsa isa_;
  std::map<PlaceId, int> homes_;      // single elements as vectors, in the frame
  std::map<PlaceId, int> addresses_;  // of arrays, in the frame
  std::vector<PlaceId> set_;          // places whose elements the rows set
  std::vector<StageScene> scenes_;
  int num_slots_ = 0, rows_left_ = 0, frame_bytes_ = 0;
};

}  // namespace

std::string CompileJitRows(const JitRows& rows, JitIsa isa, bool streams) {
  size_t nodes = 0;
  for (const JitRows::Stage& stage : rows.stages) nodes += stage.kept.nodes.size() + stage.loop.nodes.size();
  const size_t bytes = 16384 + nodes * 16 * 512;
  const JitBuffer buffer = MakeJitBuffer(bytes);
  Xbyak::ClearError();
  RowsCompiler compiler(rows, isa, streams, bytes, buffer.get());
  compiler.Write();
  if (Xbyak::GetError() != Xbyak::ERR_NONE) return "";
  return std::string(reinterpret_cast<const char*>(compiler.getCode()), compiler.getSize());
}

}  // namespace tensord::cpu

#else

namespace tensord::cpu {

std::string CompileJitRows(const JitRows& /*rows*/, JitIsa /*isa*/, bool /*streams*/) { return ""; }

}  // namespace tensord::cpu

#endif  // TENSORD_HAS_JIT
