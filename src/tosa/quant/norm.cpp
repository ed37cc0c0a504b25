// Layer and RMS normalization whose steps are not quantized, between a stored operand and a grid:
//
//   quantize((x - mean) * RSQRT(mean of squares + epsilon) * w + b)
//
// Deviations are fixed-point numbers that each row scales up by the leading zeros of its largest
// one, so that squares keep their precision whatever the row's spread is; the epsilon is scaled
// alike. The sum of squares is normalized by an even number of bits, its root's reciprocal looked
// up, the product shifted back and brought to the grid with weight and bias.
#include "quant/params.h"
#include "tosa/quant/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace chute::tosa {

namespace {

constexpr double kLargest = 65535;
constexpr int kDeviationBits = 28; // RESCALE keeps results below 2^29 exact
constexpr int kSquareBits = 14;

/// The parts of a normalization, as legalization leaves them.
struct Norm {
  Stored x;
  Dims axes;
  i64 count = 1; ///< elements per row
  bool centred = false;
  double epsilon = 0;
  std::vector<float> weight, bias; ///< empty: none
  Dims weight_shape, bias_shape;
};

const ir::Op *made_by(const Value *v, ir::OpCode code) {
  const ir::Op *p = v ? v->producer() : nullptr;
  return p && p->opcode() == code ? p : nullptr;
}

/// The real values of a constant, or of a dequantized one.
std::vector<float> reals(const Value *v) {
  if (const ir::Constant *c = constant_of(v))
    return c->has_data ? quant::real_values(*c) : std::vector<float>();
  const auto w = weights_of(v);
  const auto stored = w && w->scales.size() == 1 ? int_constant(w->value) : std::nullopt;
  std::vector<float> out;
  if (stored)
    for (const i64 s : *stored)
      out.push_back(static_cast<float>(static_cast<double>(s - w->zero_point) * w->scales[0]));
  return out;
}

/// Takes the constant operand of an ADD or MUL off `v`.
void peel(const Value *&v, ir::OpCode code, std::vector<float> &values, Dims &shape) {
  const ir::Op *p = made_by(v, code);
  if (!p)
    return;
  for (u32 i = 0; i < 2; ++i) {
    std::vector<float> found = reals(p->operand(i));
    if (found.empty())
      continue;
    values = std::move(found);
    shape = static_dims(p->operand(i));
    v = p->operand(1 - i);
    return;
  }
}

/// The mean over axes that stay, of size 1: REDUCE_SUM of each, times one over their number.
const Value *mean_of(const Value *v, Dims &axes, i64 &count) {
  const ir::Op *mul = made_by(v, op::MUL);
  const auto factor = mul ? splat_of(mul->operand(1)) : std::nullopt;
  if (!factor)
    return nullptr;
  axes.clear();
  count = 1;
  const Value *x = mul->operand(0);
  while (const ir::Op *sum = made_by(x, op::REDUCE_SUM)) {
    axes.push_back(sum->attr("axis").as_int().value());
    x = sum->operand(0);
    count *= x->type().dim(static_cast<int>(axes.back())).value();
  }
  std::ranges::sort(axes);
  const bool fits = count > 1 && std::abs(*factor * static_cast<double>(count) - 1) < 1e-5;
  return fits ? x : nullptr;
}

std::optional<Norm> match(const Value *v) {
  Norm n;
  peel(v, op::ADD, n.bias, n.bias_shape);
  peel(v, op::MUL, n.weight, n.weight_shape);
  const ir::Op *scaled = made_by(v, op::MUL);
  const ir::Op *root = scaled ? made_by(scaled->operand(1), op::RSQRT) : nullptr;
  const ir::Op *sum = root ? made_by(root->operand(0), op::ADD) : nullptr;
  const auto epsilon = sum ? splat_of(sum->operand(1)) : std::nullopt;
  if (!epsilon)
    return std::nullopt;
  n.epsilon = *epsilon;
  const Value *squares = mean_of(sum->operand(0), n.axes, n.count);
  const ir::Op *square = squares ? made_by(squares, op::MUL) : nullptr;
  const Value *deviation = scaled->operand(0);
  if (!square || square->operand(0) != deviation || square->operand(1) != deviation)
    return std::nullopt;
  const Value *x = deviation;
  if (const ir::Op *off = made_by(deviation, op::SUB)) {
    Dims axes;
    i64 count = 0;
    x = off->operand(0);
    if (mean_of(off->operand(1), axes, count) != x || axes != n.axes)
      return std::nullopt;
    n.centred = true;
  }
  const auto s = stored_of(x);
  if (!s || (s->element() != ElementType::I8 && s->element() != ElementType::I16))
    return std::nullopt;
  n.x = *s;
  return n;
}

/// 1 / root of a number in [1, 4), twice at the most.
double reciprocal_root(double u, double) { return 1 / std::sqrt(1 + 3 * u / 65536); }

Value *constant(Emit &e, const std::vector<float> &reals, const Dims &shape, double step) {
  std::vector<i64> out;
  constexpr double kMost = 1 << 30;
  for (const float r : reals)
    out.push_back(std::llround(std::clamp(static_cast<double>(r) / step, -kMost, kMost)));
  return e.constant_ints(ElementType::I32, shape, out);
}

bool normalize(ir::Op &op, pass::Rewriter &rw) {
  const auto n = match(op.operand(0));
  const auto g = n ? grid_of(op) : std::nullopt;
  if (!g)
    return false;
  const bool wide = n->x.element() == ElementType::I16 || g->element == ElementType::I16;
  const int bits = n->x.element() == ElementType::I8 ? 8 : 16;
  const int fraction = kDeviationBits - bits;
  const int log_count = std::bit_width(static_cast<u64>(n->count) - 1);
  // The epsilon's root in the deviations' steps.
  const double least = std::sqrt(n->epsilon) / n->x.scale * std::ldexp(1.0, fraction);
  if (log_count + bits > 30 || !(least < std::ldexp(1.0, kDeviationBits))) {
    rw.reject("too long a row, or too large an epsilon");
    return false;
  }
  Emit e(op, rw);
  Value *x = rescale(e, n->x.value, ElementType::I32, 1, n->x.zero_point, 0);
  Value *deviation = e.shift_left(x, fraction);
  if (n->centred) {
    Value *sum = e.reduce(op::REDUCE_SUM, x, n->axes);
    const double share = std::ldexp(1.0, fraction) / static_cast<double>(n->count);
    deviation = e.sub(deviation, rescale(e, sum, ElementType::I32, share, 0, 0));
  }
  // Rows scaled so that their largest deviation, or the epsilon's root, has 14 bits.
  const i64 lowest = std::max<i64>(1, static_cast<i64>(std::ceil(least)));
  const int most_zeros = std::countl_zero(static_cast<u32>(lowest));
  Value *largest = e.reduce(op::REDUCE_MAX, e.unary(op::ABS, deviation), n->axes);
  Value *zeros = leading_zeros(
      e, e.binary(op::MAXIMUM, largest, e.like(largest, static_cast<double>(lowest))));
  Value *small = e.shift_right(shifted_left_by(e, deviation, e.sub(zeros, 1.0)), 31 - kSquareBits);
  // Squares divided by as much as keeps their sum, and the epsilon's share, below 2^30.
  const int divided = std::max(0, log_count - 1);
  Value *squares = e.reduce(op::REDUCE_SUM, mul_shifted(e, small, small, divided), n->axes);
  const double per_row = std::ldexp(static_cast<double>(n->count), -divided);
  const double share =
      per_row * least * least * std::ldexp(1.0, 2 * (most_zeros - (32 - kSquareBits)));
  if (const i64 epsilon = std::llround(share)) {
    Value *too_many = e.sub(e.like(zeros, 2 * most_zeros), e.shift_left(zeros, 1));
    Value *by = e.binary(op::MINIMUM, too_many, e.like(too_many, 31));
    squares = e.add(squares, shifted_right_by(e, e.like(zeros, static_cast<double>(epsilon)), by));
  }
  squares = e.binary(op::MAXIMUM, squares, e.like(squares, 1)); // rows of equal elements
  // 2^29 <= normal < 2^31, scaled up by 4^half.
  Value *half = e.shift_right(e.sub(leading_zeros(e, squares), 1.0), 1);
  Value *normal = shifted_left_by(e, squares, e.shift_left(half, 1));
  const double low = std::ldexp(1.0, 29);
  Value *u = rescale(e, e.sub(normal, low), ElementType::I32, 65536 / (3 * low), 0, 0);
  Value *root =
      look_up(e, e.binary(op::MINIMUM, u, e.like(u, kLargest)), wide, false, reciprocal_root);
  // small / root of the mean square = small * root / 65535 * 2^(half - 14.5) * root of per_row
  const int down = (divided + 1) / 2 + 4;
  Value *by = e.sub(e.like(half, down), half);
  by = e.binary(op::MAXIMUM, by, e.like(by, 0));
  Value *y = shifted_right_by(e, e.mul(small, root), by);
  double step = std::ldexp(std::sqrt(per_row) / kLargest, down) / std::sqrt(low);
  if (!n->weight.empty()) {
    float most = 0;
    for (const float w : n->weight)
      most = std::max(most, std::abs(w));
    const double of_weight = std::max(static_cast<double>(most), 1e-30) / 32767;
    y = mul_shifted(e, y, constant(e, n->weight, n->weight_shape, of_weight), 15);
    step *= of_weight * 32768;
  }
  if (!n->bias.empty())
    y = e.add(y, constant(e, n->bias, n->bias_shape, step));
  Value *out = rescale(e, y, g->element, step / g->scale, 0, g->zero_point);
  return out && e.finish(limited(e, out, *g));
}

} // namespace

void add_quantized_norm_rules(pass::PatternSet &set) {
  set.add({"normalize-stored", quantize_opcodes(), normalize});
}

} // namespace chute::tosa
