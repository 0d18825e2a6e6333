#ifndef TENSORD_BACKENDS_CUDA_LINALG_TOURNAMENT_TEXT_H_
#define TENSORD_BACKENDS_CUDA_LINALG_TOURNAMENT_TEXT_H_

// Text of the rotations that Jacobi's methods share. kPlayers is an even number of columns, of which the last may not
// be there; each of kPlayers - 1 rounds pairs all of them, and a sweep all with all.

namespace tensord::cuda {

inline constexpr char kTournamentText[] = R"(// The columns of a pair of a round, the smaller one first.
TENSORD_FN void PairOf(int pair, int round, int* first, int* second) {
  const int rounds = kPlayers - 1;
  const int a = pair == 0 ? rounds : (round + pair) % rounds, b = (round + rounds - pair) % rounds;
  *first = a < b ? a : b;
  *second = a < b ? b : a;
}
// The unitary matrix [[c, z], [-conj(z), c]] that makes [[alpha, g], [conj(g), beta]] diagonal by the smaller angle; it
// adds `shift` to beta.
struct Rotation {
  R c;
  T z;
  R shift;
};
TENSORD_FN Rotation RotationOf(R alpha, R beta, T g, R size) {
  const R ratio = (beta - alpha) / (2 * size), length = fabs(ratio);
  // The one is lost beside a square that would overflow.
  const R tangent =
      copysign(length > (kIsSingle ? 1e15 : 1e150) ? 1 / (2 * length) : 1 / (length + sqrt(1 + ratio * ratio)), ratio);
  const R c = 1 / sqrt(1 + tangent * tangent);
  return Rotation{c, Times(g, tangent * c / size), tangent * size};
}
TENSORD_FN void Rotate(R c, T z, T* p, T* q) {
  const T x = *p, y = *q;
  *p = MinusProduct(Times(x, c), Conj(z), y);
  *q = Sum(Product(z, x), Times(y, c));
}
)";

}  // namespace tensord::cuda

#endif  // TENSORD_BACKENDS_CUDA_LINALG_TOURNAMENT_TEXT_H_
