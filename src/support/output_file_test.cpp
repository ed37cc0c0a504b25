#include "support/mapped_file.h"
#include "support/output_file.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <unistd.h>

namespace chute {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "chuteXXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string &name) const { return (folder_ / name).string(); }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  std::string content(const std::string &name) const {
    std::ifstream in(path(name), std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
  }
  fs::path folder_;
};

TEST_F(Files, AppearsOnCommit) {
  auto file = OutputFile::create(path("out"));
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->write("head"));
  ASSERT_TRUE(file->write_zeros(3));
  ASSERT_TRUE(file->write(std::string(200000, 'x'))); // past the buffer
  ASSERT_TRUE(file->write("tail"));
  EXPECT_EQ(file->position(), 4u + 3 + 200000 + 4);
  const std::string patch = "HE";
  ASSERT_TRUE(file->write_at(0, std::as_bytes(std::span(patch))));
  EXPECT_FALSE(fs::exists(path("out")));
  ASSERT_TRUE(file->commit(true));
  EXPECT_EQ(content("out"), "HEad" + std::string(3, '\0') + std::string(200000, 'x') + "tail");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, NothingIsLeftWithoutCommit) {
  std::ofstream(path("out")) << "old";
  {
    auto file = OutputFile::create(path("out"));
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE(file->write("new"));
    EXPECT_EQ(count(), 2u);
  }
  EXPECT_EQ(content("out"), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(Files, KeepsTheMode) {
  std::ofstream(path("out")) << "old";
  fs::permissions(path("out"), fs::perms::owner_read | fs::perms::owner_write);
  auto file = OutputFile::create(path("out"));
  ASSERT_TRUE(file.has_value() && file->commit());
  EXPECT_EQ(fs::status(path("out")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(Files, Errors) {
  for (const std::string &bad : {path("missing/out"), folder_.string()}) {
    const auto file = OutputFile::create(bad);
    ASSERT_FALSE(file.has_value());
    EXPECT_EQ(file.error().kind, ErrorKind::Output);
    EXPECT_EQ(file.error().code, "file.create");
    EXPECT_EQ(file.error().object, bad);
  }
}

TEST_F(Files, Maps) {
  std::ofstream(path("in")) << "content";
  const auto file = MappedFile::open(path("in"));
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ((*file)->text(), "content");
  (*file)->advise(0, 1 << 20, MappedFile::Access::WillNeed);
  (*file)->advise(100, 1, MappedFile::Access::DontNeed);
  fs::remove(path("in")); // the mapping lives on
  EXPECT_EQ((*file)->text(), "content");
}

TEST_F(Files, MapsEmptyAndRefusesOthers) {
  std::ofstream(path("empty")).close();
  const auto empty = MappedFile::open(path("empty"));
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ((*empty)->size(), 0u);
  for (const std::string &bad :
       {path("missing"), folder_.string(), std::string("/dev/null"), std::string("-")}) {
    const auto file = MappedFile::open(bad);
    ASSERT_FALSE(file.has_value()) << bad;
    EXPECT_EQ(file.error().code, "file.open");
    EXPECT_EQ(file.error().kind, ErrorKind::BadInput);
  }
}

} // namespace
} // namespace chute
