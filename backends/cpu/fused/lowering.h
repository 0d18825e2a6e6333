#ifndef TENSORD_BACKENDS_CPU_FUSED_LOWERING_H_
#define TENSORD_BACKENDS_CPU_FUSED_LOWERING_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "backends/cpu/fused/plan.h"
#include "backends/cpu/fused/stages.h"
#include "engine/fusion/micro_program.h"

namespace tensord::cpu {

// Turns the instructions of a micro program into the steps of a plan, stage by stage. It decides the places of values
// kept for later stages (stages.h defines them), the way in which operands that are single elements or rows meet tiles,
// and the moments at which operands are read and results written. Instructions keep their order, so that results may
// lie in the places of operands (InPlacePairs).
class FusedLowering {
 public:
  // `space` need not be cut; then the steps are for any cut. Borrows both.
  FusedLowering(const MicroProgram& program, const FusedSpace& space, bool is_cut, bool is_split);

  // Fills all of the plan but its space and sizes.
  absl::Status Lower(FusedPlan* plan);

 private:
  using Steps = std::vector<FusedStep>;

  MicroLevel LevelOf(int32_t value) const;
  const MicroInstruction& At(int32_t value) const { return program_.instructions[static_cast<size_t>(value)]; }
  bool IsTheSameAlongRows(int32_t value) const;
  bool IsFull(int32_t value) const { return LevelOf(value) == MicroLevel::kFull; }
  static bool IsLeaf(const MicroInstruction& instruction);

  void FindLive();
  void AddResults();
  void FindStages();
  FusedStages StagesWith(bool is_large) const;

  FusedPlace::Kind OwnKind() const { return is_split_ ? FusedPlace::Kind::kGroup : FusedPlace::Kind::kTask; }
  PlaceId AddPlace(FusedPlace::Kind kind, int64_t element_bytes, int64_t elements);
  int64_t TouchedBytes(const MicroAccess& access, DType dtype) const;
  AccessId AddAccess(const MicroAccess& access, MicroLevel level, DType dtype, int32_t operand, int32_t result);
  FusedAccess::Crossing CrossingOf(const Walk& walk, bool tail) const;
  bool NeedsBuffer(const FusedAccess& access) const;

  absl::Status LowerUniform();
  absl::Status LowerKept(int32_t stage);
  absl::Status LowerTile(int32_t stage);
  static FusedStep Copy(PlaceId from, PlaceId to, int64_t element_bytes);
  void LowerLeaf(int32_t value, MicroLevel level, Steps* steps);
  FusedStep StepOf(int32_t value) const;
  absl::Status Compute(int32_t value, MicroLevel level, int32_t stage, PlaceId out, Steps* steps);
  // Returns the value as an array as long as values of `level` are, or its single element; no place where it has none.
  PlaceId ArrayOf(int32_t value, MicroLevel level, int32_t stage, Steps* steps);
  PlaceId SingleOf(int32_t value, MicroLevel level) const;
  PlaceId Repeated(int32_t value, MicroLevel level, int32_t stage);
  void StoreLowerLevels(int32_t value, Steps* stores);
  void StoreFull(int32_t value, int32_t stage);

  const MicroProgram& program_;
  const FusedSpace& space_;
  const bool is_cut_;
  const bool is_split_;
  FusedPlan* plan_ = nullptr;

  // True for needed values, by value.
  std::vector<bool> live_;
  std::vector<PlaceId> place_;     // kUniform and kKept: its own; kFull: in the stage that is being lowered
  std::vector<PlaceId> row_;       // kUniform: repeated over the box
  std::vector<PlaceId> tile_;      // kUniform, kKept: repeated over a tile…
  std::vector<int32_t> repeated_;  // …by the steps of that stage, the last one that has them
  std::vector<std::vector<int32_t>> results_;
  std::vector<AccessId> stores_;  // by result
  FusedStages stages_;
};

}  // namespace tensord::cpu

#endif  // TENSORD_BACKENDS_CPU_FUSED_LOWERING_H_
