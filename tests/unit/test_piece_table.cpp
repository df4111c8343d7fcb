// The table of pieces, and the digest that seeds it so that no file can be written to collide.
#include "format/piece_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/failure.h"

namespace proofinfer_test {

namespace {

// Pieces with their memory.
struct Made {
  explicit Made(const std::vector<std::string> &texts) {
    std::string all;
    EXPECT_EQ(pieces.offsets.allocate(&account, texts.size() + 1, "offsets", &failure), proofinfer::kOk);
    pieces.offsets[0] = 0;
    for (size_t i = 0; i < texts.size(); i++) all += texts[i], pieces.offsets[i + 1] = all.size();
    EXPECT_EQ(pieces.bytes.allocate(&account, all.size(), "bytes", &failure), proofinfer::kOk);
    std::copy(all.begin(), all.end(), pieces.bytes.data());
  }

  proofinfer::Account account{proofinfer::MemoryHooks{}, 0};
  proofinfer::Failure failure;
  proofinfer::Pieces pieces;
};

uint64_t digest_of(const std::vector<std::string> &texts) { return proofinfer::digest(Made(texts).pieces, texts.size()); }

proofinfer::Bytes bytes_of(const std::string &text) { return {reinterpret_cast<const unsigned char *>(text.data()), text.size()}; }

}  // namespace

TEST(PieceTable, digest_depends_on_every_byte_every_border_and_the_number_of_pieces) {
  const std::vector<std::string> texts = {"", "ab", "c", std::string("\0\xff", 2), "ab"};
  std::set<uint64_t> found = {digest_of(texts),      digest_of({}),         digest_of({""}),
                              digest_of({"ab", ""}), digest_of({"", "ab"}), digest_of({"a", "b"})};
  EXPECT_EQ(found.size(), 6u);
  size_t wanted = found.size();
  for (size_t i = 0; i < texts.size(); i++)
    for (size_t k = 0; k < texts[i].size(); k++)
      for (int bit = 0; bit < 8; bit++) {
        std::vector<std::string> changed = texts;
        changed[i][k] = static_cast<char>(changed[i][k] ^ 1 << bit);
        found.insert(digest_of(changed));
        EXPECT_EQ(found.size(), ++wanted) << "piece " << i << ", byte " << k << ", bit " << bit;
      }
}

TEST(PieceTable, finds_each_piece_by_its_first_id_and_nothing_else) {
  EXPECT_EQ(proofinfer::PieceTable().find(bytes_of("a")), -1);
  for (size_t count : {1, 2, 3, 4, 5, 100, 1000}) {
    std::vector<std::string> texts = {""};
    for (size_t i = 1; i < count; i++) texts.push_back(std::to_string(i % 700));
    Made made(texts);
    proofinfer::PieceTable table;
    ASSERT_EQ(table.reserve(&made.account, &made.pieces, count, count, &made.failure), proofinfer::kOk);
    for (size_t i = 0; i < count; i++) table.insert(static_cast<int32_t>(i));
    for (size_t i = 0; i < count; i++)
      EXPECT_EQ(table.find(bytes_of(texts[i])), std::find(texts.begin(), texts.end(), texts[i]) - texts.begin());
    for (const char *other : {"a", "01", "701", "-1"}) EXPECT_EQ(table.find(bytes_of(other)), -1);
  }
}

}  // namespace proofinfer_test
