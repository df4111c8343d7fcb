// Writes GGUF files, good ones and, as every part can be set, bad ones. One thread at a time.
#ifndef PROOFINFER_TESTS_SUPPORT_GGUF_H
#define PROOFINFER_TESTS_SUPPORT_GGUF_H

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace proofinfer_test {

using Bytes = std::vector<uint8_t>;

// Value types, as files number them.
enum GgufValue : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

template <typename T>
void put(Bytes *bytes, T value) {
  uint8_t raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  for (size_t i = 0; i < sizeof(T) / 2; i++) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
#endif
  bytes->insert(bytes->end(), raw, raw + sizeof(T));
}

inline void put_text(Bytes *bytes, const std::string &text) {
  put(bytes, uint64_t(text.size()));
  bytes->insert(bytes->end(), text.begin(), text.end());
}

struct GgufFile {
  struct Key {
    std::string name;
    uint32_t type;
    Bytes value;
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dims;  // columns first
    uint32_t type;
    Bytes data;
    std::optional<uint64_t> offset = std::nullopt;  // what the entry says; else where the data is
  };

  std::vector<Key> keys;
  std::vector<Tensor> tensors;
  std::string magic = "GGUF";
  uint32_t version = 3;
  size_t alignment = 32;                            // of the data; the key is the caller's
  std::optional<uint64_t> tensor_count, key_count;  // what the header says
  bool fill_last = true;                            // the last tensor's data, too, is filled up to the alignment

  template <typename T>
  void add_number(const std::string &name, uint32_t type, T value) {
    Bytes bytes;
    put(&bytes, value);
    keys.push_back({name, type, bytes});
  }
  void add(const std::string &name, uint32_t value) { add_number(name, kU32, value); }
  void add(const std::string &name, float value) { add_number(name, kF32, value); }
  void add(const std::string &name, bool value) { add_number(name, kBool, uint8_t(value)); }
  void add(const std::string &name, const std::string &value) {
    Bytes bytes;
    put_text(&bytes, value);
    keys.push_back({name, kString, bytes});
  }
  void add(const std::string &name, const char *value) { add(name, std::string(value)); }
  void add(const std::string &name, const std::vector<std::string> &values) {
    Bytes bytes;
    put(&bytes, uint32_t(kString)), put(&bytes, uint64_t(values.size()));
    for (const std::string &value : values) put_text(&bytes, value);
    keys.push_back({name, kArray, bytes});
  }
  template <typename T>
  void add_array(const std::string &name, uint32_t type, const std::vector<T> &values) {
    Bytes bytes;
    put(&bytes, type), put(&bytes, uint64_t(values.size()));
    for (T value : values) put(&bytes, value);
    keys.push_back({name, kArray, bytes});
  }
  void add_tensor(const std::string &name, std::vector<uint64_t> dims, uint32_t type, const Bytes &data) {
    tensors.push_back({name, std::move(dims), type, data});
  }
  Key *key(const std::string &name) {
    for (Key &key : keys)
      if (key.name == name) return &key;
    return nullptr;
  }
  Tensor *tensor(const std::string &name) {
    for (Tensor &tensor : tensors)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  void remove_key(const std::string &name) {
    for (size_t i = keys.size(); i-- > 0;)
      if (keys[i].name == name) keys.erase(keys.begin() + std::ptrdiff_t(i));
  }
  void remove_tensor(const std::string &name) {
    for (size_t i = tensors.size(); i-- > 0;)
      if (tensors[i].name == name) tensors.erase(tensors.begin() + std::ptrdiff_t(i));
  }

  // The file's bytes up to the data.
  Bytes directory() const {
    Bytes bytes(magic.begin(), magic.end());
    put(&bytes, version);
    put(&bytes, tensor_count.value_or(tensors.size()));
    put(&bytes, key_count.value_or(keys.size()));
    for (const Key &key : keys) {
      put_text(&bytes, key.name);
      put(&bytes, key.type);
      bytes.insert(bytes.end(), key.value.begin(), key.value.end());
    }
    uint64_t offset = 0;
    for (const Tensor &tensor : tensors) {
      put_text(&bytes, tensor.name);
      put(&bytes, uint32_t(tensor.dims.size()));
      for (uint64_t size : tensor.dims) put(&bytes, size);
      put(&bytes, tensor.type);
      put(&bytes, tensor.offset.value_or(offset));
      offset += (tensor.data.size() + alignment - 1) / alignment * alignment;
    }
    return bytes;
  }
  Bytes bytes() const {
    Bytes bytes = directory();
    if (tensors.empty()) return bytes;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    for (size_t i = 0; i < tensors.size(); i++) {
      bytes.insert(bytes.end(), tensors[i].data.begin(), tensors[i].data.end());
      if (fill_last || i + 1 < tensors.size()) bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    }
    return bytes;
  }
};

}  // namespace proofinfer_test

#endif
