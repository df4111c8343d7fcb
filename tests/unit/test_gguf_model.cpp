// Models of GGUF files: every lie of keys and tensors is named, keys mean what they should, conversions and what the API says of them.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "support/files.h"
#include "support/gguf_lies.h"
#include "support/handles.h"

namespace proofinfer_test {

namespace {

Answer refused(const GgufFile &file) {
  Bytes bytes = file.bytes();
  bytes.shrink_to_fit();
  Answer answer;
  open_model(bytes, nullptr, &answer);
  return answer;
}

// Logits of every position, of a few tokens.
std::vector<float> run(const Model &model) {
  std::vector<float> all;
  Session session = make_session(model);
  EXPECT_TRUE(append(session, {1, 0, 4, 5, 3, 1, 2, 2, 5}).ok());
  for (size_t i = 0; i < 9; i++)
    for (float value : logits(session, i)) all.push_back(value);
  return all;
}
std::vector<float> run(const GgufFile &file) { return run(open_model(file.bytes())); }

bool same(const std::vector<float> &a, const std::vector<float> &b) {
  return !a.empty() && a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

GgufToy small_toy() {
  GgufToy toy;
  toy.dim = 32, toy.n_heads = 2, toy.n_kv_heads = 1, toy.head_size = 4, toy.hidden_dim = 3, toy.n_layers = 1, toy.vocab_size = 6;
  toy.types = {"q4_1", "f16", "q8_0"};
  toy.shared_classifier = false;
  toy.rope = {2.0f, 1.0f, 4.0f};
  return toy;
}

// One that fits llama2.c's formats.
GgufToy plain_toy(const std::vector<std::string> &types) {
  GgufToy toy;
  toy.types = types;
  return toy;
}

std::string text_of(int32_t (*function)(const proofinfer_model *, size_t, char *, size_t, size_t *, proofinfer_error **),
                    const Model &model, size_t index) {
  std::string text(20000, '?');
  size_t needed = 0;
  Answer answer = answer_of(function, model.get(), index, text.data(), text.size(), &needed);
  EXPECT_TRUE(answer.ok()) << answer;
  text.resize(needed);
  return text;
}

}  // namespace

TEST(GgufModel, every_lie_is_refused_and_named) {
  const GgufFile honest = toy_gguf(small_toy(), 2);
  ASSERT_TRUE(open_model(honest.bytes()));
  size_t count = 0;
  for (const GgufLie &lie : gguf_lies()) {
    GgufFile file = honest;
    lie.tell(&file);
    Answer answer = refused(file);
    EXPECT_EQ(answer.status, lie.status) << count << ": " << answer << ", expected: " << lie.says;
    EXPECT_TRUE(answer.says(lie.says)) << count << ": " << answer << ", expected: " << lie.says;
    count++;
  }
  EXPECT_GT(count, 60u);
}

TEST(GgufModel, a_file_cut_anywhere_is_refused) {
  Bytes whole = toy_gguf(small_toy(), 2).bytes();
  for (size_t size = 0; size < whole.size() - 32; size += size < 1500 ? 1 : 37) {
    Bytes cut(whole.begin(), whole.begin() + std::ptrdiff_t(size));
    cut.shrink_to_fit();
    Answer answer;
    open_model(cut, nullptr, &answer);
    if (size >= 4)
      EXPECT_EQ(answer.status, PROOFINFER_E_TRUNCATED) << size << ": " << answer;
    else
      EXPECT_NE(answer.status, PROOFINFER_OK) << size;
  }
}

TEST(GgufModel, good_files_load_whatever_their_shape) {
  for (const GgufElementType &element : kGgufElements) {
    GgufToy toy = small_toy();
    toy.types = {element.name};
    toy.dim = std::max(toy.dim, uint32_t(element.columns));
    Model model = open_model(toy_gguf(toy, 3).bytes());
    ASSERT_TRUE(model) << element.name;
    for (float value : run(model)) ASSERT_TRUE(value - value == 0.0f) << element.name;
  }
  GgufFile file = toy_gguf(small_toy(), 2);
  const std::vector<float> expected = run(file);
  file.add("llama.vocab_size", 5u);  // padded
  file.add("tokenizer.ggml.tokens", std::vector<std::string>(4, "t"));
  file.add("llama.rope.dimension_count", 4u);
  file.add("llama.expert_count", 0u);
  file.add("llama.attention.causal", true);
  file.add("llama.something.unknown", 3u);
  file.remove_key("llama.feed_forward_length");
  file.add_array("llama.feed_forward_length", kI32, std::vector<int32_t>{3});
  EXPECT_TRUE(same(run(file), expected));
}

TEST(GgufModel, keys_change_what_they_should) {
  GgufToy toy = small_toy();
  toy.rope = {0, 0, 0};
  const std::vector<float> plain = run(toy_gguf(toy, 2));
  toy.rope[0] = 2.0f;
  const std::vector<float> linear = run(toy_gguf(toy, 2));
  EXPECT_FALSE(same(plain, linear));
  GgufFile file = toy_gguf(toy, 2);
  file.remove_key("llama.rope.scaling.type");  // a factor alone is a linear one
  EXPECT_TRUE(same(run(file), linear));
  file.remove_key("llama.rope.scaling.factor");
  file.add("llama.rope.scale_linear", 2.0f);
  EXPECT_TRUE(same(run(file), linear));
  file.add("llama.rope.scaling.type", "none");
  EXPECT_TRUE(same(run(file), plain));
  // Factors of 2 for every frequency are what a linear factor of 2 is.
  toy.rope[0] = 0.0f;
  file = toy_gguf(toy, 2);
  Bytes twos;
  put(&twos, 2.0f), put(&twos, 2.0f);
  file.add_tensor("rope_freqs.weight", {2}, 0, twos);
  EXPECT_TRUE(same(run(file), linear));
  file.add("llama.rope.scaling.type", "llama3");
  EXPECT_TRUE(same(run(file), linear));
  toy.rope_base = 500000.0f;
  EXPECT_FALSE(same(run(toy_gguf(toy, 2)), plain));
  toy.rope_base = 10000.0f, toy.epsilon = 0.5f;
  EXPECT_FALSE(same(run(toy_gguf(toy, 2)), plain));
  toy.epsilon = 1e-5f;
  file = toy_gguf(toy, 2);
  file.remove_key("llama.rope.freq_base");
  EXPECT_TRUE(same(run(file), plain));
  file.remove_tensor("output.weight");
  EXPECT_FALSE(same(run(file), plain));
  // As many kv heads as heads, if the file does not say.
  toy.n_kv_heads = 2;
  file = toy_gguf(toy, 2);
  const std::vector<float> whole = run(file);
  file.remove_key("llama.attention.head_count_kv");
  EXPECT_TRUE(same(run(file), whole));
}

TEST(GgufModel, sizes_can_be_given_for_every_layer_if_they_are_equal) {
  GgufToy toy = small_toy();
  toy.n_layers = 2;
  const GgufFile one = toy_gguf(toy, 2);
  GgufFile each = one;
  each.remove_key("llama.attention.head_count");
  each.add_array("llama.attention.head_count", kI32, std::vector<int32_t>{2, 2});
  EXPECT_TRUE(same(run(each), run(one)));
  each.remove_key("llama.attention.head_count");
  each.add_array("llama.attention.head_count", kU32, std::vector<uint32_t>{2, 4});
  const Answer answer = refused(each);
  EXPECT_EQ(answer.status, PROOFINFER_E_UNSUPPORTED);
  EXPECT_TRUE(answer.says("an array whose number 1 is 4; expected the same for every layer, 2")) << answer;
}

TEST(GgufModel, a_window_as_long_as_the_context_changes_nothing) {
  GgufFile file = toy_gguf(small_toy(), 2);
  for (uint32_t window : {80u, 81u, 0u}) {
    file.remove_key("llama.attention.sliding_window");
    file.add("llama.attention.sliding_window", window);
    EXPECT_EQ(model_i64(open_model(file.bytes()), PROOFINFER_MODEL_SEQ_LEN), 80) << window;
  }
}

TEST(GgufModel, a_sliding_window_limits_the_context) {
  GgufFile file = toy_gguf(small_toy(), 2);
  file.add("llama.attention.sliding_window", 30u);
  EXPECT_EQ(model_i64(open_model(file.bytes()), PROOFINFER_MODEL_SEQ_LEN), 30);
  file.key("llama.attention.sliding_window")->value = {0, 0, 0, 0};
  EXPECT_EQ(model_i64(open_model(file.bytes()), PROOFINFER_MODEL_SEQ_LEN), 80);
}

TEST(GgufModel, what_it_says_of_itself) {
  GgufFile file = toy_gguf(small_toy(), 2);
  file.version = 2;
  file.add("a.text", "x\n");
  file.add("a.float", 0.1f);
  file.add_number("a.i8", kI8, int8_t(-3));
  file.add_number("a.i64", kI64, -(int64_t(1) << 40));
  file.add_number("a.f64", kF64, 0.1);
  file.add_array("a.numbers", kI32, std::vector<int32_t>{1, -2, 3});
  file.add("a.many", std::vector<std::string>(9, std::string(100, 'y')));
  file.add("a.long", std::string(8191, 'x') + "\xE2\x96\x81");
  Model model = open_model(file.bytes());
  ASSERT_TRUE(model);
  EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_FORMAT), "GGUF version 2");
  EXPECT_STREQ(proofinfer_model_get_text(model.get(), PROOFINFER_MODEL_ELEMENT_TYPE), "mixed");
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_HEAD_SIZE), 4);
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_SHARED_CLASSIFIER), 0);
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_GROUP_SIZE), 0);
  ASSERT_EQ(proofinfer_model_tensor_count(model.get()), file.tensors.size());
  int64_t weights = 0;
  for (size_t i = 0; i < file.tensors.size(); i++) {
    EXPECT_EQ(text_of(proofinfer_model_tensor_name, model, i), file.tensors[i].name);
    const char *type = proofinfer_model_tensor_type(model.get(), i);
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(gguf_element_named(type).type, file.tensors[i].type);
    int64_t quantized = -1;
    EXPECT_TRUE(answer_of(proofinfer_model_tensor_get_i64, model.get(), i, PROOFINFER_TENSOR_IS_QUANTIZED, &quantized).ok());
    EXPECT_EQ(quantized, gguf_element_named(type).columns > 1);
    int64_t count = 1;
    for (uint64_t size : file.tensors[i].dims) count *= int64_t(size);
    if (file.tensors[i].name != "rope_freqs.weight") weights += count;
  }
  EXPECT_EQ(model_i64(model, PROOFINFER_MODEL_PARAMETER_COUNT), weights);
  EXPECT_EQ(proofinfer_model_tensor_type(model.get(), file.tensors.size()), nullptr);
  ASSERT_EQ(proofinfer_model_metadata_count(model.get()), file.keys.size());
  std::vector<std::string> values;
  for (size_t i = 0; i < file.keys.size(); i++) {
    EXPECT_EQ(text_of(proofinfer_model_metadata_key, model, i), file.keys[i].name);
    values.push_back(text_of(proofinfer_model_metadata_text, model, i));
  }
  const std::string piece = "\"" + std::string(64, 'y') + "... (100 bytes)\"";
  std::string many = "[" + piece;
  for (int i = 1; i < 8; i++) many += ", " + piece;
  const std::vector<std::string> last(values.end() - 8, values.end());
  EXPECT_EQ(values[0], "llama");
  EXPECT_EQ(last, (std::vector<std::string>{"x\n", "0.100000001", "-3", "-1099511627776", "0.10000000000000001", "[1, -2, 3]",
                                            many + ", ...] (9 of string)", std::string(8191, 'x') + "... (8194 bytes)"}));
  size_t needed = 0;
  for (size_t index : {file.keys.size(), SIZE_MAX}) {
    EXPECT_EQ(answer_of(proofinfer_model_metadata_key, model.get(), index, nullptr, size_t(0), &needed).message,
              "metadata index is " + std::to_string(index) + "; expected 0 to " + std::to_string(file.keys.size() - 1));
    EXPECT_EQ(answer_of(proofinfer_model_metadata_text, model.get(), index, nullptr, size_t(0), &needed).status, PROOFINFER_E_ARGUMENT);
  }
  EXPECT_EQ(answer_of(proofinfer_model_metadata_text, model.get(), size_t(0), nullptr, size_t(0), &needed).status, PROOFINFER_E_BUFFER);
  EXPECT_EQ(needed, 5u);
  char text[100];
  EXPECT_TRUE(answer_of(proofinfer_model_metadata_key, model.get(), size_t(0), text, sizeof(text), nullptr).ok());
  EXPECT_TRUE(answer_of(proofinfer_model_metadata_text, model.get(), size_t(0), text, sizeof(text), nullptr).ok());
  EXPECT_EQ(std::string(text, 5), "llama");
  Model plain = open_model(toy_gguf(plain_toy({"q4_0"}), 1).bytes());
  EXPECT_STREQ(proofinfer_model_get_text(plain.get(), PROOFINFER_MODEL_ELEMENT_TYPE), "q4_0");
  EXPECT_STREQ(proofinfer_model_get_text(plain.get(), PROOFINFER_MODEL_FORMAT), "GGUF version 3");
}

TEST(GgufModel, a_long_text_is_cut_between_characters) {
  const std::string llama = "\xF0\x9F\xA6\x99", stray = "\x80\x80\x80\x80\x80";  // of which no character begins
  for (size_t end = 8186; end <= 8193; end++) {
    GgufFile file = toy_gguf(small_toy(), 2);
    file.add("a.text", std::string(end, 'x') + llama + "y");
    file.add("a.stray", std::string(end, 'x') + stray + std::string(9, 'y'));
    Model model = open_model(file.bytes());
    auto shown = [&](size_t from_last) {
      return text_of(proofinfer_model_metadata_text, model, proofinfer_model_metadata_count(model.get()) - from_last);
    };
    const std::string whole = std::string(end, 'x') + llama + "y";
    const size_t most = 8192, cut = end >= most ? most : end + 4 <= most ? end + 4 : end;
    EXPECT_EQ(shown(2), end + 5 <= most ? whole : whole.substr(0, cut) + "... (" + std::to_string(end + 5) + " bytes)") << end;
    EXPECT_TRUE(shown(1).find("... (" + std::to_string(end + 14) + " bytes)") <= most) << end;
  }
}

TEST(GgufModel, a_state_belongs_to_its_weights_types_and_constants) {
  Model model = open_model(toy_gguf(small_toy(), 2).bytes());
  Session session = make_session(model);
  ASSERT_TRUE(append(session, {1, 2, 3}).ok());
  Bytes state(100000);
  size_t needed = 0;
  ASSERT_TRUE(answer_of(proofinfer_session_save, session.get(), state.data(), state.size(), &needed).ok());
  auto restores = [&state, needed](const GgufFile &file) {
    Session other = make_session(open_model(file.bytes()));
    return answer_of(proofinfer_session_restore, other.get(), state.data(), needed).status;
  };
  EXPECT_EQ(restores(toy_gguf(small_toy(), 2)), PROOFINFER_OK);
  EXPECT_EQ(restores(toy_gguf(small_toy(), 4)), PROOFINFER_E_ARGUMENT);
  GgufToy toy = small_toy();
  toy.epsilon = 1e-6f;
  EXPECT_EQ(restores(toy_gguf(toy, 2)), PROOFINFER_E_ARGUMENT);
  toy = small_toy();
  toy.rope_base = 20000.0f;
  EXPECT_EQ(restores(toy_gguf(toy, 2)), PROOFINFER_E_ARGUMENT);
  GgufFile file = toy_gguf(small_toy(), 2);
  file.tensor("blk.0.attn_q.weight")->type = 30;  // the same bits as another 16-bit type
  EXPECT_EQ(restores(file), PROOFINFER_E_ARGUMENT);
}

// The same weights as a llama2.c checkpoint, whose order of tensors is written down here.
TEST(GgufModel, every_layer_has_the_tensors_of_its_name) {
  for (bool shared : {true, false}) {
    GgufToy toy = plain_toy({"f32"});
    toy.n_layers = 3;
    toy.shared_classifier = shared;
    GgufFile file = toy_gguf(toy, 7);
    Bytes checkpoint;
    const auto vocab_size = int32_t(toy.vocab_size);
    for (int32_t size : {int32_t(toy.dim), int32_t(toy.hidden_dim), int32_t(toy.n_layers), int32_t(toy.n_heads), int32_t(toy.n_kv_heads),
                         shared ? vocab_size : -vocab_size, int32_t(toy.context_length)})
      put(&checkpoint, size);
    auto append = [&](const std::string &name) {
      const Bytes &data = file.tensor(name)->data;
      checkpoint.insert(checkpoint.end(), data.begin(), data.end());
    };
    append("token_embd.weight");
    for (const char *kind : {"attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_down", "ffn_up"})
      for (uint32_t l = 0; l < toy.n_layers; l++) append("blk." + std::to_string(l) + "." + kind + ".weight");
    append("output_norm.weight");
    checkpoint.resize(checkpoint.size() + size_t(toy.context_length) * toy.head_size * sizeof(float));  // tables of no use
    if (!shared) append("output.weight");
    EXPECT_TRUE(same(run(file), run(open_model(checkpoint))));
  }
}

// Rows of wide models are few, whatever makes them wide, so that activations take about 8 MB.
TEST(GgufModel, activations_of_a_wide_embedding_take_little_memory) {
  GgufToy toy = plain_toy({"f32"});
  toy.dim = 16384, toy.n_heads = 1, toy.n_kv_heads = 1, toy.head_size = 2, toy.hidden_dim = 16, toy.n_layers = 1, toy.vocab_size = 6;
  toy.context_length = 128;
  const Model model = open_model(toy_gguf(toy, 3).bytes());
  ASSERT_TRUE(model);
  EXPECT_LT(proofinfer_session_memory_bytes(make_session(model).get()), uint64_t(16) << 20);
}

// The 16-bit types widen exactly and follow the float contract: a checkpoint of the widened weights gives the same bits.
TEST(GgufModel, float_types_convert_to_checkpoints_with_the_same_logits) {
  const std::string folder = testing::TempDir() + "gguf_model." + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const std::string to = folder + "/to.bin";
  auto convert = [&to](const GgufFile &file, int32_t format) {
    ScratchFile from(file.bytes());
    return answer_of(proofinfer_convert, from.path().data(), from.path().size(), to.data(), to.size(), format, int32_t(0), nullptr);
  };
  for (const std::vector<std::string> &types : std::vector<std::vector<std::string>>{{"f32"}, {"f16"}, {"bf16"}, {"f16", "f32", "bf16"}})
    for (bool shared : {true, false}) {
      GgufToy toy = plain_toy(types);
      toy.shared_classifier = shared;
      GgufFile file = toy_gguf(toy, 5);
      // Subnormal halves, infinities and NaN are weights too.
      Bytes &embedding = file.tensor("token_embd.weight")->data;
      if (types[0] != "f32") embedding[0] = 1, embedding[1] = 0, embedding[2] = 0xff, embedding[3] = 0x83;
      for (int32_t format : {PROOFINFER_FORMAT_LEGACY, PROOFINFER_FORMAT_VERSION_1}) {
        Answer answer = convert(file, format);
        ASSERT_TRUE(answer.ok()) << answer;
        EXPECT_TRUE(same(run(open_model(to)), run(file))) << types[0];
      }
      EXPECT_TRUE(convert(file, PROOFINFER_FORMAT_VERSION_2).ok());
    }
  auto refuses = [&convert](const GgufToy &toy, int32_t format, const std::string &says) {
    Answer answer = convert(toy_gguf(toy, 5), format);
    EXPECT_EQ(answer.status, PROOFINFER_E_UNSUPPORTED) << answer;
    EXPECT_TRUE(answer.says(says)) << answer;
  };
  constexpr int32_t kFormat = PROOFINFER_FORMAT_VERSION_1;
  refuses(plain_toy({"f32", "q4_0"}), kFormat, "tensor blk.0.attn_q.weight is of the type q4_0; expected f32, f16 or bf16");
  refuses(plain_toy({"f32"}), PROOFINFER_FORMAT_PACKED, "a GGUF file cannot be packed");
  GgufToy toy = plain_toy({"f32"});
  toy.head_size = 8;
  refuses(toy, kFormat, "4 heads of 8 elements; expected the embedding's 64 in all");
  toy = plain_toy({"f32"}), toy.epsilon = 1e-6f;
  refuses(toy, kFormat, "the epsilon of its norms is another than 0.00001");
  toy = plain_toy({"f32"}), toy.rope_base = 100000.0f;
  refuses(toy, kFormat, "its RoPE has another base than 10000, or is scaled");
  toy = plain_toy({"f32"}), toy.rope[0] = 2.0f;
  refuses(toy, kFormat, "its RoPE has another base than 10000, or is scaled");
  toy = plain_toy({"f32"}), toy.rope[1] = 1.0f, toy.rope[2] = 2.0f;
  refuses(toy, kFormat, "its RoPE has another base than 10000, or is scaled");
  std::filesystem::remove_all(folder);
}

TEST(GgufModel, memory_that_is_refused_while_a_file_is_refused_is_a_failure) {
  GgufFile file = toy_gguf(small_toy(), 2);
  file.add_tensor("x", {8}, 0, Bytes(32));
  std::vector<int32_t> statuses;
  for (uint64_t fail = 0; statuses.empty() || statuses.back() == PROOFINFER_E_MEMORY; fail++) {
    CountingAllocator allocator;
    Options options = make_options();
    allocator.install(options);
    allocator.fail_call(fail);
    Answer answer;
    open_model(file.bytes(), options.get(), &answer);
    EXPECT_EQ(allocator.held_bytes(), 0u);
    statuses.push_back(answer.status);
  }
  EXPECT_GT(statuses.size(), 5u);
  EXPECT_EQ(statuses.back(), PROOFINFER_E_UNSUPPORTED);
}

TEST(GgufModel, memory_that_is_refused_at_any_point_is_a_failure) {
  Bytes bytes = toy_gguf(small_toy(), 2).bytes();
  size_t refusals = 0;
  for (uint64_t fail = 0; fail < 1000; fail++) {
    CountingAllocator allocator;
    Options options = make_options();
    allocator.install(options);
    allocator.fail_call(fail);
    Answer answer;
    Model model = open_model(bytes, options.get(), &answer);
    if (answer.ok()) break;
    EXPECT_EQ(answer.status, PROOFINFER_E_MEMORY) << answer;
    EXPECT_EQ(allocator.held_bytes(), 0u);
    refusals++;
  }
  EXPECT_GT(refusals, 15u);
  EXPECT_LT(refusals, 1000u);
}

}  // namespace proofinfer_test
