#include "absl/strings/str_cat.h"
#include "backends/cuda/linalg/matrix_text.h"
#include "backends/cuda/linalg/small_texts.h"

namespace tensord::cuda {
namespace {

constexpr char kSmallQrWork[] = R"(struct Work {
  T a[kLead * kWide];
  T tau[kK];
};
)";

// In place of the matrix, which is scaled where its numbers are far from ordinary ones.
constexpr char kSmallQrFactor[] = R"(    __shared__ Work works[kPerWarp];
    Work& w = works[threadIdx.x / kGroup];
    R most = 0;
    int is_broken = 0;
    for (int e = lane; e < kM * kN; e += kGroup) {
      const T x = a[i * kM * kN + e];
      w.a[e % kM + e / kM * kLead] = x;
      if (!IsFinite(x)) is_broken = 1;
      most = fmax(most, Most(x));
    }
    most = MostOver(kGroup, most);
    is_broken = MostOver(kGroup, is_broken);
    int exponent = is_broken ? 0 : ExponentOf(most);
    if (exponent > -kOrdinary && exponent < kOrdinary) exponent = 0;
    for (int e = lane; e < kM * kN && exponent != 0; e += kGroup) {
      w.a[e % kM + e / kM * kLead] = Scaled(w.a[e % kM + e / kM * kLead], -exponent);
    }
    __syncwarp();
    for (int k = 0; k < kK; ++k) {
      T* column = w.a + k * kLead;
      const T entry = lane >= k && lane < kM ? column[lane] : Number(0, 0);
      const int column_exponent = ExponentOf(MostOver(kGroup, Most(entry)));
      const T mine = Scaled(entry, -column_exponent), alpha = Scaled(column[k], -column_exponent);
      const R below = SumOver(kGroup, lane > k ? Square(mine) : 0);
      T tau = Number(0, 0), reflector = Number(0, 0), diagonal = column[k];
      if (!(below == 0 && ImagOf(alpha) == 0)) {
        const R beta = -copysign(sqrt(Square(alpha) + below), RealOf(alpha));
        tau = Number((beta - RealOf(alpha)) / beta, -ImagOf(alpha) / beta);
        reflector = Over(mine, Minus(alpha, Number(beta, 0)));
        diagonal = Number(ldexp(beta, column_exponent), 0);
      }
      __syncwarp();
      if (lane == k) {
        column[k] = diagonal;
        w.tau[k] = tau;
      } else if (lane > k && lane < kM) {
        column[lane] = reflector;
      }
      __syncwarp();
      if (lane > k && lane < kN) {
        T* other = w.a + lane * kLead;
        T share = other[k];
        for (int r = k + 1; r < kM; ++r) share = Sum(share, Product(Conj(column[r]), other[r]));
        share = Product(Conj(tau), share);
        other[k] = Minus(other[k], share);
        for (int r = k + 1; r < kM; ++r) other[r] = MinusProduct(other[r], column[r], share);
      }
      __syncwarp();
    }
)";

constexpr char kSmallWriteReflectors[] = R"(    for (int e = lane; e < kM * kN && is_here; e += kGroup) {
      const int row = e % kM, column = e / kM;
      const T x = w.a[row + column * kLead];
      packed[i * kM * kN + e] = row <= column && exponent != 0 ? Scaled(x, exponent) : x;
    }
    if (lane < kK && is_here) factors[i * kK + lane] = w.tau[lane];)";

// R goes first: Q takes its place, from the last column to the first.
constexpr char kSmallWriteQr[] = R"(    for (int e = lane; e < kColumns * kN && is_here; e += kGroup) {
      const int row = e % kColumns, column = e / kColumns;
      const T x = row <= column ? w.a[row + column * kLead] : Number(0, 0);
      r[i * kColumns * kN + e] = exponent != 0 ? Scaled(x, exponent) : x;
    }
    __syncwarp();
    for (int e = lane; e < kM * (kColumns - kK); e += kGroup) {
      const int row = e % kM, column = kK + e / kM;
      w.a[row + column * kLead] = Number(row == column ? 1 : 0, 0);
    }
    __syncwarp();
    for (int k = kK - 1; k >= 0; --k) {
      T* column = w.a + k * kLead;
      const T tau = w.tau[k];
      if (lane > k && lane < kColumns) {
        T* other = w.a + lane * kLead;
        T share = other[k];
        for (int row = k + 1; row < kM; ++row) share = Sum(share, Product(Conj(column[row]), other[row]));
        share = Product(tau, share);
        other[k] = Minus(other[k], share);
        for (int row = k + 1; row < kM; ++row) other[row] = MinusProduct(other[row], column[row], share);
      }
      __syncwarp();
      if (lane < kM) {
        column[lane] = lane < k    ? Number(0, 0)
                       : lane == k ? Minus(Number(1, 0), tau)
                                   : MinusProduct(Number(0, 0), tau, column[lane]);
      }
      __syncwarp();
    }
    for (int e = lane; e < kM * kColumns && is_here; e += kGroup) {
      q[i * kM * kColumns + e] = w.a[e % kM + e / kM * kLead];
    })";

MatrixText SmallReflectorsStart(const SmallMatrices& of, int64_t q_columns) {
  MatrixText text(of.dtype, of.most_blocks);
  text.Add(absl::StrCat("enum : int { kM = ", of.rows, ", kN = ", of.columns, ", kK = ", of.shorter(), ", kColumns = ",
                        q_columns, ", kLead = ", of.rows | 1, ", kWide = ", std::max(of.columns, q_columns),
                        ", kGroup = ", of.group(), ", kPerWarp = ", MatrixText::kWarp / of.group(),
                        ", kOrdinary = ", SizeOf(RealPartOf(of.dtype)) == 4 ? 40 : 300, " };\n"));
  text.AddGroup();
  text.Add(kSmallQrWork);
  return text;
}

}  // namespace

KernelText SmallReflectorsText(const SmallMatrices& of) {
  MatrixText text = SmallReflectorsStart(of, 0);
  text.EachByGroup("reflect", "const T* __restrict__ a, T* __restrict__ packed, T* __restrict__ factors", of.batch,
                   of.group(), absl::StrCat(kSmallQrFactor, kSmallWriteReflectors));
  return text.Take();
}

KernelText SmallQrText(const SmallMatrices& of, int64_t q_columns) {
  MatrixText text = SmallReflectorsStart(of, q_columns);
  text.EachByGroup("factor", "const T* __restrict__ a, T* __restrict__ q, T* __restrict__ r", of.batch, of.group(),
                   absl::StrCat(kSmallQrFactor, kSmallWriteQr));
  return text.Take();
}

}  // namespace tensord::cuda
