#include "format/gguf.h"

#include <stdio.h>
#include <string.h>

#include "format/recognize.h"
#include "proved/checked.h"

namespace proofinfer {

namespace {

constexpr const char *kTypeNames[kGgufTypes] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
constexpr uint8_t kTypeBytes[kGgufTypes] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

constexpr GgufElement kElements[] = {
    {"F32", "f32", 0, 1, 4},        {"F16", "f16", 1, 1, 2},        {"Q4_0", "q4_0", 2, 32, 18}, {"Q4_1", "q4_1", 3, 32, 20},
    {"Q5_0", "q5_0", 6, 32, 22},    {"Q5_1", "q5_1", 7, 32, 24},    {"Q8_0", "q8_0", 8, 32, 34}, {"Q4_K", "q4_k", 12, 256, 144},
    {"Q5_K", "q5_k", 13, 256, 176}, {"Q6_K", "q6_k", 14, 256, 210}, {"BF16", "bf16", 30, 1, 2},
};
// What other numbers mean, for messages.
struct OtherElement {
  uint32_t type;
  const char *name;
};
constexpr OtherElement kOtherElements[] = {
    {9, "Q8_1"},   {10, "Q2_K"},   {11, "Q3_K"},  {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"},
    {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"}, {23, "IQ4_XS"},  {24, "I8"},     {25, "I16"},
    {26, "I32"},   {27, "I64"},    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},  {39, "MXFP4"},
};
constexpr const char *kElementNames = "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K and Q6_K";

constexpr size_t kHeaderBytes = 24;
// The least bytes that an entry takes. A key: a name of one byte with its length, a type, a value of one byte. A tensor: a name, the number of
// dimensions, one of them, type and offset.
constexpr uint64_t kLeastKeyBytes = 8 + 1 + 4 + 1, kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kTextLengthBytes = 8;
// Of a name, in messages.
constexpr int kShownBytes = 100;

int shown(size_t name_bytes) { return name_bytes < static_cast<size_t>(kShownBytes) ? static_cast<int>(name_bytes) : kShownBytes; }

// Room for `count` elements, of which `used` are kept; at least doubled, so that growing stays linear.
template <typename T>
Status make_room(Buffer<T> *buffer, size_t used, size_t count, Account *account, const char *what, Failure *failure) {
  if (count <= buffer->count()) return kOk;
  size_t wanted = buffer->count() * 2 > count ? buffer->count() * 2 : count;
  Buffer<T> larger;
  Status status = larger.allocate(account, wanted, what, failure);
  if (status != kOk) return status;
  if (used) memcpy(static_cast<void *>(larger.data()), buffer->data(), used * sizeof(T));
  buffer->swap(larger);
  return kOk;
}

// Sorts indices: a heap, so that no order of a file makes it slow or deep. before(a, b): a belongs before b.
template <typename Before>
void sort_indices(uint32_t *items, size_t count, const Before &before) {
  auto sift_down = [&](size_t at, size_t end) {
    for (size_t child; (child = 2 * at + 1) < end; at = child) {
      if (child + 1 < end && before(items[child], items[child + 1])) child++;
      if (!before(items[at], items[child])) return;
      uint32_t item = items[at];
      items[at] = items[child], items[child] = item;
    }
  };
  for (size_t i = count / 2; i-- > 0;) sift_down(i, count);
  for (size_t end = count; end-- > 1;) {
    uint32_t item = items[0];
    items[0] = items[end], items[end] = item;
    sift_down(0, end);
  }
}

int compare_names(const char *a, size_t a_bytes, const char *b, size_t b_bytes) {
  int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
  return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

template <typename Entry>
const Entry *find_entry(const Gguf &gguf, const Entry *entries, const uint32_t *sorted, size_t count, const char *name) {
  size_t name_bytes = strlen(name), begin = 0;
  while (begin < count) {
    size_t middle = begin + (count - begin) / 2;
    const Entry &entry = entries[sorted[middle]];
    int order = compare_names(gguf.name(entry), entry.name_bytes, name, name_bytes);
    if (order == 0) return &entry;
    if (order < 0)
      begin = middle + 1;
    else
      count = middle;
  }
  return nullptr;
}

// *sorted: indices of the entries by name. kFormat if a name occurs twice.
template <typename Entry>
Status sort_names(const Gguf &gguf, const Entry *entries, size_t count, uint64_t Entry::*offset, const char *kind, Buffer<uint32_t> *sorted,
                  Account *account, Failure *failure) {
  Status status = sorted->allocate(account, count, "GGUF directory", failure);
  if (status != kOk) return status;
  auto compare = [&](uint32_t a, uint32_t b) {
    return compare_names(gguf.name(entries[a]), entries[a].name_bytes, gguf.name(entries[b]), entries[b].name_bytes);
  };
  for (size_t i = 0; i < count; i++) (*sorted)[i] = static_cast<uint32_t>(i);
  sort_indices(sorted->data(), count, [&](uint32_t a, uint32_t b) { return compare(a, b) < 0; });
  for (size_t i = 1; i < count; i++) {
    const Entry &one = entries[(*sorted)[i - 1]], &other = entries[(*sorted)[i]];
    if (compare((*sorted)[i - 1], (*sorted)[i]) != 0) continue;
    uint64_t first = one.*offset, second = other.*offset;
    return fail(failure, kFormat, "GGUF: %s %.*s occurs twice, at offsets %llu and %llu; expected once", kind, shown(one.name_bytes),
                gguf.name(one), (unsigned long long)(first < second ? first : second),
                (unsigned long long)(first < second ? second : first));
  }
  return kOk;
}

Status fail_truncated(const char *what, uint64_t at, uint64_t needed, uint64_t left, Failure *failure) {
  return fail(failure, kTruncated, "GGUF: %s at offset %llu needs %llu bytes; %llu are left", what, (unsigned long long)at,
              (unsigned long long)needed, (unsigned long long)left);
}

// A count that the header or an array declares, against the bytes that are left for it.
Status check_count(const char *what, uint64_t at, uint64_t count, uint64_t least_bytes, uint64_t left, Failure *failure) {
  if (count <= left / least_bytes) return kOk;
  return fail(failure, kTruncated, "GGUF: %s at offset %llu is %llu, at least %llu bytes each; %llu bytes are left", what,
              (unsigned long long)at, (unsigned long long)count, (unsigned long long)least_bytes, (unsigned long long)left);
}

uint64_t sign_extended(uint64_t value, size_t bytes) {
  size_t unused = 64 - 8 * bytes;
  uint64_t sign = uint64_t(1) << (8 * bytes - 1);
  return unused == 0 || !(value & sign) ? value : value | ~uint64_t(0) << (64 - unused);
}

bool is_signed(GgufType type) {
  return type == GgufType::kI8 || type == GgufType::kI16 || type == GgufType::kI32 || type == GgufType::kI64;
}

bool is_integer(GgufType type) {
  return is_signed(type) || type == GgufType::kU8 || type == GgufType::kU16 || type == GgufType::kU32 || type == GgufType::kU64;
}

Status check_version(const unsigned char *header, Failure *failure) {
  uint32_t version = load_u32(header + 4);
  if (version == 2 || version == 3) return kOk;
  if (version != 0 && (version & 0xffff) == 0)
    return fail(failure, kUnsupported, "GGUF: this is a big-endian file (version %u at offset 4); expected a little-endian one",
                header[7] | uint32_t(header[6]) << 8);
  return fail(failure, kUnsupported, "GGUF: version at offset 4 is %u; expected 2 or 3", version);
}

}  // namespace

const char *gguf_type_name(GgufType type) { return kTypeNames[static_cast<size_t>(type)]; }

size_t gguf_type_bytes(GgufType type) { return kTypeBytes[static_cast<size_t>(type)]; }

const GgufElement *gguf_element(uint32_t type) {
  for (const GgufElement &element : kElements)
    if (element.type == type) return &element;
  return nullptr;
}

Status GgufCursor::read(void *to, uint64_t bytes, const char *what, Failure *failure) {
  if (bytes > left()) return fail_truncated(what, at_, bytes, left(), failure);
  size_t count = static_cast<size_t>(bytes);
  if (count >= kWindowBytes) {
    Status status = source_->read(at_, to, count, what, failure);
    at_ += bytes;
    return status;
  }
  if (at_ < window_at_ || at_ - window_at_ > window_count_ || window_count_ - (at_ - window_at_) < count) {
    window_at_ = at_;
    window_count_ = left() < kWindowBytes ? static_cast<size_t>(left()) : kWindowBytes;
    Status status = source_->read(at_, window_, window_count_, what, failure);
    if (status != kOk) return window_count_ = 0, status;
  }
  if (count) memcpy(to, window_ + (at_ - window_at_), count);
  at_ += bytes;
  return kOk;
}

Status GgufCursor::skip(uint64_t bytes, const char *what, Failure *failure) {
  if (bytes > left()) return fail_truncated(what, at_, bytes, left(), failure);
  at_ += bytes;
  return kOk;
}

Status GgufCursor::read_u32(uint32_t *value, const char *what, Failure *failure) {
  unsigned char bytes[4] = {0};
  Status status = read(bytes, sizeof(bytes), what, failure);
  *value = load_u32(bytes);
  return status;
}

Status GgufCursor::read_u64(uint64_t *value, const char *what, Failure *failure) {
  unsigned char bytes[8] = {0};
  Status status = read(bytes, sizeof(bytes), what, failure);
  *value = load_u64(bytes);
  return status;
}

Status GgufCursor::read_number(GgufType type, uint64_t *bits, const char *what, Failure *failure) {
  unsigned char bytes[8] = {0};
  size_t count = gguf_type_bytes(type);
  Status status = read(bytes, count, what, failure);
  *bits = is_signed(type) ? sign_extended(load_u64(bytes), count) : load_u64(bytes);
  return status;
}

Status GgufCursor::read_text_bytes(uint64_t *bytes, const char *what, Failure *failure) {
  Status status = read_u64(bytes, what, failure);
  if (status == kOk && *bytes > left()) status = fail_truncated(what, at_, *bytes, left(), failure);
  return status;
}

bool Gguf::is_gguf(const unsigned char *first, size_t count) { return count >= 4 && memcmp(first, "GGUF", 4) == 0; }

Status Gguf::open(Source *source, Account *account, Failure *failure) {
  unsigned char header[kHeaderBytes] = {0};
  file_bytes_ = source->size_bytes();
  size_t there = file_bytes_ < kHeaderBytes ? static_cast<size_t>(file_bytes_) : kHeaderBytes;
  Status status = source->read(0, header, there, "GGUF header", failure);
  if (status != kOk) return status;
  if (!is_gguf(header, there)) {
    bool is_model = false;
    const char *other = recognize(header, there, &is_model);
    return fail(failure, kUnrecognized, "GGUF: this is %s; expected a file that begins with \"GGUF\"",
                other        ? other
                : there == 0 ? "an empty file"
                             : "no GGUF file");
  }
  if (there >= 8) status = check_version(header, failure);
  if (status != kOk) return status;
  if (there < kHeaderBytes) return fail_truncated("the header", 0, kHeaderBytes, there, failure);
  version_ = load_u32(header + 4);
  uint64_t tensors = load_u64(header + 8), keys = load_u64(header + 16), left = file_bytes_ - kHeaderBytes;
  status = check_count("the number of tensors", 8, tensors, kLeastTensorBytes, left, failure);
  if (status == kOk) status = check_count("the number of keys", 16, keys, kLeastKeyBytes, left, failure);
  if (status == kOk && (tensors > kMaxEntries || keys > kMaxEntries))
    return fail(failure, kUnsupported, "GGUF: %llu tensors and %llu keys, at offsets 8 and 16; expected at most %llu of each",
                (unsigned long long)tensors, (unsigned long long)keys, (unsigned long long)kMaxEntries);
  GgufCursor cursor(source, kHeaderBytes);
  if (status == kOk) status = read_keys(keys, &cursor, account, failure);
  if (status == kOk) status = read_alignment(failure);
  if (status == kOk) status = read_tensors(tensors, &cursor, account, failure);
  if (status == kOk) status = place_tensors(cursor.at(), account, failure);
  return status;
}

Status Gguf::read_name(const char *kind, size_t index, GgufCursor *cursor, Account *account, size_t *at, uint32_t *bytes,
                       Failure *failure) {
  char what[64];
  snprintf(what, sizeof(what), "the name of %s %zu", kind, index);
  uint64_t begin = cursor->at(), length = 0;
  Status status = cursor->read_u64(&length, what, failure);
  if (status == kOk && (length == 0 || length > kMaxNameBytes))
    status = fail(failure, kFormat, "GGUF: %s at offset %llu has %llu bytes; expected 1 to %llu", what, (unsigned long long)begin,
                  (unsigned long long)length, (unsigned long long)kMaxNameBytes);
  if (status == kOk && length > cursor->left()) status = fail_truncated(what, cursor->at(), length, cursor->left(), failure);
  size_t count = static_cast<size_t>(length);
  if (status == kOk) status = make_room(&names_, names_bytes_, names_bytes_ + count, account, "GGUF names", failure);
  if (status == kOk) status = cursor->read(names_.data() + names_bytes_, count, what, failure);
  if (status != kOk) return status;
  *at = names_bytes_;
  *bytes = static_cast<uint32_t>(count);
  names_bytes_ += count;
  return kOk;
}

Status Gguf::read_keys(uint64_t count, GgufCursor *cursor, Account *account, Failure *failure) {
  for (; key_count_ < count; key_count_++) {
    Status status = make_room(&keys_, key_count_, key_count_ + 1, account, "GGUF keys", failure);
    if (status != kOk) return status;
    GgufKey *key = &keys_[key_count_];
    *key = GgufKey{};
    status = read_name("key", key_count_, cursor, account, &key->name_at, &key->name_bytes, failure);
    if (status == kOk) status = read_value(key, cursor, failure);
    if (status != kOk) return status;
  }
  return sort_names(*this, keys_.data(), key_count_, &GgufKey::offset, "key", &keys_by_name_, account, failure);
}

Status Gguf::read_value(GgufKey *key, GgufCursor *cursor, Failure *failure) {
  char what[kShownBytes + 32];
  snprintf(what, sizeof(what), "key %.*s", shown(key->name_bytes), name(*key));
  uint32_t type = 0;
  uint64_t type_at = cursor->at();
  Status status = cursor->read_u32(&type, what, failure);
  if (status != kOk) return status;
  if (type >= kGgufTypes)
    return fail(failure, kFormat, "GGUF: %s has the value type %u at offset %llu; expected 0 to %u", what, type,
                (unsigned long long)type_at, kGgufTypes - 1);
  key->type = static_cast<GgufType>(type);
  if (key->type == GgufType::kArray) return read_array(key, cursor, failure);
  if (key->type == GgufType::kText) {
    status = cursor->read_text_bytes(&key->value, what, failure);
    key->offset = cursor->at();
    return status == kOk ? cursor->skip(key->value, what, failure) : status;
  }
  key->offset = cursor->at();
  status = cursor->read_number(key->type, &key->value, what, failure);
  if (status == kOk && key->type == GgufType::kBool && key->value > 1)
    status = fail(failure, kFormat, "GGUF: %s at offset %llu is a bool of value %llu; expected 0 or 1", what,
                  (unsigned long long)key->offset, (unsigned long long)key->value);
  return status;
}

Status Gguf::read_array(GgufKey *key, GgufCursor *cursor, Failure *failure) {
  char what[kShownBytes + 32];
  snprintf(what, sizeof(what), "the array of key %.*s", shown(key->name_bytes), name(*key));
  uint64_t begin = cursor->at();
  uint32_t type = 0;
  Status status = cursor->read_u32(&type, what, failure);
  if (status == kOk) status = cursor->read_u64(&key->value, what, failure);
  if (status != kOk) return status;
  if (type == static_cast<uint32_t>(GgufType::kArray))
    return fail(failure, kUnsupported, "GGUF: %s at offset %llu is one of arrays; expected numbers, bools or strings", what,
                (unsigned long long)begin);
  if (type >= kGgufTypes)
    return fail(failure, kFormat, "GGUF: %s has the element type %u at offset %llu; expected 0 to %u", what, type,
                (unsigned long long)begin, kGgufTypes - 1);
  key->element_type = static_cast<GgufType>(type);
  key->offset = cursor->at();
  uint64_t each = key->element_type == GgufType::kText ? kTextLengthBytes : gguf_type_bytes(key->element_type);
  char count_name[sizeof(what) + 32];
  snprintf(count_name, sizeof(count_name), "the number of elements in %s", what);
  status = check_count(count_name, begin + 4, key->value, each, cursor->left(), failure);
  if (status != kOk || key->element_type != GgufType::kText) return status == kOk ? cursor->skip(key->value * each, what, failure) : status;
  for (uint64_t i = 0; i < key->value && status == kOk; i++) {
    uint64_t bytes = 0;
    status = cursor->read_text_bytes(&bytes, what, failure);
    if (status == kOk) status = cursor->skip(bytes, what, failure);
  }
  return status;
}

Status Gguf::read_alignment(Failure *failure) {
  constexpr const char *kName = "general.alignment";
  Status status = get_u64(kName, Need::kOptional, &alignment_, failure);
  if (status != kOk) return status;
  if (alignment_ >= 8 && alignment_ <= kMaxAlignment && (alignment_ & (alignment_ - 1)) == 0) return kOk;
  char found[24];
  snprintf(found, sizeof(found), "%llu", (unsigned long long)alignment_);
  return fail_value(*find(kName), kName, found, "a power of two from 8 to 65536", kFormat, failure);
}

Status Gguf::read_tensors(uint64_t count, GgufCursor *cursor, Account *account, Failure *failure) {
  for (; tensor_count_ < count; tensor_count_++) {
    Status status = make_room(&tensors_, tensor_count_, tensor_count_ + 1, account, "GGUF tensors", failure);
    if (status != kOk) return status;
    GgufTensor *tensor = &tensors_[tensor_count_];
    *tensor = GgufTensor{};
    tensor->described_at = cursor->at();
    status = read_name("tensor", tensor_count_, cursor, account, &tensor->name_at, &tensor->name_bytes, failure);
    if (status == kOk) status = read_dimensions(tensor, cursor, failure);
    if (status != kOk) return status;
  }
  return sort_names(*this, tensors_.data(), tensor_count_, &GgufTensor::described_at, "tensor", &tensors_by_name_, account, failure);
}

// Everything of a tensor's entry but its name. Its offset is checked when the data's is known.
Status Gguf::read_dimensions(GgufTensor *tensor, GgufCursor *cursor, Failure *failure) {
  char what[kShownBytes + 32];
  snprintf(what, sizeof(what), "tensor %.*s", shown(tensor->name_bytes), name(*tensor));
  uint64_t begin = cursor->at();
  uint32_t count = 0;
  Status status = cursor->read_u32(&count, what, failure);
  if (status == kOk && (count < 1 || count > 4))
    status = fail(failure, kFormat, "GGUF: %s has %u dimensions, at offset %llu; expected 1 to 4", what, count, (unsigned long long)begin);
  uint64_t sizes[4] = {1, 1, 1, 1};
  for (uint32_t i = 0; status == kOk && i < count; i++) {
    status = cursor->read_u64(&sizes[i], what, failure);
    if (status == kOk && (sizes[i] == 0 || sizes[i] > PI_SIZE_MAX))
      status = fail(failure, kFormat, "GGUF: dimension %u of %s, at offset %llu, is %llu; expected 1 to %llu", i, what,
                    (unsigned long long)(cursor->at() - 8), (unsigned long long)sizes[i], (unsigned long long)PI_SIZE_MAX);
  }
  uint64_t type_at = cursor->at();
  if (status == kOk) status = cursor->read_u32(&tensor->type, what, failure);
  if (status == kOk) status = cursor->read_u64(&tensor->offset, what, failure);
  if (status != kOk) return status;
  if (sizes[2] != 1 || sizes[3] != 1)
    return fail(failure, kUnsupported, "GGUF: %s has the dimensions %llu x %llu x %llu x %llu; expected one or two", what,
                (unsigned long long)sizes[0], (unsigned long long)sizes[1], (unsigned long long)sizes[2], (unsigned long long)sizes[3]);
  const GgufElement *element = gguf_element(tensor->type);
  if (!element) {
    const char *known = "of no known meaning";
    for (const OtherElement &other : kOtherElements)
      if (other.type == tensor->type) known = other.name;
    return fail(failure, kUnsupported, "GGUF: %s has the element type %u (%s), at offset %llu; expected one of %s", what, tensor->type,
                known, (unsigned long long)type_at, kElementNames);
  }
  tensor->columns = sizes[0], tensor->rows = sizes[1], tensor->is_vector = count == 1;
  if (tensor->columns % element->block_columns != 0)
    return fail(failure, kFormat, "GGUF: %s has %llu columns of the type %s; expected a multiple of %u", what,
                (unsigned long long)tensor->columns, element->name, element->block_columns);
  if (!pi_mul_checked(tensor->columns / element->block_columns, element->block_bytes, &tensor->bytes) ||
      !pi_mul_checked(tensor->bytes, tensor->rows, &tensor->bytes))
    return fail(failure, kFormat, "GGUF: %s has %llu x %llu weights of the type %s, which are more bytes than a file can have", what,
                (unsigned long long)tensor->columns, (unsigned long long)tensor->rows, element->name);
  return kOk;
}

// Turns offsets into the data into offsets into the file, and checks that the tensors are there, apart and all.
Status Gguf::place_tensors(uint64_t directory_end, Account *account, Failure *failure) {
  uint64_t data = (directory_end + alignment_ - 1) / alignment_ * alignment_;  // no overflow: an offset of a file, and at most 65536
  uint64_t end = directory_end;
  Buffer<uint32_t> sorted;
  Status status = sorted.allocate(account, tensor_count_, "GGUF directory", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < tensor_count_; i++) sorted[i] = static_cast<uint32_t>(i);
  sort_indices(sorted.data(), tensor_count_, [this](uint32_t a, uint32_t b) {
    return tensors_[a].offset != tensors_[b].offset ? tensors_[a].offset < tensors_[b].offset : a < b;
  });
  for (size_t i = 0; i < tensor_count_; i++) {
    GgufTensor &tensor = tensors_[sorted[i]];
    if (tensor.offset % alignment_ != 0)
      return fail(failure, kFormat,
                  "GGUF: tensor %.*s has the offset %llu in the data; expected a multiple of the alignment, which is %llu",
                  shown(tensor.name_bytes), name(tensor), (unsigned long long)tensor.offset, (unsigned long long)alignment_);
    uint64_t begin = 0, tensor_end = 0;
    bool fits = pi_add_checked(data, tensor.offset, &begin) && pi_add_checked(begin, tensor.bytes, &tensor_end);
    if (!fits || tensor_end > file_bytes_)
      return fail(failure, kTruncated, "GGUF: tensor %.*s, at offset %llu of the data, needs %llu bytes; %llu are there",
                  shown(tensor.name_bytes), name(tensor), (unsigned long long)tensor.offset, (unsigned long long)tensor.bytes,
                  (unsigned long long)(fits && begin < file_bytes_ ? file_bytes_ - begin : 0));
    if (i > 0 && begin < end) {
      const GgufTensor &other = tensors_[sorted[i - 1]];
      return fail(failure, kFormat, "GGUF: tensor %.*s begins at offset %llu, where tensor %.*s is up to offset %llu; expected apart",
                  shown(tensor.name_bytes), name(tensor), (unsigned long long)begin, shown(other.name_bytes), name(other),
                  (unsigned long long)end);
    }
    tensor.offset = begin;
    end = tensor_end;
  }
  uint64_t filled = (end + alignment_ - 1) / alignment_ * alignment_;
  if (file_bytes_ <= filled) return kOk;
  return fail(failure, kFormat, "GGUF: %llu bytes follow the last %s, which ends at offset %llu; expected nothing but a filling up to %llu",
              (unsigned long long)(file_bytes_ - end), tensor_count_ ? "tensor" : "entry", (unsigned long long)end,
              (unsigned long long)filled);
}

const GgufKey *Gguf::find(const char *wanted) const { return find_entry(*this, keys_.data(), keys_by_name_.data(), key_count_, wanted); }

const GgufTensor *Gguf::find_tensor(const char *wanted) const {
  return find_entry(*this, tensors_.data(), tensors_by_name_.data(), tensor_count_, wanted);
}

Status Gguf::fail_value(const GgufKey &key, const char *name, const char *found, const char *expected, Status status, Failure *failure) {
  return fail(failure, status, "GGUF: key %s at offset %llu is %s; expected %s", name, (unsigned long long)key.offset, found, expected);
}

Status Gguf::check_type(const GgufKey *key, const char *name, Need need, GgufType expected, Failure *failure) const {
  if (!key && need == Need::kRequired)
    return fail(failure, kFormat, "GGUF: key %s is missing; expected one of type %s", name, gguf_type_name(expected));
  if (key && key->type != expected) return fail_value(*key, name, gguf_type_name(key->type), gguf_type_name(expected), kFormat, failure);
  return kOk;
}

Status Gguf::get_u64(const char *name, Need need, uint64_t *value, Failure *failure) const {
  const GgufKey *key = find(name);
  if (!key) return need == Need::kOptional ? kOk : fail(failure, kFormat, "GGUF: key %s is missing; expected an unsigned integer", name);
  if (!is_integer(key->type)) return fail_value(*key, name, gguf_type_name(key->type), "an unsigned integer", kFormat, failure);
  if (is_signed(key->type) && static_cast<int64_t>(key->value) < 0) {
    char found[24];
    snprintf(found, sizeof(found), "%lld", (long long)key->value);
    return fail_value(*key, name, found, "an unsigned integer", kFormat, failure);
  }
  *value = key->value;
  return kOk;
}

Status Gguf::get_f32(const char *name, Need need, float *value, Failure *failure) const {
  const GgufKey *key = find(name);
  Status status = check_type(key, name, need, GgufType::kF32, failure);
  uint32_t bits = key ? static_cast<uint32_t>(key->value) : 0;
  if (status == kOk && key) memcpy(value, &bits, sizeof(bits));
  return status;
}

Status Gguf::get_bool(const char *name, Need need, bool *value, Failure *failure) const {
  const GgufKey *key = find(name);
  Status status = check_type(key, name, need, GgufType::kBool, failure);
  if (status == kOk && key) *value = key->value != 0;
  return status;
}

Status Gguf::get_text(const char *name, Need need, GgufText *text, Failure *failure) const {
  const GgufKey *key = find(name);
  Status status = check_type(key, name, need, GgufType::kText, failure);
  if (status == kOk && key) *text = GgufText{key->offset, key->value};
  return status;
}

Status Gguf::get_name(const char *name, Need need, Source *source, char *to, size_t capacity, Failure *failure) const {
  GgufText text;
  Status status = get_text(name, need, &text, failure);
  size_t bytes = text.bytes < capacity ? static_cast<size_t>(text.bytes) : capacity - 1;
  if (status == kOk) status = source->read(text.offset, to, bytes, name, failure);
  if (status != kOk) bytes = 0;
  for (size_t i = 0; i < bytes; i++)
    if (to[i] == 0) to[i] = '?';
  to[bytes] = 0;
  return status;
}

Status Gguf::get_array(const char *name, Need need, GgufType element_type, GgufArray *array, Failure *failure) const {
  const GgufKey *key = find(name);
  Status status = check_type(key, name, need, GgufType::kArray, failure);
  if (status != kOk || !key) return status;
  if (key->element_type != element_type) {
    char found[32], expected[32];
    snprintf(found, sizeof(found), "an array of %s", gguf_type_name(key->element_type));
    snprintf(expected, sizeof(expected), "an array of %s", gguf_type_name(element_type));
    return fail_value(*key, name, found, expected, kFormat, failure);
  }
  *array = GgufArray{key->offset, key->value};
  return kOk;
}

}  // namespace proofinfer
