#pragma once

#include "circle/passes/rules/rules.h"

#include <boost/container/small_vector.hpp>
#include <cmath>

/// Products of several factors, however they are nested. Internal to the rules about composites.
namespace chute::circle {

/// Equal up to a relative 1e-5: constants of a function as programs round them.
inline bool near_number(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

/// A tree of MUL (and DIV by a number) as numbers and other factors, at most five.
struct Product {
  double number = 1;
  boost::container::small_vector<Value *, 6> values;
  bool valid = true; ///< false: f32 without activations it is not, or too large
};

/// The product that `root` (MUL or DIV) is; inner values belong to it when nothing else uses them.
Product product_of(ir::Op &root);

/// x with `v` = number * x, nothing else using `v`; null when it is not.
Value *scaled_by(const Value *v, double number);
/// x with `v` = x + number (exactly), nothing else using `v`; null when it is not.
Value *plus_number(const Value *v, double number);
/// Erases a custom operator whose users are dead, after them: custom operators count as effects.
void erase_towards(pass::Rewriter &rw, ir::Op *op);

} // namespace chute::circle
