#include "aten/infer/args.h"

#include <algorithm>
#include <array>

/// Matrix products and attention.
namespace chute::aten::rule {

using ir::ElementType;
using ir::SymInt;
using ir::Type;

namespace {

bool need_rank(InferArgs &a, u32 spec, int rank) {
  return a.check(a.tensor(spec).rank() == rank, kShapeError, [&] {
    return "operand '" + std::string(a.op().def().operands[spec].name) + "' must have " +
           std::to_string(rank) + " dimensions";
  });
}

/// Sizes known only at run time may be equal though they have different names: PyTorch exports a
/// program without a guard where no fake kernel asked (attention's keys and values, for one).
void same_size(InferArgs &a, SymInt x, SymInt y) {
  a.check(x == y || x.is_symbolic() || y.is_symbolic(), kShapeError, [&] {
    return "sizes " + a.sym().print(x) + " and " + a.sym().print(y) + " must be equal";
  });
}

void same_element(InferArgs &a, u32 x, u32 y) {
  a.check(a.tensor(x).element() == a.tensor(y).element(), kDtypeError,
          "operands must have the same element type");
}

/// [..., n, k] x [..., k, m] with PyTorch's treatment of vectors.
Dims product_shape(InferArgs &a, DimSpan x, DimSpan y) {
  Dims out;
  if (!a.check(!x.empty() && !y.empty(), kShapeError, "operands must have dimensions"))
    return out;
  same_size(a, x.back(), y.size() == 1 ? y[0] : y[y.size() - 2]);
  if (x.size() > 2)
    out.assign(x.begin(), x.end() - 2);
  if (y.size() > 2)
    a.broadcast_into(out, y.first(y.size() - 2));
  if (x.size() > 1)
    out.push_back(x[x.size() - 2]);
  if (y.size() > 1)
    out.push_back(y.back());
  return out;
}

} // namespace

Status mm(InferArgs &a) {
  if (!need_rank(a, 0, 2) || !need_rank(a, 1, 2))
    return a.failed();
  same_element(a, 0, 1);
  return a.done(a.tensor(0).element(), product_shape(a, a.tensor(0).shape(), a.tensor(1).shape()));
}

Status int_mm(InferArgs &a) {
  if (!need_rank(a, 0, 2) || !need_rank(a, 1, 2))
    return a.failed();
  return a.done(ElementType::I32, product_shape(a, a.tensor(0).shape(), a.tensor(1).shape()));
}

Status bmm(InferArgs &a) {
  if (!need_rank(a, 0, 3) || !need_rank(a, 1, 3))
    return a.failed();
  same_element(a, 0, 1);
  same_size(a, a.tensor(0).dim(0), a.tensor(1).dim(0));
  return a.done(a.tensor(0).element(), product_shape(a, a.tensor(0).shape(), a.tensor(1).shape()));
}

Status matmul(InferArgs &a) {
  same_element(a, 0, 1);
  return a.done(a.tensor(0).element(), product_shape(a, a.tensor(0).shape(), a.tensor(1).shape()));
}

Status linear(InferArgs &a) {
  const Type x = a.tensor(0), w = a.tensor(1);
  if (!a.check(x.rank() >= 1 && (w.rank() == 1 || w.rank() == 2), kShapeError,
               "weight must be [out, in] and input [..., in]"))
    return a.failed();
  same_element(a, 0, 1);
  same_size(a, x.shape().back(), w.shape().back());
  Dims shape = dims_of(x);
  shape.pop_back();
  if (w.rank() == 2)
    shape.push_back(w.dim(0));
  if (a.has(2))
    a.broadcast_into(shape, a.tensor(2).shape());
  return a.done(x.element(), shape);
}

Status addmm(InferArgs &a) {
  if (!need_rank(a, 1, 2) || !need_rank(a, 2, 2))
    return a.failed();
  same_element(a, 1, 2);
  Dims shape = product_shape(a, a.tensor(1).shape(), a.tensor(2).shape());
  a.broadcast_into(shape, a.tensor(0).shape());
  return a.done(a.tensor(1).element(), shape);
}

Status baddbmm(InferArgs &a) {
  if (!need_rank(a, 1, 3) || !need_rank(a, 2, 3))
    return a.failed();
  same_element(a, 1, 2);
  same_size(a, a.tensor(1).dim(0), a.tensor(2).dim(0));
  Dims shape = product_shape(a, a.tensor(1).shape(), a.tensor(2).shape());
  a.broadcast_into(shape, a.tensor(0).shape());
  return a.done(a.tensor(1).element(), shape);
}

Status addbmm(InferArgs &a) {
  if (!need_rank(a, 1, 3) || !need_rank(a, 2, 3))
    return a.failed();
  same_size(a, a.tensor(1).dim(0), a.tensor(2).dim(0));
  const Dims product = product_shape(a, a.tensor(1).shape(), a.tensor(2).shape());
  return a.bad() ? a.failed() : a.done(a.tensor(1).element(), span_of(product).subspan(1));
}

Status addmv(InferArgs &a) {
  if (!need_rank(a, 1, 2) || !need_rank(a, 2, 1))
    return a.failed();
  return a.done(a.tensor(1).element(), product_shape(a, a.tensor(1).shape(), a.tensor(2).shape()));
}

Status mv(InferArgs &a) {
  if (!need_rank(a, 0, 2) || !need_rank(a, 1, 1))
    return a.failed();
  same_element(a, 0, 1);
  return a.done(a.tensor(0).element(), product_shape(a, a.tensor(0).shape(), a.tensor(1).shape()));
}

Status dot(InferArgs &a) {
  if (!need_rank(a, 0, 1) || !need_rank(a, 1, 1))
    return a.failed();
  same_element(a, 0, 1);
  same_size(a, a.tensor(0).dim(0), a.tensor(1).dim(0));
  return a.done(a.tensor(0).element(), DimSpan());
}

Status outer(InferArgs &a) {
  if (!need_rank(a, 0, 1) || !need_rank(a, 1, 1))
    return a.failed();
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  const auto e = result_type(types);
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return a.done(e.value_or(types[0].element()), std::array{types[0].dim(0), types[1].dim(0)});
}

Status addr(InferArgs &a) {
  if (!need_rank(a, 1, 1) || !need_rank(a, 2, 1))
    return a.failed();
  const std::array<Type, 3> types{a.tensor(0), a.tensor(1), a.tensor(2)};
  const auto e = result_type(types);
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return a.done(e.value_or(types[0].element()), std::array{types[1].dim(0), types[2].dim(0)});
}

Status inner(InferArgs &a) {
  const Type x = a.tensor(0), y = a.tensor(1);
  if (x.rank() == 0 || y.rank() == 0)
    return a.done(x.element(), x.rank() ? x.shape() : y.shape());
  same_size(a, x.shape().back(), y.shape().back());
  Dims shape(x.shape().begin(), x.shape().end() - 1);
  shape.insert(shape.end(), y.shape().begin(), y.shape().end() - 1);
  return a.done(x.element(), shape);
}

Status kron(InferArgs &a) {
  const std::array<Type, 2> types{a.tensor(0), a.tensor(1)};
  Dims x = dims_of(types[0]), y = dims_of(types[1]);
  while (x.size() < y.size())
    x.insert(x.begin(), SymInt(1));
  while (y.size() < x.size())
    y.insert(y.begin(), SymInt(1));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = a.sym().mul(x[i], y[i]);
  const auto e = result_type(types);
  a.check(e.has_value(), kDtypeError, "PyTorch does not promote these element types");
  return a.done(e.value_or(types[0].element()), x);
}

Status chain_matmul(InferArgs &a) {
  const auto types = a.list(0);
  if (!a.check(!types.empty(), kOperandError, "needs a matrix"))
    return a.failed();
  for (Type t : types)
    if (!a.check(t.rank() == 2, kShapeError, "takes matrices"))
      return a.failed();
  for (size_t i = 1; i < types.size(); ++i)
    same_size(a, types[i - 1].dim(1), types[i].dim(0));
  return a.done(types[0].element(), std::array{types[0].dim(0), types.back().dim(1)});
}

Status tensordot(InferArgs &a) {
  const Type x = a.tensor(0), y = a.tensor(1);
  const DimSpan dx = a.ints("dims_self"), dy = a.ints("dims_other");
  if (!a.check(dx.size() == dy.size(), kAttrError, "the dims lists differ in length"))
    return a.failed();
  boost::container::small_vector<bool, 8> cx(x.shape().size(), false), cy(y.shape().size(), false);
  for (size_t i = 0; i < dx.size(); ++i) {
    const size_t p = a.wrap(dx[i], x.rank()), q = a.wrap(dy[i], y.rank());
    if (!a.check(p < cx.size() && q < cy.size(), kDimError, "needs dimensions") || a.bad())
      return a.failed();
    cx[p] = cy[q] = true;
    if (x.shape()[p] != SymInt(1) && y.shape()[q] != SymInt(1))
      same_size(a, x.shape()[p], y.shape()[q]);
  }
  Dims shape;
  for (size_t i = 0; i < cx.size(); ++i)
    if (!cx[i])
      shape.push_back(x.shape()[i]);
  for (size_t i = 0; i < cy.size(); ++i)
    if (!cy[i])
      shape.push_back(y.shape()[i]);
  return a.done(x.element(), shape);
}

Status bilinear(InferArgs &a) {
  const Type x = a.tensor(0), w = a.tensor(2);
  if (!a.check(x.rank() >= 1 && w.rank() == 3, kShapeError, "weight must be [out, in1, in2]"))
    return a.failed();
  same_size(a, x.shape().back(), w.dim(1));
  same_size(a, a.tensor(1).rank() ? a.tensor(1).shape().back() : SymInt(0), w.dim(2));
  Dims shape = dims_of(x);
  shape.back() = w.dim(0);
  return a.done(x.element(), shape);
}

Status trilinear(InferArgs &a) {
  constexpr std::array<std::string_view, 3> kExpand{"expand1", "expand2", "expand3"};
  const int rank = a.tensor(0).rank() + static_cast<int>(a.ints("expand1").size());
  Dims shape;
  for (u32 i = 0; i < 3; ++i) {
    Dims s = dims_of(a.tensor(i));
    for (SymInt d : a.ints(kExpand[i])) {
      const size_t at = a.wrap(d, rank);
      if (!a.check(at <= s.size(), kDimError, "expansion outside the tensor") || a.bad())
        return a.failed();
      s.insert(s.begin() + static_cast<i64>(at), SymInt(1));
    }
    a.broadcast_into(shape, span_of(s));
  }
  const auto summed = a.dim_flags("sumdim", rank, true);
  Dims out;
  for (size_t i = 0; i < shape.size() && i < summed.size(); ++i)
    if (!summed[i])
      out.push_back(shape[i]);
  return a.done(a.tensor(0).element(), out);
}

// --- einsum --------------------------------------------------------------------------------------

namespace {

/// The subscripts of one term: letters, with '.' standing for an ellipsis.
std::string subscripts(std::string_view term) {
  std::string s;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ')
      continue;
    if (term.substr(i, 3) == "...") {
      s += '.';
      i += 2;
    } else {
      s += term[i];
    }
  }
  return s;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

} // namespace

Status einsum(InferArgs &a) {
  const auto types = a.list(0);
  const std::string_view equation = a.text("equation");
  const size_t arrow = equation.find("->");
  std::array<SymInt, 128> size{};
  std::array<int, 128> count{};
  Dims ellipsis;
  std::string_view inputs = equation.substr(0, arrow);
  for (size_t n = 0; n < types.size(); ++n) {
    const size_t comma = inputs.find(',');
    if (!a.check((comma == std::string_view::npos) == (n + 1 == types.size()), kAttrError,
                 "the equation has another number of operands"))
      return a.failed();
    const std::string term = subscripts(inputs.substr(0, comma));
    inputs = comma == std::string_view::npos ? std::string_view() : inputs.substr(comma + 1);
    const DimSpan shape = types[n].shape();
    const auto dots = static_cast<size_t>(std::count(term.begin(), term.end(), '.'));
    const size_t letters = term.size() - dots;
    if (!a.check(dots <= 1 && letters <= shape.size() && (dots || letters == shape.size()),
                 kShapeError, "the equation does not fit the rank of an operand"))
      return a.failed();
    size_t at = 0;
    for (char c : term) {
      if (c == '.') {
        a.broadcast_into(ellipsis, shape.subspan(at, shape.size() - letters));
        at += shape.size() - letters;
        continue;
      }
      if (!a.check(is_letter(c), kAttrError, "the equation holds something else than letters"))
        return a.failed();
      const auto k = static_cast<size_t>(c);
      if (count[k]++ && size[k] != SymInt(1) && shape[at] != SymInt(1))
        same_size(a, size[k], shape[at]);
      if (count[k] == 1 || size[k] == SymInt(1))
        size[k] = shape[at];
      ++at;
    }
  }
  std::string output = ".";
  if (arrow != std::string_view::npos) {
    output = subscripts(equation.substr(arrow + 2));
  } else {
    // Implicit form: letters that occur once, upper case before lower case.
    for (char c = 'A'; c <= 'z'; ++c)
      if (is_letter(c) && count[static_cast<size_t>(c)] == 1)
        output += c;
  }
  Dims shape;
  for (char c : output) {
    if (c == '.')
      shape.insert(shape.end(), ellipsis.begin(), ellipsis.end());
    else if (a.check(is_letter(c) && count[static_cast<size_t>(c)], kAttrError,
                     "the output names a subscript that no operand has"))
      shape.push_back(size[static_cast<size_t>(c)]);
  }
  const auto e = result_type(std::span<const Type>(types.data(), types.size()));
  a.check(e.has_value(), kDtypeError, "operands must have the same element type");
  return a.done(e.value_or(ElementType::F32), shape);
}

// --- attention -----------------------------------------------------------------------------------

namespace {

/// [..., queries, value width]; batch dimensions broadcast, heads come from the query.
bool attention_shape(InferArgs &a, Dims &out) {
  const Type q = a.tensor(0), k = a.tensor(1), v = a.tensor(2);
  if (!a.check(q.rank() >= 2 && k.rank() >= 2 && v.rank() >= 2, kShapeError,
               "query, key and value need two dimensions"))
    return false;
  same_size(a, q.shape().back(), k.shape().back());
  out.assign(q.shape().begin(), q.shape().end() - 2);
  if (!a.flag("enable_gqa")) {
    a.broadcast_into(out, k.shape().first(k.shape().size() - 2));
    a.broadcast_into(out, v.shape().first(v.shape().size() - 2));
  }
  out.push_back(q.shape()[q.shape().size() - 2]);
  out.push_back(v.shape().back());
  return !a.bad();
}

} // namespace

Status attention(InferArgs &a) {
  Dims shape;
  return attention_shape(a, shape) ? a.done(a.tensor(0).element(), shape) : a.failed();
}

Status attention_math(InferArgs &a) {
  Dims shape;
  if (!attention_shape(a, shape))
    return a.failed();
  a.add(a.tensor(0).element(), shape);
  shape.back() = a.tensor(1).shape()[a.tensor(1).shape().size() - 2];
  return a.done(a.tensor(0).element(), shape);
}

Status attention_flash(InferArgs &a) {
  const Type q = a.tensor(0);
  Dims shape;
  if (!a.check(q.rank() == 4, kShapeError, "query must be [batch, heads, length, width]") ||
      !attention_shape(a, shape))
    return a.failed();
  a.add(q.element(), shape);
  const ElementType e = q.element() == ElementType::F64 ? ElementType::F64 : ElementType::F32;
  return a.done(e, q.shape().first(3));
}

Status multi_head_attention(InferArgs &a) {
  const Type q = a.tensor(0), k = a.tensor(1);
  if (!need_rank(a, 0, 3) || !need_rank(a, 1, 3))
    return a.failed();
  a.add(q);
  if (!a.flag("need_weights"))
    return a.done(q.element(), std::array{SymInt(0)});
  if (a.flag("average_attn_weights"))
    return a.done(q.element(), std::array{q.dim(0), q.dim(1), k.dim(1)});
  return a.done(q.element(), std::array{q.dim(0), a.integer("num_head"), q.dim(1), k.dim(1)});
}

} // namespace chute::aten::rule
