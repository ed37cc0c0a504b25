#include "tosa/quant/fixed_point.h"

#include <algorithm>
#include <cmath>

namespace chute::tosa {

namespace {

constexpr double kLargest = 65535;

i64 stored_at(Unit f, double u, double parameter) {
  return std::clamp<i64>(std::llround(kLargest * f(u, parameter)), 0, 65535);
}

/// 513 entries of i16, 32768 below the values, at multiples of 128.
Value *by_wide_table(Emit &e, Value *u, Unit f, double parameter) {
  std::vector<i64> table;
  for (int i = 0; i <= 512; ++i)
    table.push_back(stored_at(f, 128.0 * i, parameter) - 32768);
  const i64 dims[] = {513};
  Value *index = rescale(e, e.sub(u, 32768.0), ElementType::I16, 1, 0, 0);
  const ir::Type type = e.context().tensor_type(ElementType::I32, u->type().shape());
  Value *y = e.typed(op::TABLE, {index, e.constant_ints(ElementType::I16, dims, table)}, {}, type);
  return e.add(rescale(e, y, ElementType::I32, 1.0 / 128, 0, 0), 32768.0);
}

/// Half of the bits of each result, 128 below them.
Value *by_narrow_table(Emit &e, Value *index, const std::vector<i64> &values, int shift) {
  std::vector<i64> table;
  for (const i64 v : values)
    table.push_back((v >> shift & 255) - 128);
  const i64 dims[] = {256};
  const ir::Type type = e.context().tensor_type(ElementType::I8, index->type().shape());
  Value *y = e.typed(op::TABLE, {index, e.constant_ints(ElementType::I8, dims, table)}, {}, type);
  return rescale(e, y, ElementType::I32, std::ldexp(1.0, shift), -128, 0);
}

} // namespace

Value *mul_shifted(Emit &e, Value *x, Value *y, int shift) {
  return e(op::MUL, {x, y, e.single(ElementType::I8, shift)});
}

Value *shifted_left_by(Emit &e, Value *x, Value *n) { return e(op::LOGICAL_LEFT_SHIFT, {x, n}); }
Value *shifted_right_by(Emit &e, Value *x, Value *n) {
  return e(op::ARITHMETIC_RIGHT_SHIFT, {x, n}, {{"round", of(false)}});
}
Value *leading_zeros(Emit &e, Value *x) { return e.unary(op::CLZ, x); }

Value *look_up(Emit &e, Value *u, bool wide, bool exact, Unit f, double parameter) {
  if (wide)
    return by_wide_table(e, u, f, parameter);
  std::vector<i64> values;
  for (int i = 0; i < 256; ++i)
    values.push_back(stored_at(f, 256 * (i + (exact ? 0 : 0.5)), parameter));
  Value *index = rescale(e, e.shift_right(u, 8), ElementType::I8, 1, 0, -128);
  return e.add(by_narrow_table(e, index, values, 8), by_narrow_table(e, index, values, 0));
}

} // namespace chute::tosa
