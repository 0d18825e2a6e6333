#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_texts.h"
#include "backends/cuda/linalg/tournament_text.h"

namespace tensord::cuda {
namespace {

// `left` is W = A V while columns are turned, and then the left vectors, of which `order` says which is where.
constexpr char kSmallSvdWork[] = R"(struct Work {
  T left[kLead * kWide];
  T right[kHasVectors ? kRightLead * kK : 1];
  R values[kK];
  T shares[kGroup];
  int order[kWide];
};
)";

constexpr char kSmallSvdLoad[] = R"(    __shared__ Work works[kPerWarp];
    Work& w = works[threadIdx.x / kGroup];
    R most = 0;
    int is_broken = 0;
    for (int e = lane; e < kM * kN; e += kGroup) {
      const T x = a[i * kM * kN + e];
      const int row = e % kM, column = e / kM;
      w.left[kTurns ? column + row * kLead : row + column * kLead] = kTurns ? Conj(x) : x;
      if (!IsFinite(x)) is_broken = 1;
      most = fmax(most, Most(x));
    }
    for (int e = lane; kHasVectors && e < kRightLead * kK; e += kGroup) {
      w.right[e] = Number(e % kRightLead == e / kRightLead ? 1 : 0, 0);
    }
    const int exponent = ExponentOf(MostOver(kGroup, most));
    is_broken = MostOver(kGroup, is_broken);
    __syncwarp();
    for (int e = lane; e < kLong * kK; e += kGroup) {
      T* x = w.left + e % kLong + e / kLong * kLead;
      *x = is_broken ? Number(0, 0) : Scaled(*x, -exponent);
    }
    __syncwarp();
)";

// kShare lanes have a pair of columns, and its rows by turns.
constexpr char kSmallSvdSweeps[] = R"(    const R tolerance = (R)((kIsSingle ? 0x1p-23 : 0x1p-52) * sqrt((f64)kLong));
    const R null = (R)(kIsSingle ? 1e-15 : 1e-140);  // the length of a column that is taken for zero
    const int part = lane % kShare, pair = lane / kShare;
    bool is_done = false;
    int rotations = 0;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      rotations = 0;
      for (int round = 0; round < kPlayers - 1; ++round) {
        int p = 0, q = 0;
        PairOf(pair, round, &p, &q);
        const bool plays = !is_done && pair < kPairs && q < kK;
        R alpha = 0, beta = 0;
        T g = Number(0, 0);
        for (int r = part; plays && r < kLong; r += kShare) {
          const T x = w.left[r + p * kLead], y = w.left[r + q * kLead];
          alpha += Square(x);
          beta += Square(y);
          g = Sum(g, Product(Conj(x), y));
        }
        alpha = SumOver(kShare, alpha);
        beta = SumOver(kShare, beta);
        g = TotalOver(kShare, g);
        const R size = Modulus(g), first = sqrt(alpha), second = sqrt(beta);
        if (plays && first > null && second > null && size > tolerance * first * second) {
          const Rotation turn = RotationOf(alpha, beta, g, size);
          const bool swaps = beta > alpha;
          if (part == 0) ++rotations;
          for (int r = part; r < kLong; r += kShare) {
            T x = w.left[r + p * kLead], y = w.left[r + q * kLead];
            Rotate(turn.c, turn.z, &x, &y);
            w.left[r + p * kLead] = swaps ? y : x;
            w.left[r + q * kLead] = swaps ? x : y;
          }
          for (int r = part; kHasVectors && r < kK; r += kShare) {
            T x = w.right[r + p * kRightLead], y = w.right[r + q * kRightLead];
            Rotate(turn.c, turn.z, &x, &y);
            w.right[r + p * kRightLead] = swaps ? y : x;
            w.right[r + q * kRightLead] = swaps ? x : y;
          }
        }
        __syncwarp();
      }
      rotations = SumOver(kGroup, rotations);
      if (rotations == 0) is_done = true;
      if (__all_sync(0xffffffffu, is_done)) break;
    }
    if (!is_done && is_here && lane == 0) atomicMin(verdict, (u64)i << 24 | (u64)rotations);
)";

constexpr char kSmallSvdOrder[] = R"(    R value = 0;
    for (int r = 0; lane < kK && r < kLong; ++r) value += Square(w.left[r + lane * kLead]);
    value = sqrt(value);
    if (lane < kK) w.values[lane] = value;
    if (lane >= kK && lane < kWide) w.order[lane] = lane;
    __syncwarp();
    if (lane < kK) {
      int place = 0;
      for (int k = 0; k < kK; ++k) {
        if (w.values[k] > value || (w.values[k] == value && k < lane)) ++place;
      }
      w.order[place] = lane;
      if (is_here) values[i * kK + place] = is_broken ? RealOf(NotANumber()) : ldexp(value, exponent);
    }
    __syncwarp();
)";

// Lengths become 1, and the places from `count` on new columns.
constexpr char kSmallSvdComplete[] = R"(    const int count = SumOver(kGroup, lane < kK && value > null ? 1 : 0);
    for (int place = 0; place < kWide; ++place) {
      T* column = w.left + w.order[place] * kLead;
      if (place < count && lane < kLong) {
        const R length = w.values[w.order[place]];
        column[lane] = Number(RealOf(column[lane]) / length, ImagOf(column[lane]) / length);
      }
      __syncwarp();
      const bool is_new = place >= count;
      if (!__any_sync(0xffffffffu, is_new)) continue;
      R rest = lane < kLong ? 1 : -1;
      for (int k = 0; lane < kLong && k < place; ++k) rest -= Square(w.left[lane + w.order[k] * kLead]);
      const R most_rest = MostOver(kGroup, rest);
      const int axis = kGroup - MostOver(kGroup, rest == most_rest ? kGroup - lane : 0);
      T x = Number(lane == axis ? 1 : 0, 0);
      for (int turn = 0; turn < 2; ++turn) {
        w.shares[lane] = x;
        __syncwarp();
        T share = Number(0, 0);
        for (int r = 0; lane < place && r < kLong; ++r) {
          share = Sum(share, Product(Conj(w.left[r + w.order[lane] * kLead]), w.shares[r]));
        }
        __syncwarp();
        w.shares[lane] = share;
        __syncwarp();
        for (int k = 0; lane < kLong && k < place; ++k) {
          x = MinusProduct(x, w.left[lane + w.order[k] * kLead], w.shares[k]);
        }
        __syncwarp();
      }
      const R length = sqrt(SumOver(kGroup, Square(x)));
      if (is_new && lane < kLong) column[lane] = Number(RealOf(x) / length, ImagOf(x) / length);
      __syncwarp();
    }
)";

constexpr char kSmallSvdWrite[] = R"(    for (int e = lane; e < kM * kColumns && is_here; e += kGroup) {
      const int row = e % kM, column = w.order[e / kM];
      const T x = kTurns ? w.right[row + column * kRightLead] : w.left[row + column * kLead];
      u[i * kM * kColumns + e] = is_broken ? NotANumber() : x;
    }
    for (int e = lane; e < kRows * kN && is_here; e += kGroup) {
      const int row = w.order[e % kRows], column = e / kRows;
      const T x = kTurns ? w.left[column + row * kLead] : w.right[column + row * kRightLead];
      vh[i * kRows * kN + e] = is_broken ? NotANumber() : Conj(x);
    })";

}  // namespace

KernelText SmallSvdText(const SmallMatrices& of, const SmallSvdVectors& vectors, int most_sweeps) {
  const int64_t k = of.shorter(), players = k + k % 2, pairs = players / 2;
  const bool turns = of.rows<of.columns, has_vectors = vectors.u_columns> 0;
  const int64_t share = of.group() / static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(pairs)));
  MatrixText text(of.dtype, of.most_blocks);
  text.Add(absl::StrCat("enum : int { kM = ", of.rows, ", kN = ", of.columns, ", kK = ", k, ", kLong = ", of.longer(),
                        ", kTurns = ", turns ? 1 : 0, ", kColumns = ", vectors.u_columns, ", kRows = ", vectors.vh_rows,
                        ", kWide = ", std::max(k, turns ? vectors.vh_rows : vectors.u_columns),
                        ", kLead = ", of.longer() | 1, ", kRightLead = ", k | 1,
                        ", kHasVectors = ", has_vectors ? 1 : 0, ", kPlayers = ", players, ", kPairs = ", pairs,
                        ", kShare = ", share, ", kMostSweeps = ", most_sweeps, ", kGroup = ", of.group(),
                        ", kPerWarp = ", MatrixText::kWarp / of.group(), " };\n"));
  text.AddGroup();
  text.Add(kTournamentText);
  text.Add(kSmallSvdWork);
  text.EachByGroup("decompose",
                   has_vectors ? "const T* __restrict__ a, T* __restrict__ u, R* __restrict__ values, "
                                 "T* __restrict__ vh, u64* verdict"
                               : "const T* __restrict__ a, R* __restrict__ values, u64* verdict",
                   of.batch, of.group(),
                   absl::StrCat(kSmallSvdLoad, kSmallSvdSweeps, kSmallSvdOrder, has_vectors ? kSmallSvdComplete : "",
                                has_vectors ? kSmallSvdWrite : ""));
  return text.Take();
}

}  // namespace tensord::cuda
