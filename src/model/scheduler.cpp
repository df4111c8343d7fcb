#include "model/scheduler.h"

namespace proofinfer {

void *Scheduler::grant_memory(void *raw, size_t bytes, size_t alignment) {
  Grant *grant = static_cast<Grant *>(raw);
  Failure failure;
  void *memory = grant->account->allocate(bytes, alignment, "scheduler", &failure);
  if (memory) grant->held_bytes += bytes;
  if (failure.status == kLimit) grant->refused_bytes = grant->held_bytes + bytes;
  return memory;
}

void Scheduler::take_memory_back(void *raw, void *memory, size_t bytes, size_t alignment) {
  Grant *grant = static_cast<Grant *>(raw);
  grant->held_bytes -= bytes;
  grant->account->release(memory, bytes, alignment);
}

Scheduler::~Scheduler() {
  for (size_t i = 0; i < slots_.count(); i++) Object::release(slots_[i].generation);
}

Status Scheduler::create(const Model *model, const Tokenizer *tokenizer, const Settings &settings, Scheduler **scheduler,
                         Failure *failure) {
  if (static_cast<size_t>(tokenizer->vocab_size()) < model->vocab_size())
    return fail(failure, kArgument, "the tokenizer has %d pieces; expected at least the model's vocab_size %zu", tokenizer->vocab_size(),
                model->vocab_size());
  Ref<Scheduler> made(Object::make<Scheduler>(settings.hooks, settings.memory_limit_bytes, "scheduler", failure));
  if (!made) return failure->status;
  Scheduler *s = made.get();
  s->model_ = Ref<const Model>::share(model);
  s->tokenizer_ = Ref<const Tokenizer>::share(tokenizer);
  s->kernels_ = settings.kernels ? settings.kernels : model->kernels();
  s->memory_limit_bytes_ = settings.memory_limit_bytes;
  s->prefill_chunk_ = static_cast<size_t>(settings.prefill_chunk);
  size_t slot_count = static_cast<size_t>(settings.max_generations);
  Buffer<Slot> slots;
  Status status = slots.allocate(s->account(), slot_count, "the scheduler's slots", failure);
  if (status != kOk) return status;
  for (size_t i = 0; i < slot_count; i++) (new (&slots[i]) Slot)->grant.account = s->account();
  s->slots_.swap(slots);

  s->batch_grant_.account = s->account();
  Settings own = settings;
  own.hooks = hooks_of(&s->batch_grant_);
  own.memory_limit_bytes = 0;
  Batch *batch = nullptr;
  status = Batch::create(model, slot_count + s->prefill_chunk_, own, &batch, failure);
  if (status != kOk && s->batch_grant_.refused_bytes > 0)
    return fail(failure, kLimit,
                "a scheduler for %zu generations with a prefill_chunk of %zu needs at least %llu bytes; memory_limit_bytes is %llu",
                slot_count, s->prefill_chunk_, static_cast<unsigned long long>(s->account()->used_bytes() + s->batch_grant_.refused_bytes),
                static_cast<unsigned long long>(settings.memory_limit_bytes));
  if (status != kOk) return status;
  s->batch_ = Ref<Batch>(batch);
  *scheduler = made.take();
  return kOk;
}

Scheduler::Slot *Scheduler::claim_slot(Failure *failure) const {
  for (size_t i = 0; i < slots_.count(); i++) {
    uint32_t free = kFree;
    if (slots_[i].state.compare_exchange_strong(free, kClaimed, std::memory_order_acquire)) return &slots_[i];
  }
  fail(failure, kLimit, "the scheduler holds its max_generations %zu: one more needs one of them to end and its end to be taken",
       slots_.count());
  return nullptr;
}

uint64_t Scheduler::publish(Slot *slot) const {
  uint64_t id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
  slot->id.store(id, std::memory_order_relaxed);
  slot->state.store(kLive, std::memory_order_release);
  return id;
}

void Scheduler::vacate(Slot *slot) {
  slot->id.store(0, std::memory_order_relaxed);
  Object::release(slot->generation);
  slot->generation = nullptr;
  slot->failure.status = kOk;
  slot->state.store(kFree, std::memory_order_release);
}

Status Scheduler::submit(const int32_t *prompt, size_t prompt_count, const Settings &settings, uint64_t *id, Failure *failure) const {
  Slot *slot = claim_slot(failure);
  if (!slot) return failure->status;
  slot->grant.refused_bytes = 0;
  Status status = make_generation(slot, prompt, prompt_count, settings, failure);
  if (status == kOk)
    *id = publish(slot);
  else
    vacate(slot);
  return status;
}

Status Scheduler::make_generation(Slot *slot, const int32_t *prompt, size_t prompt_count, const Settings &settings,
                                  Failure *failure) const {
  size_t length = 0;
  Status status = Session::choose_context_length(*model_, settings.context_length, &length, failure);
  if (status != kOk) return status;
  // Positions that max_tokens leaves unused are not reserved: the last token is never appended.
  if (settings.max_tokens > 0 && prompt_count < length && static_cast<uint64_t>(settings.max_tokens) < length - prompt_count)
    length = prompt_count + static_cast<size_t>(settings.max_tokens);
  Settings own = settings;
  own.hooks = hooks_of(&slot->grant);
  own.memory_limit_bytes = 0;
  own.kernels = kernels_;
  own.context_length = static_cast<int64_t>(length);
  own.evaluated_by_others = true;
  Sampler *sampler = nullptr;
  Session *session = nullptr;
  status = Sampler::create(static_cast<int32_t>(model_->vocab_size()), own, &sampler, failure);
  if (status == kOk) status = Session::create(model_.get(), own, &session, failure);
  if (status == kOk) status = Generation::create(session, tokenizer_.get(), sampler, prompt, prompt_count, own, &slot->generation, failure);
  Object::release(session);
  uint64_t needed = slot->grant.held_bytes + Session::needed_bytes(*model_, length) + sizeof(Generation) + prompt_count * sizeof(*prompt);
  Object::release(sampler);
  if (status == kOk || slot->grant.refused_bytes == 0) return status;
  if (needed < slot->grant.refused_bytes) needed = slot->grant.refused_bytes;
  uint64_t used = account()->used_bytes(), available = used < memory_limit_bytes_ ? memory_limit_bytes_ - used : 0;
  return fail(failure, kLimit,
              "a generation with room for %zu positions needs at least %llu bytes; %llu of memory_limit_bytes %llu are available", length,
              static_cast<unsigned long long>(needed > available ? needed : available + 1), static_cast<unsigned long long>(available),
              static_cast<unsigned long long>(memory_limit_bytes_));
}

Status Scheduler::add(Generation *generation, uint64_t *id, Failure *failure) const {
  if (generation->session()->model() != model_.get())
    return fail(failure, kArgument, "the generation's session belongs to another model than the scheduler");
  Slot *slot = claim_slot(failure);
  if (!slot) return failure->status;
  generation->retain();
  slot->generation = generation;
  *id = publish(slot);
  return kOk;
}

Status Scheduler::cancel(uint64_t id, Failure *failure) const {
  if (id == 0 || id > last_id_.load(std::memory_order_relaxed))
    return fail(failure, kArgument, "id is %llu; expected 1 to %llu, which were given so far", static_cast<unsigned long long>(id),
                static_cast<unsigned long long>(last_id_.load(std::memory_order_relaxed)));
  for (size_t i = 0; i < slots_.count(); i++) {
    if (slots_[i].id.load(std::memory_order_relaxed) != id) continue;
    // Ids grow: a request for one that has left meanwhile must not take the place of a later one.
    uint64_t requested = slots_[i].cancelled.load(std::memory_order_relaxed);
    while (requested < id && !slots_[i].cancelled.compare_exchange_weak(requested, id, std::memory_order_relaxed)) {
    }
  }
  return kOk;
}

size_t Scheduler::count() const {
  size_t live = 0;
  for (size_t i = 0; i < slots_.count(); i++) live += slots_[i].id.load(std::memory_order_relaxed) != 0;
  return live;
}

void Scheduler::enter(Slot *slot) {
  slot->rows = 0;
  slot->entered = false;
  if (slot->state.load(std::memory_order_acquire) != kLive || slot->failure.status != kOk) return;
  if (slot->cancelled.load(std::memory_order_relaxed) == slot->id.load(std::memory_order_relaxed)) return;
  Generation *g = slot->generation;
  if (g->claim(&slot->failure) != kOk) {
    if (slot->failure.status == kBusy) slot->failure.status = kOk;  // its turn comes with the next step
    return;
  }
  if (g->has_piece() || g->ended())
    g->unclaim();
  else
    slot->entered = true;
}

void Scheduler::leave(Slot *slot) {
  if (slot->entered) slot->generation->unclaim();
  slot->entered = false;
}

void Scheduler::queue(Slot *slot, size_t rows) {
  Generation::Wanted wanted = slot->generation->wanted();
  Session *session = slot->generation->session();
  if (session->prepare(rows, &slot->failure) != kOk) return;
  while (slot->rows < rows && batch_->add(session, wanted.tokens[slot->rows], slot->rows + 1 == wanted.count, &slot->failure) == kOk)
    slot->rows++;
}

void Scheduler::queue_prompts() {
  size_t left = prefill_chunk_, first = prompt_turn_;
  for (size_t i = 0; i < slots_.count() && left > 0; i++) {
    size_t index = (first + i) % slots_.count();
    Slot *slot = &slots_[index];
    if (!slot->entered) continue;
    size_t wanted = slot->generation->wanted().count;
    if (wanted <= 1) continue;
    size_t rows = wanted < left ? wanted : left;
    queue(slot, rows);
    left -= rows;
    prompt_turn_ = index + 1;
  }
}

void Scheduler::finish(Slot *slot) {
  if (!slot->entered) return;
  slot->generation->appended(slot->rows);
  if (slot->failure.status != kOk || slot->generation->wanted().count > 0) return;
  if (slot->generation->choose(&slot->failure) == kBusy) slot->failure.status = kOk;
}

Status Scheduler::step(Cancel *cancel, size_t *row_count, Failure *failure) {
  *row_count = 0;
  for (size_t i = 0; i < slots_.count(); i++) enter(&slots_[i]);
  // Decoding comes first and is never left out; what prompts may add to it is bounded.
  for (size_t i = 0; i < slots_.count(); i++)
    if (slots_[i].entered && slots_[i].generation->wanted().count == 1) queue(&slots_[i], 1);
  queue_prompts();
  size_t rows = batch_->count();
  Status status = rows > 0 ? batch_->evaluate_entered(cancel, failure) : kOk;
  if (status == kOk) {
    *row_count = rows;
    for (size_t i = 0; i < slots_.count(); i++) finish(&slots_[i]);
  }
  batch_->clear();
  for (size_t i = 0; i < slots_.count(); i++) leave(&slots_[i]);
  return status;
}

bool Scheduler::give(Slot *slot, char *buffer, size_t capacity, Generation::Step *step, Failure *failure) {
  if (slot->cancelled.load(std::memory_order_relaxed) == slot->id.load(std::memory_order_relaxed)) {
    step->reason = StopReason::kCancelled;
  } else if (slot->failure.status != kOk) {
    *failure = slot->failure;
  } else {
    Status status = slot->generation->take(buffer, capacity, step, failure);
    if (status == kBufferTooSmall) return true;
    if (status == kBusy) return failure->status = kOk, false;
    if (step->reason == StopReason::kNone) return step->token >= 0;
  }
  vacate(slot);
  return true;
}

Status Scheduler::next(uint64_t only, uint64_t *id, char *buffer, size_t capacity, Generation::Step *step, Failure *failure) {
  *id = 0;
  *step = {-1, 0, StopReason::kNone};
  for (size_t i = 0, first = piece_turn_; i < slots_.count(); i++) {
    size_t index = (first + i) % slots_.count();
    Slot *slot = &slots_[index];
    if (slot->state.load(std::memory_order_acquire) != kLive) continue;
    uint64_t candidate = slot->id.load(std::memory_order_relaxed);
    if ((only != 0 && only != candidate) || !give(slot, buffer, capacity, step, failure)) continue;
    *id = candidate;
    if (only == 0 && failure->status != kBufferTooSmall) piece_turn_ = index + 1;
    break;
  }
  return failure->status;
}

}  // namespace proofinfer
