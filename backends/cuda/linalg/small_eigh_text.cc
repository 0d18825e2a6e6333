#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_texts.h"
#include "backends/cuda/linalg/tournament_text.h"

namespace tensord::cuda {
namespace {

constexpr char kSmallEighWork[] = R"(struct Work {
  T a[kLead * kPlayers];
  T v[kHasVectors ? kLead * kPlayers : 1];
  R cosines[kPairs];
  T sines[kPairs];
  int firsts[kPairs], seconds[kPairs];
  int order[kN];
};
)";

// A number that is not finite makes the matrix zero. `bound` is the largest entry that is left beside the diagonal.
constexpr char kSmallEighLoad[] = R"(    __shared__ Work works[kPerWarp];
    Work& w = works[threadIdx.x / kGroup];
    R most = 0;
    int is_broken = 0;
    for (int e = lane; e < kLead * kPlayers; e += kGroup) {
      const int row = e % kLead, column = e / kLead;
      T x = Number(0, 0);
      if (row >= column && row < kN) {
        x = a[i * kN * kN + row + column * kN];
        if (!IsFinite(x)) is_broken = 1;
        if (row == column) x = Number(RealOf(x), 0);
        most = fmax(most, Most(x));
      }
      w.a[e] = x;
      if (kHasVectors) w.v[e] = Number(row == column && row < kN ? 1 : 0, 0);
    }
    const int exponent = ExponentOf(MostOver(kGroup, most));
    is_broken = MostOver(kGroup, is_broken);
    __syncwarp();
    R square = 0;
    for (int e = lane; e < kN * kN; e += kGroup) {
      const int row = e % kN, column = e / kN;
      if (row < column) continue;
      const T x = is_broken ? Number(0, 0) : Scaled(w.a[row + column * kLead], -exponent);
      w.a[row + column * kLead] = x;
      if (row > column) w.a[column + row * kLead] = Conj(x);
      square += row > column ? 2 * Square(x) : Square(x);
    }
    const R bound = sqrt(SumOver(kGroup, square)) * (R)((kIsSingle ? 0x1p-24 : 0x1p-53) / kN);
    __syncwarp();
)";

// A lane finds a pair's rotation; then each 2 x 2 block of two pairs is turned from both sides by one lane, and its
// conjugate transpose is a copy.
constexpr char kSmallEighSweeps[] = R"(    bool is_done = false;
    int rotations = 0;
    for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
      rotations = 0;
      for (int round = 0; round < kPlayers - 1; ++round) {
        R shift = 0;
        int p = 0, q = 0;
        if (lane < kPairs) {
          PairOf(lane, round, &p, &q);
          Rotation turn = {1, Number(0, 0), 0};
          const T g = w.a[p + q * kLead];
          const R size = Modulus(g);
          if (!is_done && size > bound) {
            turn = RotationOf(RealOf(w.a[p * (kLead + 1)]), RealOf(w.a[q * (kLead + 1)]), g, size);
            shift = turn.shift;
            ++rotations;
          }
          w.firsts[lane] = p;
          w.seconds[lane] = q;
          w.cosines[lane] = turn.c;
          w.sines[lane] = turn.z;
        }
        __syncwarp();
        for (int e = lane; e < kPairs * (kPairs - 1) / 2; e += kGroup) {
          const int one = e % kPairs, two = (one + 1 + e / kPairs) % kPairs;
          const T left = w.sines[one], right = w.sines[two];
          if (IsZero(left) && IsZero(right)) continue;
          const int r = w.firsts[one], s = w.seconds[one], t = w.firsts[two], u = w.seconds[two];
          T rt = w.a[r + t * kLead], ru = w.a[r + u * kLead], st = w.a[s + t * kLead], su = w.a[s + u * kLead];
          Rotate(w.cosines[two], right, &rt, &ru);
          Rotate(w.cosines[two], right, &st, &su);
          Rotate(w.cosines[one], Conj(left), &rt, &st);
          Rotate(w.cosines[one], Conj(left), &ru, &su);
          w.a[r + t * kLead] = rt;
          w.a[r + u * kLead] = ru;
          w.a[s + t * kLead] = st;
          w.a[s + u * kLead] = su;
          w.a[t + r * kLead] = Conj(rt);
          w.a[u + r * kLead] = Conj(ru);
          w.a[t + s * kLead] = Conj(st);
          w.a[u + s * kLead] = Conj(su);
        }
        if (lane < kPairs && shift != 0) {
          w.a[p * (kLead + 1)] = Number(RealOf(w.a[p * (kLead + 1)]) - shift, 0);
          w.a[q * (kLead + 1)] = Number(RealOf(w.a[q * (kLead + 1)]) + shift, 0);
          w.a[p + q * kLead] = w.a[q + p * kLead] = Number(0, 0);
        }
        for (int pair = 0; kHasVectors && lane < kN && pair < kPairs; ++pair) {
          if (IsZero(w.sines[pair])) continue;
          Rotate(w.cosines[pair], w.sines[pair], w.v + lane + w.firsts[pair] * kLead,
                 w.v + lane + w.seconds[pair] * kLead);
        }
        __syncwarp();
      }
      rotations = SumOver(kGroup, rotations);
      if (rotations == 0) is_done = true;
      if (__all_sync(0xffffffffu, is_done)) break;
    }
    if (!is_done && is_here && lane == 0) atomicMin(verdict, (u64)i << 24 | (u64)rotations);
)";

constexpr char kSmallEighWrite[] = R"(    if (lane < kN) {
      const R value = RealOf(w.a[lane * (kLead + 1)]);
      int place = 0;
      for (int k = 0; k < kN; ++k) {
        const R other = RealOf(w.a[k * (kLead + 1)]);
        if (other < value || (other == value && k < lane)) ++place;
      }
      w.order[place] = lane;
      if (is_here) values[i * kN + place] = is_broken ? RealOf(NotANumber()) : ldexp(value, exponent);
    }
    __syncwarp();
    for (int e = lane; kHasVectors && e < kN * kN && is_here; e += kGroup) {
      vectors[i * kN * kN + e] = is_broken ? NotANumber() : w.v[e % kN + w.order[e / kN] * kLead];
    })";

}  // namespace

KernelText SmallEighText(const SmallMatrices& of, bool has_vectors, int most_sweeps) {
  const int64_t players = of.rows + of.rows % 2;
  MatrixText text(of.dtype, of.most_blocks);
  text.Add(absl::StrCat("enum : int { kN = ", of.rows, ", kPlayers = ", players, ", kPairs = ", players / 2,
                        ", kLead = ", players | 1, ", kHasVectors = ", has_vectors ? 1 : 0,
                        ", kMostSweeps = ", most_sweeps, ", kGroup = ", of.group(),
                        ", kPerWarp = ", MatrixText::kWarp / of.group(), " };\n"));
  text.AddGroup();
  text.Add(kTournamentText);
  text.Add(kSmallEighWork);
  text.EachByGroup("diagonalize",
                   absl::StrCat("const T* __restrict__ a, R* __restrict__ values, ",
                                has_vectors ? "T* __restrict__ vectors, " : "", "u64* verdict"),
                   of.batch, of.group(),
                   absl::StrCat(has_vectors ? "" : "    T* const vectors = 0;\n", kSmallEighLoad, kSmallEighSweeps,
                                kSmallEighWrite));
  return text.Take();
}

}  // namespace tensord::cuda
