// The tests' own tools, against known figures: a generator that is wrong must not look like an engine that is wrong.
#include <gtest/gtest.h>

#include "support/checkpoint.h"
#include "support/files.h"
#include "support/sha256.h"

namespace proofinfer_test {

TEST(Support, sha256_of_the_standard_examples) {
  EXPECT_EQ(sha256_hex("", 0), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc", 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string million(1000000, 'a');
  EXPECT_EQ(sha256_hex(million.data(), million.size()), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Support, sha256_does_not_depend_on_how_the_message_is_cut) {
  std::string text(300, 'x');
  for (size_t cut = 0; cut <= text.size(); cut++) {
    Sha256 hash;
    hash.add(text.data(), cut);
    hash.add(text.data() + cut, text.size() - cut);
    EXPECT_EQ(hash.hex(), sha256_hex(text.data(), text.size()));
  }
}

Shape shape_of(const nlohmann::json &json) {
  return {json["dim"], json["hidden_dim"], json["n_layers"], json["n_heads"], json["n_kv_heads"], json["vocab_size"], json["seq_len"]};
}

TEST(Support, legacy_checkpoints_are_the_recorded_files) {
  const nlohmann::json all = golden("run_c_f32.json");
  for (const nlohmann::json &c : all["cases"]) {
    if (!c["seed"].is_number()) continue;
    std::vector<uint8_t> bytes = legacy_checkpoint(shape_of(c["shape"]), c["seed"]);
    EXPECT_EQ(sha256_hex(bytes), c["file_sha256"]) << c["name"];
    EXPECT_EQ(legacy_places(shape_of(c["shape"])).back().offset + legacy_places(shape_of(c["shape"])).back().bytes, bytes.size());
  }
}

TEST(Support, version_2_checkpoints_are_the_recorded_files) {
  const nlohmann::json all = golden("runq_c_q80.json");
  for (const nlohmann::json &c : all["cases"])
    EXPECT_EQ(sha256_hex(version2_checkpoint(shape_of(c["shape"]), c["seed"], c["group_size"])), c["file_sha256"]) << c["name"];
}

TEST(Support, scratch_files_hold_their_bytes_and_go_away) {
  std::string path;
  {
    ScratchFile file({1, 2, 3});
    path = file.path();
    EXPECT_EQ(read_file(path), (std::vector<uint8_t>{1, 2, 3}));
  }
  EXPECT_FALSE(read_file(path));
}

}  // namespace proofinfer_test
