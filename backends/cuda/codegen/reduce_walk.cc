#include "backends/cuda/codegen/reduce_walk.h"

#include <bit>
#include <cmath>

#include "backends/cuda/codegen/values.h"

namespace tensord {
namespace {

// Terms that a lane adds one after the other before it begins a sum of sums.
constexpr int64_t kLongestChain = 64;
// Instructions up to which a loop is unrolled, so that several reads are on their way.
constexpr int64_t kUnrolledTurn = 64;

bool HasAccess(const MicroInstruction& instruction) {
  return instruction.kind == MicroKind::kLoad || instruction.kind == MicroKind::kIota;
}

// Appends the neighbour's part to an address.
std::string OfNeighbour(const std::string& address, int64_t stride) {
  if (stride == 0) return address;
  return stride == 1 ? absl::StrCat(address, " + q") : absl::StrCat(address, " + q * ", CudaNeighbourStride(stride));
}

}  // namespace

CudaReduceWalk::CudaReduceWalk(CudaWriter* writer, const CudaReducePlan* plan)
    : writer_(*writer),
      program_(writer->program()),
      plan_(*plan),
      type_(CudaIndex("j", program_, CudaIndex::Axes::kReduced).type()),
      suffix_(type_ == "u32" ? "u" : "ull") {
  int64_t stride = 1;
  for (const MicroAxis& axis : program_.axes) {
    dense_.strides.push_back(stride);
    stride *= axis.size;
  }
}

CudaReading CudaReduceWalk::ReadingOf(const MicroInstruction& load) const {
  return CudaReadingOf(load, plan_.width, writer_.options().pointer_alignment_bytes);
}

bool CudaReduceWalk::StoresVector(size_t result) const {
  const int64_t bytes = SizeOf(writer_.Computed(result).dtype) * plan_.reduced_width();
  return plan_.reduced_width() > 1 && writer_.options().pointer_alignment_bytes % bytes == 0;
}

// ---- Places ----

void CudaReduceWalk::DeclarePlaces() {
  if (plan_.carry == CudaCarry::kNone) return;
  int64_t offset = plan_.join_bytes;
  for (size_t place = 0; place < plan_.place_dtypes.size(); ++place) {
    const DType dtype = plan_.place_dtypes[place];
    const absl::string_view type = CudaType(dtype);
    UseCudaType(dtype, &writer_.prelude());
    if (plan_.carry == CudaCarry::kRegisters) {
      writer_.Line(type, " c", place, "[", plan_.items(), "];");
    } else {
      writer_.Line(type, "* const c", place, " = reinterpret_cast<", type, "*>(tensord_shared + ", offset,
                   ") + threadIdx.x;");
      offset += plan_.items() * plan_.threads() * SizeOf(dtype);
    }
  }
}

std::string CudaReduceWalk::Place(int32_t v) const {
  const int64_t width = plan_.reduced_width();
  std::string item = width == 1 ? "n" : absl::StrCat("n * ", width, " + q");
  if (plan_.carry == CudaCarry::kShared) {
    item = absl::StrCat(width == 1 ? "n" : absl::StrCat("(", item, ")"), " * ", plan_.threads());
  }
  return absl::StrCat("c", plan_.places[static_cast<size_t>(v)], "[", item, "]");
}

// ---- Loops ----

void CudaReduceWalk::Pass(const CudaPass& pass, CudaIndex* kept, bool has_guard) {
  kept_ = kept;
  has_guard_ = has_guard;
  for (int32_t v : pass.reductions) DeclareAccumulator("a", v, plan_.kept_width());
  if (plan_.reduced == 0 || (pass.reductions.empty() && pass.results.empty())) return;
  if (plan_.carry != CudaCarry::kNone) {
    TurnLoop(pass);
  } else {
    IndexLoop(pass);
  }
}

// Prints the loop in which a thread numbers its turns, to find carried values again.
void CudaReduceWalk::TurnLoop(const CudaPass& pass) {
  const int64_t width = plan_.reduced_width(), at_once = plan_.lanes * width;
  if (plan_.carry == CudaCarry::kRegisters) writer_.Raw("#pragma unroll");
  writer_.Open("for (int n = 0; n < ", plan_.turns(), "; ++n)");
  if (ReadsIndex(pass)) {
    writer_.Line("const ", type_, " j = lane", width == 1 ? "" : absl::StrCat(" * ", width, suffix_), " + n * ",
                 at_once, suffix_, ";");
  }
  if (plan_.reduced % at_once != 0) writer_.Line("if (j >= ", plan_.reduced, suffix_, ") break;");
  Point(pass, "a");
  writer_.Close();
}

// Tells whether a pass does anything but go through what is carried.
bool CudaReduceWalk::ReadsIndex(const CudaPass& pass) const {
  if (plan_.reduced <= 1) return false;
  if (plan_.reduced % (plan_.lanes * plan_.reduced_width()) != 0 || !pass.results.empty()) return true;
  for (int32_t v : pass.values) {
    if (!HasAccess(At(v))) continue;
    for (size_t d = 0; d < program_.axes.size(); ++d) {
      if (program_.axes[d].is_reduced && At(v).access.strides[d] != 0) return true;
    }
  }
  return false;
}

void CudaReduceWalk::IndexLoop(const CudaPass& pass) {
  const int64_t width = plan_.reduced_width(), at_once = plan_.lanes * width;
  std::string begin = width == 1 ? "lane" : absl::StrCat("lane * ", width, suffix_);
  std::string end = absl::StrCat(plan_.reduced, suffix_);
  if (plan_.splits > 1) {
    writer_.Line("const ", type_, " begin = split * ", plan_.split_length, suffix_, ";");
    writer_.Line("const ", type_, " end = begin + ", plan_.split_length, suffix_, " < ", end, " ? begin + ",
                 plan_.split_length, suffix_, " : ", end, ";");
    begin = absl::StrCat("begin + ", begin);
    end = "end";
  }
  const int64_t instructions = static_cast<int64_t>(pass.values.size()) * plan_.width;
  const auto open = [&](absl::string_view from, absl::string_view to) {
    if (plan_.width > 1 && instructions <= kUnrolledTurn) writer_.Raw("#pragma unroll 4");
    writer_.Open("for (", type_, " j = ", from, "; j < ", to, "; j += ", at_once, suffix_, ")");
  };
  if (plan_.items() <= kLongestChain || pass.reductions.empty()) {
    open(begin, end);
    Point(pass, "a");
    writer_.Close();
    return;
  }
  const double root = std::sqrt(static_cast<double>(plan_.items()));
  const int64_t chain = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(root)));
  const int64_t step = chain / width * at_once;
  writer_.Open("for (", type_, " from = ", begin, "; from < ", end, "; from += ", step, suffix_, ")");
  writer_.Line("const ", type_, " to = from + ", step, suffix_, " < ", end, " ? from + ", step, suffix_, " : ", end,
               ";");
  for (int32_t v : pass.reductions) DeclareAccumulator("p", v, plan_.kept_width());
  open("from", "to");
  Point(pass, "p");
  writer_.Close();
  OpenNeighbours(plan_.kept_width());
  for (int32_t v : pass.reductions) Accumulate(Accumulator("a", v), v, Accumulator("p", v));
  CloseNeighbours(plan_.kept_width());
  writer_.Close();
}

void CudaReduceWalk::OpenNeighbours(int64_t width) {
  if (width == 1) return;
  writer_.Raw("#pragma unroll");
  writer_.Open("for (int q = 0; q < ", width, "; ++q)");
}

void CudaReduceWalk::CloseNeighbours(int64_t width) {
  if (width > 1) writer_.Close();
}

// ---- A point, or neighbouring ones ----

void CudaReduceWalk::Point(const CudaPass& pass, absl::string_view accumulators) {
  // Each loop declares the coordinates that it needs.
  reduced_.emplace("j", program_, CudaIndex::Axes::kReduced);
  const Addresses addresses = DeclareAddresses(pass);
  const std::string stored = pass.results.empty() ? "" : Address(dense_);
  for (const std::string& line : reduced_->TakeDeclarations()) writer_.Line(line);
  BeforeNeighbours(pass, addresses);
  OpenNeighbours(plan_.width);
  if (plan_.kept_width() > 1) KeptValues(pass);
  for (int32_t v : pass.carried) {
    writer_.Line("const ", CudaType(At(v).dtype), " v", v, " = ", Place(v), ";");
  }
  Values(pass, addresses);
  for (int32_t v : pass.reductions) {
    const DType dtype = At(v).dtype;
    Accumulate(Accumulator(accumulators, v), v,
               CudaConvert(dtype, CudaAccumulator(dtype), absl::StrCat("v", At(v).operands[0]), &writer_.prelude()));
  }
  Store(pass, stored);
}

std::string CudaReduceWalk::Address(const MicroAccess& access) {
  const absl::string_view cast = CudaIndexCast(program_, access);
  return CudaSum(access.offset, kept_->Offset(access, cast), reduced_->Offset(access, cast));
}

CudaReduceWalk::Addresses CudaReduceWalk::DeclareAddresses(const CudaPass& pass) {
  Addresses addresses(program_.instructions.size());
  for (int32_t v : pass.values) {
    if (HasAccess(At(v))) addresses[static_cast<size_t>(v)] = Address(At(v).access);
  }
  return addresses;
}

// Prints the shared part of the neighbours: vectors read and written, elements that are the same for all.
void CudaReduceWalk::BeforeNeighbours(const CudaPass& pass, const Addresses& addresses) {
  if (plan_.width == 1) return;
  for (int32_t v : pass.values) {
    const MicroInstruction& instruction = At(v);
    const std::string& address = addresses[static_cast<size_t>(v)];
    if (!HasAccess(instruction)) continue;
    const CudaReading reading = ReadingOf(instruction);
    if (reading == CudaReading::kOnce) writer_.Value(v, address);
    if (reading == CudaReading::kVector) {
      writer_.prelude().Use("Vector");
      UseCudaType(instruction.dtype, &writer_.prelude());
      writer_.Line("const Vector<", CudaStorage(instruction.dtype), ", ", plan_.width, "> w", v, " = LoadVector<",
                   plan_.width, ">(t", instruction.tensor, " + ", address, ");");
    }
  }
  for (size_t r : pass.results) {
    if (!StoresVector(r)) continue;
    writer_.prelude().Use("Vector");
    writer_.Line("Vector<", CudaStorage(writer_.Computed(r).dtype), ", ", plan_.width, "> y", r, ";");
  }
}

void CudaReduceWalk::Values(const CudaPass& pass, const Addresses& addresses) {
  for (int32_t v : pass.values) {
    const MicroInstruction& instruction = At(v);
    const std::string& address = addresses[static_cast<size_t>(v)];
    if (plan_.width == 1 || !HasAccess(instruction)) {
      writer_.Value(v, address);
    } else {
      const CudaReading reading = ReadingOf(instruction);
      if (reading == CudaReading::kEach) writer_.Value(v, OfNeighbour(address, instruction.access.strides[0]));
      if (reading == CudaReading::kVector) {
        writer_.Line("const ", CudaType(instruction.dtype), " v", v, " = ",
                     CudaLoaded(instruction.dtype, absl::StrCat("w", v, ".at[q]")), ";");
      }
    }
    if (IsCarried(v)) writer_.Line(Place(v), " = v", v, ";");
  }
}

// Prints what the points of a neighbouring column need of its kept values.
void CudaReduceWalk::KeptValues(const CudaPass& pass) {
  std::vector<int32_t> targets;
  for (int32_t v : pass.reductions) targets.push_back(At(v).operands[0]);
  const std::vector<bool> needed = NeededValues(program_, targets);
  for (size_t v = 0; v < needed.size(); ++v) {
    const MicroInstruction& instruction = program_.instructions[v];
    if (!needed[v] || instruction.level != MicroLevel::kKept) continue;
    writer_.Value(static_cast<int32_t>(v),
                  HasAccess(instruction) ? KeptAddress(program_, instruction.access, plan_.kept_width(), kept_) : "");
  }
}

void CudaReduceWalk::Store(const CudaPass& pass, const std::string& address) {
  const auto guarded = [this](auto print) {
    if (has_guard_) writer_.Open("if (is_there)");
    print();
    if (has_guard_) writer_.Close();
  };
  std::vector<size_t> vectors, elements;
  for (size_t r : pass.results) (StoresVector(r) ? vectors : elements).push_back(r);
  for (size_t r : vectors) {
    writer_.Line("y", r,
                 ".at[q] = ", CudaStored(writer_.Computed(r).dtype, absl::StrCat("v", program_.results[r].value)), ";");
  }
  if (!elements.empty()) {
    guarded([&] {
      for (size_t r : elements) writer_.StoreResult(r, plan_.width == 1 ? address : OfNeighbour(address, 1));
    });
  }
  CloseNeighbours(plan_.width);
  if (vectors.empty()) return;
  guarded([&] {
    for (size_t r : vectors) writer_.Line("StoreVector(r", r, " + ", address, ", y", r, ");");
  });
}

std::string CudaReduceWalk::KeptAddress(const MicroProgram& program, const MicroAccess& access, int64_t kept_width,
                                        CudaIndex* kept) {
  const std::string address = CudaSum(access.offset, kept->Offset(access, CudaIndexCast(program, access)), "0");
  return kept_width == 1 ? address : OfNeighbour(address, access.strides[0]);
}

// ---- Accumulators ----

void CudaReduceWalk::DeclareAccumulator(absl::string_view prefix, int32_t v, int64_t width) {
  const DType dtype = At(v).dtype;
  UseCudaType(CudaAccumulator(dtype), &writer_.prelude());
  const std::string neutral = CudaNeutral(At(v).reduce, dtype, &writer_.prelude());
  if (width == 1) {
    writer_.Line(CudaType(CudaAccumulator(dtype)), " ", prefix, v, " = ", neutral, ";");
    return;
  }
  std::string all = neutral;
  for (int64_t q = 1; q < width; ++q) absl::StrAppend(&all, ", ", neutral);
  writer_.Line(CudaType(CudaAccumulator(dtype)), " ", prefix, v, "[", width, "] = {", all, "};");
}

void CudaReduceWalk::Accumulate(const std::string& accumulator, int32_t v, const std::string& x) {
  const std::string combiner = CudaCombiner(At(v).reduce, At(v).dtype, &writer_.prelude());
  writer_.Line(accumulator, " = ", combiner, "(", accumulator, ", ", x, ");");
}

std::string CudaReduceWalk::Accumulator(absl::string_view prefix, int32_t v) const {
  return absl::StrCat(prefix, v, plan_.kept_width() == 1 ? "" : "[q]");
}

}  // namespace tensord
