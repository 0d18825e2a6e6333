// Elementwise operations. Operands broadcast to one shape as NumPy broadcasts, and must have one dtype; numbers beside
// a tensor take the tensor's (see Operand). The server decides which dtypes an operation takes, when it compiles.
#ifndef TENSORD_ELEMENTWISE_H_
#define TENSORD_ELEMENTWISE_H_

#include "tensord/tensor.h"

namespace tensord::client {

Tensor Negate(const Tensor& x);
Tensor Conj(const Tensor& x);
Tensor Abs(const Tensor& x);  // of a complex tensor: real
Tensor Sign(const Tensor& x);
Tensor Exp(const Tensor& x);
Tensor Expm1(const Tensor& x);
Tensor Log(const Tensor& x);
Tensor Log1p(const Tensor& x);
Tensor Sin(const Tensor& x);
Tensor Cos(const Tensor& x);
Tensor Tan(const Tensor& x);
Tensor Tanh(const Tensor& x);
Tensor Sqrt(const Tensor& x);
Tensor Rsqrt(const Tensor& x);
Tensor Cbrt(const Tensor& x);
Tensor Sinh(const Tensor& x);
Tensor Cosh(const Tensor& x);
Tensor Asin(const Tensor& x);
Tensor Acos(const Tensor& x);
Tensor Atan(const Tensor& x);
Tensor Asinh(const Tensor& x);
Tensor Acosh(const Tensor& x);
Tensor Atanh(const Tensor& x);
Tensor Log2(const Tensor& x);   // of powers of two exact
Tensor Log10(const Tensor& x);  // of powers of ten exact
Tensor Exp2(const Tensor& x);   // of whole numbers exact
Tensor Logistic(const Tensor& x);
Tensor Erf(const Tensor& x);
Tensor Floor(const Tensor& x);
Tensor Ceil(const Tensor& x);
Tensor RoundNearestEven(const Tensor& x);
Tensor IsFinite(const Tensor& x);  // BOOL
Tensor Not(const Tensor& x);       // BOOL: logical; integers: bitwise
Tensor Real(const Tensor& x);      // of a complex tensor: real
Tensor Imag(const Tensor& x);

Tensor Add(const Operand& a, const Operand& b);
Tensor Subtract(const Operand& a, const Operand& b);
Tensor Multiply(const Operand& a, const Operand& b);
Tensor Divide(const Operand& a, const Operand& b);     // integers truncate
Tensor Remainder(const Operand& a, const Operand& b);  // sign of the dividend
Tensor Pow(const Operand& a, const Operand& b);
Tensor Atan2(const Operand& y, const Operand& x);
Tensor Maximum(const Operand& a, const Operand& b);  // NaN wins
Tensor Minimum(const Operand& a, const Operand& b);
Tensor And(const Operand& a, const Operand& b);  // BOOL: logical; integers: bitwise
Tensor Or(const Operand& a, const Operand& b);
Tensor Xor(const Operand& a, const Operand& b);
Tensor Complex(const Operand& real, const Operand& imaginary);  // F32: C64; F64: C128

inline Tensor operator-(const Tensor& x) { return Negate(x); }
inline Tensor operator+(const Operand& a, const Operand& b) { return Add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return Subtract(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return Multiply(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return Divide(a, b); }
inline Tensor operator%(const Operand& a, const Operand& b) { return Remainder(a, b); }

// BOOL results.
Tensor Equal(const Operand& a, const Operand& b);
Tensor NotEqual(const Operand& a, const Operand& b);
Tensor Less(const Operand& a, const Operand& b);
Tensor LessEqual(const Operand& a, const Operand& b);
Tensor Greater(const Operand& a, const Operand& b);
Tensor GreaterEqual(const Operand& a, const Operand& b);

// on_true if the BOOL tensor `pred` holds, else on_false.
Tensor Select(const Tensor& pred, const Operand& on_true, const Operand& on_false);
// x within [min, max]; max wins where min is above it.
Tensor Clamp(const Operand& min, const Tensor& x, const Operand& max);
Tensor Convert(const Tensor& x, DType dtype);

}  // namespace tensord::client

#endif  // TENSORD_ELEMENTWISE_H_
