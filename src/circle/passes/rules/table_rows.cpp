// table-rows: rows of a quantized table that has a scale for each row.
//
//   gather(dequantize(table), rows) → dequantize(gather(stored, rows)) × gather(scales, rows)
//
// A GATHER's result can not say which row has which scale, so `table` is brought to reals first:
// all of it, each time, for the few rows that are read. Its stored numbers, taken for numbers of
// scale 1, can be gathered as they are, and the scales from a table of their own. Exact: a stored
// number less its zero point is a whole float, and is multiplied by the same scale once.
//
// Storage becomes u8, which both of ONE's runtimes gather, so a table that is read elsewhere stays.
// So does one of which as many rows are read as it has.
#include "circle/passes.h"
#include "circle/passes/rules/rules.h"
#include "quant/params.h"

#include <algorithm>

namespace chute::circle {

using ir::Op;
using pass::Rewriter;

namespace {

/// Fewer rows than the table has, or an unknown number.
bool reads_few(Type rows, i64 of) { return !rows.has_static_shape() || rows.num_elements() < of; }

/// The stored numbers with scale 1, as u8.
Value *stored_numbers(Rewriter &rw, Op &before, const ir::Constant &table) {
  const bool is_signed = table.type.element() == ElementType::I8;
  const ir::Quantization *unit = quant::per_tensor(rw.context(), 1.0F, is_signed ? 128 : 0);
  const Type type = rw.context().tensor_type(ElementType::U8, table.type.shape(), unit);
  std::byte *bytes = nullptr;
  const ir::Constant *numbers = rw.graph().add_buffer(type, &bytes);
  table.copy_dense(bytes);
  if (is_signed) // the same order with a zero in the middle
    std::for_each_n(bytes, table.dense_bytes(), [](std::byte &b) { b ^= std::byte{0x80}; });
  return rw.before(before).constant(numbers);
}

/// One float for each row, in the rank of the table.
Value *per_row(Rewriter &rw, Op &before, Type table, size_t axis, std::span<const float> values) {
  Dims shape(static_cast<size_t>(table.rank()), 1);
  shape[axis] = static_cast<i64>(values.size());
  const SymDims dims(shape.begin(), shape.end());
  return f32_constant(rw, before, rw.context().tensor_type(ElementType::F32, dims), values);
}

bool table_rows(Op &op, Rewriter &rw) {
  const Op *dequantize = made_by(op.operand(0), op::DEQUANTIZE);
  const ir::Constant *table = dequantize ? data_of(dequantize->operand(0)) : nullptr;
  if (!table || !is_f32(op.result()))
    return false;
  const ir::Quantization *q = table->type.quant();
  const ElementType element = table->type.element();
  if (!q || q->kind != ir::QuantKind::PerChannel ||
      (element != ElementType::I8 && element != ElementType::U8))
    return false;
  i64 axis = op.attr("axis").as_int().value();
  axis += axis < 0 ? table->type.rank() : 0;
  if (q->axis != axis || op.attr("batch_dims").as_int().value() != 0) {
    rw.reject("scales go along another axis");
    return false;
  }
  const Type rows = op.operand(1)->type();
  if (!reads_few(rows, static_cast<i64>(q->scales.size()))) {
    rw.reject("as many rows are read as there are");
    return false;
  }
  if (!op.operand(0)->has_one_use() || !dequantize->operand(0)->has_one_use()) {
    rw.reject("the table is read elsewhere");
    return false;
  }
  const auto gather = [&](Value *from) {
    const Type row = from->type();
    SymDims shape(row.shape().begin(), row.shape().begin() + axis);
    shape.insert(shape.end(), rows.shape().begin(), rows.shape().end());
    shape.insert(shape.end(), row.shape().begin() + axis + 1, row.shape().end());
    const Type type = rw.context().with_shape(row, shape);
    Value *operands[] = {from, op.operand(1)};
    return recreate(rw, op, operands, std::span(&type, 1))->result();
  };
  const auto along = static_cast<size_t>(axis);
  Value *x = make(rw, op, op::DEQUANTIZE, {gather(stored_numbers(rw, op, *table))});
  if (std::ranges::any_of(q->zero_points, [](i64 z) { return z != 0; })) {
    const std::vector<float> zero(q->zero_points.begin(), q->zero_points.end());
    x = make(rw, op, op::SUB, {x, gather(per_row(rw, op, table->type, along, zero))});
  }
  Value *scales = gather(per_row(rw, op, table->type, along, q->scales));
  rw.replace(op, make(rw, op, op::MUL, {x, scales}));
  return true;
}

} // namespace

void add_table_rules(pass::PatternSet &set) { set.add("table-rows", {op::GATHER}, table_rows); }

void gather_table_rows(pass::PassContext &ctx) {
  static const pass::PatternSet set = [] {
    pass::PatternSet s;
    add_table_rules(s);
    return s;
  }();
  ctx.run(set);
}

} // namespace chute::circle
