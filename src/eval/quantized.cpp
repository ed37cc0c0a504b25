#include "eval/quantized.h"

#include "eval/convert.h"
#include "support/parallel.h"
#include "ir/op_def.h"
#include "quant/params.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chute::eval {

namespace {

const ir::Quantization *quant_of(const ir::Value *v) {
  return v && v->type().is_tensor() ? v->type().quant() : nullptr;
}

tl::unexpected<Diagnostic> refuse(std::string message) {
  return fail(ErrorKind::Unsupported, "eval.quantized", std::move(message));
}

/// Which scale the element at a row-major position has. Per channel, all positions of one index of
/// the axis share it; in blocks, `block` consecutive indices do, for each line along the axis.
struct ScaleMap {
  i64 inner = 1;  ///< elements from one index of the axis to the next
  i64 extent = 1; ///< of the axis
  i64 block = 1;  ///< indices of the axis that share a scale
  i64 blocks = 1;
  bool per_position = false; ///< block: every line along the axis has scales of its own

  size_t at(i64 i) const {
    const i64 group = i / inner % extent / block;
    if (!per_position)
      return static_cast<size_t>(group);
    return static_cast<size_t>((i / (inner * extent) * blocks + group) * inner + i % inner);
  }
};

Result<ScaleMap> map_of(const Tensor &t, const ir::Quantization &q) {
  ScaleMap m;
  if (q.kind == ir::QuantKind::MX)
    return refuse("MX tensors have no stored scales to compute with");
  if (q.scales.empty() || q.zero_points.size() != q.scales.size())
    return refuse("the quantization has no scales");
  for (const float s : q.scales)
    if (!(s > 0) || !std::isfinite(s))
      return refuse("a quantization scale is not a positive number");
  if (q.scales.size() == 1)
    return m;
  if (q.axis < 0 || q.axis >= t.rank())
    return refuse("the axis of the quantization is not a dim of the tensor");
  m.extent = std::max<i64>(t.dim(q.axis), 1);
  m.inner =
      std::max<i64>(num_elements(std::span(t.shape()).subspan(static_cast<size_t>(q.axis) + 1)), 1);
  i64 wanted = m.extent;
  if (q.kind == ir::QuantKind::Block) {
    if (q.block_size <= 0)
      return refuse("the block size of the quantization is not positive");
    m.per_position = true;
    m.block = q.block_size;
    m.blocks = (m.extent + m.block - 1) / m.block;
    wanted = t.num_elements() / m.extent * m.blocks;
  }
  if (wanted != static_cast<i64>(q.scales.size()) && t.num_elements())
    return refuse("there are " + std::to_string(q.scales.size()) + " scales where the shape has " +
                  std::to_string(wanted) + " channels or blocks");
  return m;
}

/// out[i] = f(t[i], scale, zero point), computed in C: runs of one scale at a time.
template <class C, class F>
void map_scales(const Tensor &t, const ir::Quantization &q, const ScaleMap &m, Tensor &out, F f) {
  const auto from = static_cast<i64>(t.item_bytes());
  const auto to = static_cast<i64>(out.item_bytes());
  const bool one = q.scales.size() == 1;
  constexpr i64 kBlock = 1024;
  parallel_for(t.num_elements(), 16 * kBlock, [&](i64 begin, i64 end) {
    C v[kBlock];
    for (i64 i = begin; i < end; i += kBlock) {
      const i64 n = std::min(kBlock, end - i);
      load_run(t.element(), t.data() + i * from, n, v);
      for (i64 j = 0; j < n;) {
        const size_t s = one ? 0 : m.at(i + j);
        const i64 stop = one              ? n
                         : m.per_position ? j + 1
                                          : std::min(n, j + m.inner - (i + j) % m.inner);
        const auto scale = static_cast<C>(q.scales[s]);
        const auto zero = static_cast<C>(q.zero_points[s]);
        for (; j < stop; ++j)
          v[j] = f(v[j], scale, zero);
      }
      store_run(out.element(), v, n, out.mutable_data() + i * to);
    }
  });
}

Shape part_shape(const Tensor &t, i64 rows) {
  Shape shape = t.shape();
  shape[0] = rows;
  return shape;
}
size_t row_bytes(const Tensor &t) {
  return t.dim(0) ? t.num_bytes() / static_cast<size_t>(t.dim(0)) : 0;
}

/// Weights that are worth more than a tile as floats: FULLY_CONNECTED dequantizes them by rows.
bool stays_stored(const ir::Op &op, size_t index, const Tensor &t) {
  constexpr i64 kLarge = i64{1} << 22;
  return index == 1 && t.num_elements() > kLarge && op.name() == "circle.fully_connected" &&
         ir::is_float(op.operand(0)->type().quant() ? ElementType::F32
                                                    : op.operand(0)->type().element());
}

/// A movement operator that also makes up elements: the real zero, which is stored as the zero
/// point.
bool pads_with_zero(const ir::Op &op) {
  return op.name() == "circle.pad" || op.name() == "circle.space_to_batch_nd";
}

} // namespace

Result<Tensor> dequantize(const Tensor &t, const ir::Quantization &q) {
  const Result<ScaleMap> m = map_of(t, q);
  if (!m)
    return tl::unexpected(m.error());
  if (!ir::is_integer(t.element()) || !computable(t.element()))
    return refuse("a quantized tensor of " + std::string(ir::element_type_name(t.element())) +
                  " is not evaluated");
  Tensor out = Tensor::allocate(ElementType::F32, t.shape());
  map_scales<float>(t, q, *m, out, [](float v, float s, float z) { return (v - z) * s; });
  return out;
}

Result<Tensor> dequantize_rows(const Tensor &t, const ir::Quantization &q, i64 first, i64 count) {
  const i64 rows = t.rank() ? t.dim(0) : 0;
  if (first < 0 || count < 0 || first > rows || count > rows - first)
    return refuse("the rows are out of range");
  ir::Quantization part = q;
  if (q.scales.size() > 1 && q.zero_points.size() == q.scales.size()) {
    if (q.axis == 0 && q.kind == ir::QuantKind::Block) {
      // Rows share scales in blocks that a tile need not start with.
      const Result<Tensor> all = dequantize(t, q);
      return all ? Tensor::view(ElementType::F32, part_shape(t, count),
                                all->data() + row_bytes(*all) * static_cast<size_t>(first),
                                all->owner())
                 : all;
    }
    if (q.axis == 0 || q.kind == ir::QuantKind::Block) {
      const size_t each = q.scales.size() / static_cast<size_t>(std::max<i64>(rows, 1));
      const size_t from = each * static_cast<size_t>(first);
      const size_t n = each * static_cast<size_t>(count);
      part.scales = q.scales.subspan(from, n);
      part.zero_points = q.zero_points.subspan(from, n);
    }
  }
  return dequantize(Tensor::view(t.element(), part_shape(t, count),
                                 t.data() + row_bytes(t) * static_cast<size_t>(first), t.owner()),
                    part);
}

Result<Tensor> quantize(const Tensor &t, ElementType element, const ir::Quantization &q) {
  const Result<ScaleMap> m = map_of(t, q);
  if (!m)
    return tl::unexpected(m.error());
  if (!ir::is_integer(element) || !computable(element) || !ir::is_float(t.element()))
    return refuse("quantizing " + std::string(ir::element_type_name(t.element())) + " to " +
                  std::string(ir::element_type_name(element)) + " is not evaluated");
  Tensor out = Tensor::allocate(element, t.shape());
  const quant::Range range = quant::range_of(element).value_or(quant::Range{});
  if (ir::element_bits(element) > 16) {
    // A bias: its numbers pass the 24 bits of an f32.
    const auto low = static_cast<double>(range.min);
    const double high = std::nextafter(static_cast<double>(range.max), 0.0);
    map_scales<double>(t, q, *m, out, [=](double v, double s, double z) {
      const double r = std::isnan(v) ? z : std::round(v / s) + z;
      return std::clamp(r, low, ir::element_bits(element) > 53 ? high : double(range.max));
    });
    return out;
  }
  const auto low = static_cast<float>(range.min);
  const auto high = static_cast<float>(range.max);
  map_scales<float>(t, q, *m, out, [=](float v, float s, float z) {
    return std::isnan(v) ? z : std::clamp(std::round(v / s) + z, low, high);
  });
  return out;
}

bool computes_dequantized(const ir::Op &op) {
  // Those of torch take and give stored numbers as such.
  if (op.has(ir::trait::kQuantization))
    return false;
  const ir::Quantization *common = nullptr;
  bool differ = false;
  bool real = false;
  const auto look = [&](const ir::Value *v) {
    const ir::Quantization *q = quant_of(v);
    if (q) {
      differ = differ || (common && common != q);
      common = q;
    } else if (v && v->type().is_tensor() && ir::is_float(v->type().element())) {
      real = true;
    }
  };
  for (const ir::Use &u : op.operand_uses())
    look(u.value());
  for (const ir::Value &v : op.results())
    look(&v);
  if (!common)
    return false;
  if (!op.has(ir::trait::kMovement) || differ || real)
    return true;
  return pads_with_zero(op) && std::any_of(common->zero_points.begin(), common->zero_points.end(),
                                           [](i64 z) { return z != 0; });
}

/// The parameters of the one quantized operand of a movement operator: its elements are moved first
/// and converted where they arrive, since a table is larger than what is taken from it.
const ir::Quantization *moved_alone(const ir::Op &op) {
  if (!op.has(ir::trait::kMovement) || pads_with_zero(op))
    return nullptr;
  const ir::Quantization *only = nullptr;
  for (const ir::Use &u : op.operand_uses()) {
    const ir::Value *v = u.value();
    const ir::Quantization *q = quant_of(v);
    if ((q && only) || (!q && v && v->type().is_tensor() && ir::is_float(v->type().element())))
      return nullptr;
    only = q ? q : only;
  }
  return only && only->kind == ir::QuantKind::PerTensor ? only : nullptr;
}

Status RealOperands::load(std::vector<ResultType> &types) {
  moved_ = moved_alone(op_);
  if (moved_) {
    for (size_t i = 0; i < stored_.size(); ++i)
      if (quant_of(op_.operand(static_cast<u32>(i))))
        for (ResultType &t : types)
          t.element = stored_[i]->element();
    operands_.assign(stored_.begin(), stored_.end());
    return {};
  }
  real_.resize(stored_.size());
  for (size_t i = 0; i < stored_.size(); ++i) {
    const ir::Quantization *q = quant_of(op_.operand(static_cast<u32>(i)));
    operands_.push_back(stored_[i]);
    if (!q || !stored_[i] || stays_stored(op_, i, *stored_[i]))
      continue;
    Result<Tensor> real = dequantize(*stored_[i], *q);
    if (!real)
      return tl::unexpected(real.error());
    real_[i] = std::move(*real);
    operands_.back() = &real_[i];
  }
  for (u32 i = 0; i < op_.num_results(); ++i)
    if (quant_of(op_.result(i)))
      types[i].element = ElementType::F32;
  return {};
}

Status RealOperands::store(std::vector<ResultType> &types, std::vector<Tensor> &results) const {
  for (u32 i = 0; i < op_.num_results(); ++i) {
    const ir::Quantization *q = quant_of(op_.result(i));
    if (!q && !moved_)
      continue;
    types[i].element = op_.result(i)->type().element();
    if (!results[i].defined() || (moved_ && moved_ == q))
      continue;
    if (moved_) {
      Result<Tensor> real = dequantize(results[i], *moved_);
      if (!real)
        return tl::unexpected(real.error());
      results[i] = std::move(*real);
      if (!q)
        continue;
    }
    Result<Tensor> stored = quantize(results[i], types[i].element, *q);
    if (!stored)
      return tl::unexpected(stored.error());
    results[i] = std::move(*stored);
  }
  return {};
}

} // namespace chute::eval
