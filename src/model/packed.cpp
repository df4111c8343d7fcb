// Models from packed files and to them (format/packed.h).
#include "format/packed.h"

#include <string.h>

#include "model/model.h"

namespace proofinfer {

namespace {

// Read, written and summed at once, so that a cancel is noticed.
constexpr size_t kPartBytes = size_t(16) << 20;

Status advance(Cancel *cancel, uint64_t done, uint64_t total, const char *what, Failure *failure) {
  if (!cancel) return kOk;
  cancel->set_progress(done, total);
  if (!cancel->requested()) return kOk;
  return fail(failure, kCancelled, "%s was cancelled after %llu of %llu bytes", what, (unsigned long long)done, (unsigned long long)total);
}

}  // namespace

Status Model::load_packed(Source *source, const Settings &settings, Cancel *cancel, Failure *failure) {
  const PackedPlan &plan = file_.checkpoint().packed_plan();
  if (plan.file_bytes > SIZE_MAX) return fail(failure, kMemory, "packed file: more bytes than this machine can address");
  fingerprint_.store(file_.checkpoint().packed_fingerprint(), std::memory_order_relaxed);
  bool map = settings.map != 0 && source->is_file() && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  Status status = advance(cancel, 0, source->size_bytes(), "opening", failure);
  if (status == kOk) status = map ? source->map(&mapping_, failure) : read_packed(source, cancel, failure);
  if (status != kOk) return status;
  // Of a mapped file each part begins at a multiple of 4096 bytes.
  if (map)
    take_weights(mapping_.data() + plan.weights_offset, static_cast<size_t>(plan.weights_bytes),
                 reinterpret_cast<const float *>(mapping_.data() + kPackedHeaderBytes), static_cast<size_t>(plan.norms_count));
  if (!map || settings.verify != 0) {
    uint64_t found = 0;
    status = compute_fingerprint(cancel, &found, failure);
    if (status != kOk) return status;
    if (found != file_.checkpoint().packed_fingerprint())
      return fail(failure, kFormat,
                  "packed file: its shape or its weights were changed: their fingerprint is %016llx; by its header it is %016llx",
                  (unsigned long long)found, (unsigned long long)file_.checkpoint().packed_fingerprint());
  }
  if (cancel) cancel->set_progress(source->size_bytes(), source->size_bytes());
  return kOk;
}

Status Model::read_packed(Source *source, Cancel *cancel, Failure *failure) {
  const PackedPlan &plan = file_.checkpoint().packed_plan();
  Status status = weights_.allocate(account(), static_cast<size_t>(plan.weights_bytes), "weights", failure);
  if (status == kOk) status = norms_.allocate(account(), static_cast<size_t>(plan.norms_count), "norm weights", failure);
  if (status == kOk) status = source->read(kPackedHeaderBytes, norms_.data(), norms_.count() * sizeof(float), "norm weights", failure);
  for (size_t done = 0; status == kOk && done < weights_.count();) {
    size_t bytes = weights_.count() - done < kPartBytes ? weights_.count() - done : kPartBytes;
    status = source->read(plan.weights_offset + done, weights_.data() + done, bytes, "weights", failure);
    done += bytes;
    if (status == kOk) status = advance(cancel, plan.weights_offset + done, plan.file_bytes, "loading", failure);
  }
  if (status != kOk) return status;
  to_host_f32(norms_.data(), norms_.count());
  swap_packed(weights_.data(), weights_.count(), group_size_);
  take_weights(weights_.data(), weights_.count(), norms_.data(), norms_.count());
  return kOk;
}

Status Model::write_packed(Sink *sink, Cancel *cancel, Failure *failure) const {
  const pi_checkpoint_layout &layout = file_.checkpoint().layout();
  PackedPlan plan;
  if (!plan.plan(layout)) return fail(failure, kMemory, "packed file: more bytes than a file can have");
  unsigned char header[kPackedHeaderBytes];
  write_packed_header(layout, plan, fingerprint(), header);
  Status status = sink->write(0, header, sizeof(header), failure);
  size_t norms_bytes = norms_count_ * sizeof(float);
  // Parts of whole blocks, and of 64 bytes: a block is a multiple of them.
  size_t block = group_size_ ? pi_q8_block_bytes(group_size_) : 64;
  size_t part = block < kPartBytes ? kPartBytes / block * block : block;
  Account account(MemoryHooks(), 0);
  Buffer<unsigned char> copy;  // what is written, in the file's byte order
  if (status == kOk)
    status =
        copy.allocate(&account, part > plan.weights_offset ? part : static_cast<size_t>(plan.weights_offset), "conversion buffer", failure);
  if (status != kOk) return status;
  memset(copy.data(), 0, static_cast<size_t>(plan.weights_offset));
  memcpy(copy.data(), norms_at_, norms_bytes);
  to_host_f32(reinterpret_cast<float *>(copy.data()), norms_count_);  // and from it: the same exchange of bytes
  status = sink->write(kPackedHeaderBytes, copy.data(), static_cast<size_t>(plan.weights_offset) - kPackedHeaderBytes, failure);
  for (size_t done = 0; status == kOk && done < weights_bytes_;) {
    size_t bytes = weights_bytes_ - done < part ? weights_bytes_ - done : part;
    memcpy(copy.data(), weights_at_ + done, bytes);
    swap_packed(copy.data(), bytes, group_size_);
    status = sink->write(plan.weights_offset + done, copy.data(), bytes, failure);
    done += bytes;
    if (status == kOk) status = advance(cancel, plan.weights_offset + done, plan.file_bytes, "the conversion", failure);
  }
  return status;
}

}  // namespace proofinfer
