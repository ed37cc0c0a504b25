#include "eval/npz.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>

namespace chute::eval {
namespace {

std::string temporary(const char *name) {
  return (std::filesystem::path(testing::TempDir()) / name).string();
}
std::vector<std::byte> slurp(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)), {});
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}
std::vector<std::byte> npy(const std::string &header, const std::string &data) {
  std::string text = "\x93NUMPY";
  text += '\x01';
  text += '\0';
  text += static_cast<char>(header.size() & 255);
  text += static_cast<char>(header.size() >> 8);
  text += header + data;
  std::vector<std::byte> out(text.size());
  std::memcpy(out.data(), text.data(), text.size());
  return out;
}

TEST(Npz, RoundTripOfEveryType) {
  const std::string path = temporary("chute_npz_round.npz");
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const ElementType e :
       {ElementType::Bool, ElementType::U8, ElementType::I8, ElementType::U16, ElementType::I16,
        ElementType::U32, ElementType::I32, ElementType::U64, ElementType::I64, ElementType::F16,
        ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128}) {
    Tensor t = Tensor::zeros(e, {2, 3});
    t.mutable_data()[t.item_bytes()] = std::byte{1};
    arrays.emplace_back(std::string(ir::element_type_name(e)), t);
  }
  arrays.emplace_back("empty", Tensor::f32({0, 4}, {}));
  arrays.emplace_back("number", Tensor::f32({}, {2.5}));
  ASSERT_TRUE(write_npz(path, arrays));
  const auto back = read_numpy(path);
  ASSERT_TRUE(back) << back.error().message;
  ASSERT_EQ(back->size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*back)[i].first, arrays[i].first);
    EXPECT_TRUE(same_bits((*back)[i].second, arrays[i].second)) << arrays[i].first;
  }
  const std::vector<std::byte> first = slurp(path);
  ASSERT_TRUE(write_npz(path, arrays));
  EXPECT_EQ(slurp(path), first);
  std::remove(path.c_str());
}

TEST(Npz, NarrowFloatsAreWidenedOrRaw) {
  Tensor t = Tensor::allocate(ElementType::BF16, {1});
  t.mutable_as<u16>()[0] = 0x3FC0; // 1.5
  const auto wide = parse_npy(*format_npy(t), "t");
  ASSERT_TRUE(wide);
  EXPECT_EQ(wide->element(), ElementType::F32);
  EXPECT_EQ(wide->at(0), 1.5);
  const auto raw = parse_npy(*format_npy(t, {.raw_narrow_floats = true}), "t");
  EXPECT_EQ(raw->element(), ElementType::U16);
  EXPECT_EQ(raw->at(0), 0x3FC0);
}

TEST(Npy, FortranOrderAndByteOrder) {
  const auto t = parse_npy(npy("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }\n",
                               std::string("\0\1\0\2\0\3\0\4\0\5\0\6", 12)),
                           "t");
  ASSERT_TRUE(t) << t.error().message;
  const std::vector<double> want{1, 3, 5, 2, 4, 6};
  for (i64 i = 0; i < 6; ++i)
    EXPECT_EQ(t->at(i), want[static_cast<size_t>(i)]);
}

TEST(Npy, MalformedHeadersAreErrors) {
  const auto code = [](const std::string &header, const std::string &data = "") {
    const auto t = parse_npy(npy(header, data), "t");
    return t ? std::string("ok") : t.error().code;
  };
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "abcd"), "ok");
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "abcd"),
            "npz.npy.size");
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }"), "npz.npy.header");
  EXPECT_EQ(code("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }"),
            "npz.npy.header");
  EXPECT_EQ(code("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8), }"),
            "npz.npy.size");
  EXPECT_EQ(code("{'descr': '<U4', 'fortran_order': False, 'shape': (1,), }"), "npz.npy.dtype");
  EXPECT_EQ(code("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
            "npz.npy.header");
  EXPECT_EQ(code("{'descr': '<f4', 'shape': (1,), }", "abcd"), "npz.npy.header");
  EXPECT_EQ(code("{'descr': '<f4'"), "npz.npy.header");
  EXPECT_EQ(code(""), "npz.npy.header");
}

TEST(Npz, DamagedArchivesNeverCrash) {
  const std::string path = temporary("chute_npz_damage.npz");
  const std::vector<std::pair<std::string, Tensor>> arrays{{"a", Tensor::f32({3}, {1, 2, 3})},
                                                           {"b", Tensor::i64s({2}, {4, 5})}};
  ASSERT_TRUE(write_npz(path, arrays));
  const std::vector<std::byte> whole = slurp(path);
  std::remove(path.c_str());
  ASSERT_TRUE(parse_npz(whole, "t"));
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(parse_npz(std::span(whole).first(n), "t")) << n;
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 << random() % 8);
    static_cast<void>(parse_npz(bytes, "t"));
  }
}

TEST(Npz, MissingFile) {
  const auto r = read_numpy(temporary("chute_npz_not_there.npz"));
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().kind, ErrorKind::BadInput);
}

} // namespace
} // namespace chute::eval
