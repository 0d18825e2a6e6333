#ifndef TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_WALK_H_
#define TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_WALK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "backends/cuda/codegen/index.h"
#include "backends/cuda/codegen/reduce_plan.h"
#include "backends/cuda/codegen/vectors.h"
#include "backends/cuda/codegen/writer.h"

namespace tensord {

// The walk of a thread over its reduced indices, as text: the loop of each pass, with what a thread carries from one to
// the next. Around it a launch has declared `lane`, `split` where there are splits, and the kept index. Names:
// accumulator of reduction k "a<k>", place k "c<k>", neighbour "q".
class CudaReduceWalk {
 public:
  // Borrows both.
  CudaReduceWalk(CudaWriter* writer, const CudaReducePlan* plan);

  absl::string_view type() const { return type_; }  // of reduced indices

  // Declares the places of what is carried; in shared memory they are behind what joining takes.
  void DeclarePlaces();
  // Prints the accumulators of a pass and its loop. `kept` is the launch's kept index; with a guard only threads store
  // for which `is_there` holds.
  void Pass(const CudaPass& pass, CudaIndex* kept, bool has_guard);

  // Opens and closes the loop over neighbours, where there are some.
  void OpenNeighbours(int64_t width);
  void CloseNeighbours(int64_t width);

  // Declares the accumulator of a reduction with its neutral element; `width` of them as an array.
  void DeclareAccumulator(absl::string_view prefix, int32_t v, int64_t width);
  // "a7 = AddReal(a7, x);"
  void Accumulate(const std::string& accumulator, int32_t v, const std::string& x);
  // Returns the accumulator of neighbour q.
  std::string Accumulator(absl::string_view prefix, int32_t v) const;

  // Returns the index of a load or an iota at a kept index, in the loop over kept neighbours if there is one.
  static std::string KeptAddress(const MicroProgram& program, const MicroAccess& access, int64_t kept_width,
                                 CudaIndex* kept);

 private:
  // The index of a load or an iota at a point, without its neighbour; by value.
  using Addresses = std::vector<std::string>;

  const MicroInstruction& At(int32_t v) const { return program_.instructions[static_cast<size_t>(v)]; }
  bool IsCarried(int32_t v) const {
    return plan_.carry != CudaCarry::kNone && plan_.places[static_cast<size_t>(v)] >= 0;
  }
  CudaReading ReadingOf(const MicroInstruction& load) const;
  std::string Place(int32_t v) const;
  std::string Address(const MicroAccess& access);
  void TurnLoop(const CudaPass& pass);
  bool ReadsIndex(const CudaPass& pass) const;
  void IndexLoop(const CudaPass& pass);
  void Point(const CudaPass& pass, absl::string_view accumulators);
  Addresses DeclareAddresses(const CudaPass& pass);
  void BeforeNeighbours(const CudaPass& pass, const Addresses& addresses);
  void Values(const CudaPass& pass, const Addresses& addresses);
  void KeptValues(const CudaPass& pass);
  void Store(const CudaPass& pass, const std::string& address);
  bool StoresVector(size_t result) const;

  CudaWriter& writer_;
  const MicroProgram& program_;
  const CudaReducePlan& plan_;
  const absl::string_view type_;
  const absl::string_view suffix_;  // of unsigned literals of that type
  MicroAccess dense_;               // of results with an element a point
  CudaIndex* kept_ = nullptr;       // of the launch that is being printed
  bool has_guard_ = false;
  std::optional<CudaIndex> reduced_;
};

}  // namespace tensord

#endif  // TENSORD_BACKENDS_CUDA_CODEGEN_REDUCE_WALK_H_
