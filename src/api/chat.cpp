#include "model/chat.h"

#include "api/boundary.h"

namespace proofinfer {

static_assert(static_cast<int32_t>(Role::kSystem) == PROOFINFER_ROLE_SYSTEM && static_cast<int32_t>(Role::kUser) == PROOFINFER_ROLE_USER &&
                  static_cast<int32_t>(Role::kAssistant) == PROOFINFER_ROLE_ASSISTANT,
              "internal and public roles must agree");

// The tokenizer behind a handle, alive for the time of one call, and the template of a name. False: `call` has the failure.
static bool find_template(Call *call, const proofinfer_tokenizer *tokenizer, const char *name, size_t name_bytes,
                          Ref<const Tokenizer> *held, ChatTemplate *chat) {
  const Tokenizer *t = call->object<const Tokenizer>(tokenizer, "tokenizer");
  if (!t || !call->need_array(name, name_bytes, "template_name")) return false;
  *held = Ref<const Tokenizer>::share(t);
  return chat->find(t, {reinterpret_cast<const unsigned char *>(name), name_bytes}, call->failure()) == kOk;
}

}  // namespace proofinfer

using namespace proofinfer;

extern "C" {

size_t proofinfer_chat_template_count(void) { return ChatTemplate::known_count(); }

const char *proofinfer_chat_template_name(size_t index) { return ChatTemplate::known_name(index); }

const char *proofinfer_chat_template(const proofinfer_tokenizer *tokenizer) {
  Call call(nullptr);
  Ref<const Tokenizer> held;
  ChatTemplate chat;
  return find_template(&call, tokenizer, nullptr, 0, &held, &chat) ? chat.name() : nullptr;
}

int32_t proofinfer_chat_encode(const proofinfer_tokenizer *tokenizer, const char *template_name, size_t template_name_bytes,
                               const int32_t *roles, const char *contents, const size_t *content_bytes, size_t count, uint32_t flags,
                               int32_t *tokens, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  if (!call.need_array(roles, count, "roles") || !call.need_array(content_bytes, count, "content_bytes") ||
      !call.need_array(tokens, capacity, "tokens"))
    return call.end();
  bool has_contents = false;
  for (size_t i = 0; i < count; i++) has_contents = has_contents || content_bytes[i] > 0;
  if (has_contents && !call.need(contents, "contents")) return call.end();
  if ((flags & ~PROOFINFER_CHAT_ANSWER) != 0)
    return call.end(
        fail(call.failure(), kArgument, "flags are 0x%x; expected PROOFINFER_CHAT_ bits, 0x%x at most", flags, PROOFINFER_CHAT_ANSWER));
  Ref<const Tokenizer> held;
  ChatTemplate chat;
  if (!find_template(&call, tokenizer, template_name, template_name_bytes, &held, &chat)) return call.end();
  Buffer<int32_t> ids;
  size_t id_count = 0;
  const Messages messages = {roles, contents, content_bytes, count};
  if (chat.encode(messages, flags & PROOFINFER_CHAT_ANSWER, &ids, &id_count, call.failure()) != kOk) return call.end();
  return call.end(call.put(ids.data(), id_count, sizeof(int32_t), tokens, capacity, needed, "tokens"));
}

int32_t proofinfer_chat_stop_tokens(const proofinfer_tokenizer *tokenizer, const char *template_name, size_t template_name_bytes,
                                    int32_t *tokens, size_t capacity, size_t *needed, proofinfer_error **error) {
  Call call(error);
  if (needed) *needed = 0;
  if (!call.need_array(tokens, capacity, "tokens")) return call.end();
  Ref<const Tokenizer> held;
  ChatTemplate chat;
  if (!find_template(&call, tokenizer, template_name, template_name_bytes, &held, &chat)) return call.end();
  int32_t ids[ChatTemplate::kMaxStopTokens];
  size_t count = chat.stop_tokens(ids);
  return call.end(call.put(ids, count, sizeof(int32_t), tokens, capacity, needed, "tokens"));
}

}  // extern "C"
