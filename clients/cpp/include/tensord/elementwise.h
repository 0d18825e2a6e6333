// Elementwise operations. Operands broadcast to one shape as NumPy broadcasts, and must have one dtype; numbers beside
// a tensor take the tensor's (see Operand). The server decides which dtypes an operation takes, when it compiles.
#ifndef TENSORD_ELEMENTWISE_H_
#define TENSORD_ELEMENTWISE_H_

#include "tensord/tensor.h"

namespace tensord::client {

Tensor Negate(const TensorArg& x);
Tensor Conj(const TensorArg& x);
Tensor Abs(const TensorArg& x);  // of a complex tensor: real
Tensor Sign(const TensorArg& x);
Tensor Exp(const TensorArg& x);
Tensor Expm1(const TensorArg& x);
Tensor Log(const TensorArg& x);
Tensor Log1p(const TensorArg& x);
Tensor Sin(const TensorArg& x);
Tensor Cos(const TensorArg& x);
Tensor Tan(const TensorArg& x);
Tensor Tanh(const TensorArg& x);
Tensor Sqrt(const TensorArg& x);
Tensor Rsqrt(const TensorArg& x);
Tensor Cbrt(const TensorArg& x);
Tensor Sinh(const TensorArg& x);
Tensor Cosh(const TensorArg& x);
Tensor Asin(const TensorArg& x);
Tensor Acos(const TensorArg& x);
Tensor Atan(const TensorArg& x);
Tensor Asinh(const TensorArg& x);
Tensor Acosh(const TensorArg& x);
Tensor Atanh(const TensorArg& x);
Tensor Log2(const TensorArg& x);   // of powers of two exact
Tensor Log10(const TensorArg& x);  // of powers of ten exact
Tensor Exp2(const TensorArg& x);   // of whole numbers exact
Tensor Logistic(const TensorArg& x);
Tensor Erf(const TensorArg& x);
Tensor Floor(const TensorArg& x);
Tensor Ceil(const TensorArg& x);
Tensor RoundNearestEven(const TensorArg& x);
Tensor IsFinite(const TensorArg& x);  // BOOL
Tensor Not(const TensorArg& x);       // BOOL: logical; integers: bitwise
Tensor Real(const TensorArg& x);      // of a complex tensor: real
Tensor Imag(const TensorArg& x);

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

inline Tensor operator-(const TensorArg& x) { return Negate(x); }
inline Tensor operator~(const TensorArg& x) { return Not(x); }
inline Tensor operator+(const Operand& a, const Operand& b) { return Add(a, b); }
inline Tensor operator-(const Operand& a, const Operand& b) { return Subtract(a, b); }
inline Tensor operator*(const Operand& a, const Operand& b) { return Multiply(a, b); }
inline Tensor operator/(const Operand& a, const Operand& b) { return Divide(a, b); }
inline Tensor operator%(const Operand& a, const Operand& b) { return Remainder(a, b); }
inline Tensor operator&(const Operand& a, const Operand& b) { return And(a, b); }
inline Tensor operator|(const Operand& a, const Operand& b) { return Or(a, b); }
inline Tensor operator^(const Operand& a, const Operand& b) { return Xor(a, b); }

// Let the variable stand for another tensor; others that share its record stay as they are.
inline Tensor& operator+=(Tensor& a, const Operand& b) { return a = Add({a, b.place()}, b); }
inline Tensor& operator-=(Tensor& a, const Operand& b) { return a = Subtract({a, b.place()}, b); }
inline Tensor& operator*=(Tensor& a, const Operand& b) { return a = Multiply({a, b.place()}, b); }
inline Tensor& operator/=(Tensor& a, const Operand& b) { return a = Divide({a, b.place()}, b); }
inline Tensor& operator%=(Tensor& a, const Operand& b) { return a = Remainder({a, b.place()}, b); }

// BOOL results.
Tensor Equal(const Operand& a, const Operand& b);
Tensor NotEqual(const Operand& a, const Operand& b);
Tensor Less(const Operand& a, const Operand& b);
Tensor LessEqual(const Operand& a, const Operand& b);
Tensor Greater(const Operand& a, const Operand& b);
Tensor GreaterEqual(const Operand& a, const Operand& b);

inline Tensor operator==(const Operand& a, const Operand& b) { return Equal(a, b); }
inline Tensor operator!=(const Operand& a, const Operand& b) { return NotEqual(a, b); }
inline Tensor operator<(const Operand& a, const Operand& b) { return Less(a, b); }
inline Tensor operator<=(const Operand& a, const Operand& b) { return LessEqual(a, b); }
inline Tensor operator>(const Operand& a, const Operand& b) { return Greater(a, b); }
inline Tensor operator>=(const Operand& a, const Operand& b) { return GreaterEqual(a, b); }

// on_true if the BOOL tensor `pred` holds, else on_false.
Tensor Select(const TensorArg& pred, const Operand& on_true, const Operand& on_false);
// x within [min, max]; max wins where min is above it.
Tensor Clamp(const Operand& min, const TensorArg& x, const Operand& max);
Tensor Convert(const TensorArg& x, DType dtype);

}  // namespace tensord::client

#endif  // TENSORD_ELEMENTWISE_H_
