#pragma once

#include "circle/file_view.h"

#include <charconv>
#include <string>
#include <string_view>

/// How parts of a file read in a listing. Internal to it.
namespace chute::circle {

template <class T>
u32 size_of(const T *vector) {
  return vector ? vector->size() : 0;
}

inline std::string_view text_of(const flatbuffers::String *s) {
  return s ? s->string_view() : std::string_view();
}

/// The shortest text that reads back as the same number.
template <class T>
std::string number(T v) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), v).ptr;
  return {text, end};
}

/// "31.8 MB"
std::string size_text(u64 bytes);
/// "1 operator", "2 operators"
std::string plural(u64 n, std::string_view what);
/// "f32[1,?,8]": dynamic dimensions are question marks.
void append_type(std::string &out, const ::circle::Tensor &t);

enum class Scheme : u8 { None, PerTensor, PerChannel, Block, MX, Custom };
constexpr std::string_view kSchemes[] = {"none",  "per tensor", "per channel",
                                         "block", "mx",         "custom"};

Scheme scheme_of(const ::circle::Tensor &t);
/// The i-th zero point, which may lie misaligned; 0 when there is none.
i64 zero_point(const ::circle::QuantizationParameters &q, u32 i);
/// "scale 0.5 zero point 3"; nothing without quantization.
void append_quantization(std::string &out, const ::circle::Tensor &t);
/// The value of a field as JSON; empty when it is the default. Long lists are shortened.
std::string field_text(const flatbuffers::Table &table, const Field &f);

} // namespace chute::circle
